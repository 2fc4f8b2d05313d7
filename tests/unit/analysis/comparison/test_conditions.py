"""Conditions that iterations ran under: what two sides have in common, and what differs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.comparison.conditions import (
    CONDITIONS,
    compare_conditions,
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


@given(KINDS, KINDS, ACROSS)
def test_nothing_in_common_has_a_reason(before, after, across):
    found = compare_conditions(before, after, across)
    if not find_common_conditions(before, after, across)[0]:
        assert found
    assert not across & {difference.condition for difference in found}


@given(KINDS, ACROSS)
def test_a_side_has_all_in_common_with_itself(kinds, across):
    old, new = find_common_conditions(kinds, kinds, across)
    assert old == new
    assert all(matches_any(kind, old, across) for kind in kinds)


def test_all_may_differ():
    assert find_common_conditions(
        frozenset({("a",) * 4}), frozenset({("b",) * 4}), frozenset(CONDITIONS)
    )[0]
