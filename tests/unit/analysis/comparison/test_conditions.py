"""Conditions that iterations ran under: what two sides have in common, and what differs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.comparison.conditions import CONDITIONS, common, differences, matches

KNOWN = st.tuples(*[st.sampled_from([None, "a", "b"])] * len(CONDITIONS))
KINDS = st.frozensets(KNOWN, max_size=4)
ACROSS = st.frozensets(st.sampled_from(CONDITIONS))


@given(KINDS, KINDS, ACROSS)
def test_what_is_common_is_so_from_both_sides(before, after, across):
    old, new = common(before, after, across)
    assert common(after, before, across) == (new, old)
    assert bool(old) is bool(new)
    assert all(matches(one, new, across) for one in old)
    assert all(matches(one, old, across) for one in new)


@given(KINDS, KINDS, ACROSS)
def test_nothing_in_common_has_a_reason(before, after, across):
    found = differences(before, after, across)
    if not common(before, after, across)[0]:
        assert found
    assert not across & {difference.condition for difference in found}


@given(KINDS, ACROSS)
def test_a_side_has_all_in_common_with_itself(kinds, across):
    old, new = common(kinds, kinds, across)
    assert old == new
    assert all(matches(kind, old, across) for kind in kinds)


def test_all_may_differ():
    assert common(frozenset({("a",) * 4}), frozenset({("b",) * 4}), frozenset(CONDITIONS))[0]
