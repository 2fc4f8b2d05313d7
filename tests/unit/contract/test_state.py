from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract import state as module
from ci_agent_eval.contract.state import compare_states, hash_entries, list_changes, matches_any

VALUES = st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=2)
FIELDS = st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2)
ENTRIES = st.dictionaries(st.sampled_from(["t/1", "t/2", "u"]), FIELDS)


@given(ENTRIES, ENTRIES)
def test_changes_lead_from_one_state_to_the_other(before, after):
    found = dict(before)
    for change in list_changes(before, after):
        assert change.before == before.get(change.entry)
        if change.after is None:
            del found[change.entry]
        else:
            found[change.entry] = change.after
    assert hash_entries(found) == hash_entries(after)


@given(ENTRIES, ENTRIES)
def test_there_are_changes_exactly_if_the_hashes_differ(before, after):
    state = compare_states("shop", "database", before, after)
    assert bool(state.changes) is (hash_entries(before) != hash_entries(after))
    assert (state.final, state.entries) == (after, len(after))


def test_true_is_not_one():
    (change,) = list_changes({"a": {"x": True, "y": 1}}, {"a": {"x": 1, "y": 1}})
    assert change.differing_fields() == ("x",)


def test_changes_that_are_too_large_are_counted(monkeypatch):
    monkeypatch.setattr(module, "MAX_RECORDED", 60)
    after = {name: {"text": "x" * 10} for name in "abc"}
    state = compare_states("shop", "database", {}, after)
    assert [change.entry for change in state.changes] == ["a", "b"]
    assert state.omitted_changes == 1


@given(st.text(string.printable), st.text(string.printable))
def test_a_star_stands_for_any_characters(start, end):
    name = f"{start}\n{end}"
    assert matches_any(name, [name, "*"])
    assert matches_any(name, [f"{start.replace('*', '')}*"]) or "*" in start
    assert not matches_any(name, [f"{name}."])
