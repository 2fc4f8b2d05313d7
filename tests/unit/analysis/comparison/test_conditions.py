"""Conditions that iterations ran under: what two sides have in common, and what differs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.comparison.conditions import (
    CONDITIONS,
    find_common_conditions,
    matches_any,
)

KNOWN = st.tuples(*[st.sampled_from([None, "a", "b"])] * len(CONDITIONS))
KINDS = st.frozensets(KNOWN, max_size=4)
ACROSS = st.frozensets(st.sampled_from(CONDITIONS))


@given(KINDS, KINDS, ACROSS)
def test_what_is_common_is_so_from_both_sides(before, after, across):
    old, new = find_common_conditions(before, after, across)
    assert find_common_conditions(after, before, across) == (new, old)
    assert bool(old) is bool(new)
    assert all(matches_any(one, new, across) for one in old)
    assert all(matches_any(one, old, across) for one in new)
