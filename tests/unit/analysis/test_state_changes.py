"""The changes of states that reports show, cut to what fits."""

from __future__ import annotations

from ci_agent_eval.analysis.behaviour_pairs import (
    MAX_PARTS,
    MAX_STATE_VALUE,
    ChangedPart,
    StateSummary,
    summarize_states,
)


def parts(*changes, **options):
    (found,) = summarize_states([{"name": "shop", "changes": changes}], **options)
    return found


def change(before=None, after=None, entry="orders/1"):
    sides = {"before": before, "after": after}
    return {"entry": entry, **{key: side for key, side in sides.items() if side is not None}}


def test_whole_entries_and_single_fields():
    found = parts(
        change(after={"b": 1, "a": "é"}),
        change({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": True, "d": 3}),
        change({}),
    )
    assert found.parts == (
        ChangedPart("orders/1", None, '{"a": "é", "b": 1}'),
        ChangedPart("orders/1.b", "2", "true"),
        ChangedPart("orders/1.c", "3", None),
        ChangedPart("orders/1.d", None, "3"),
        ChangedPart("orders/1", "{}", None),
    )
    assert found.more == 0


def test_of_a_text_only_the_lines_that_differ():
    (removed, added) = parts(change({"text": "a\nb\nc"}, {"text": "a\nB\nc"})).parts
    assert removed == ChangedPart("orders/1.text", "b", None)
    assert added == ChangedPart("orders/1.text", None, "B")


def test_what_is_left_out_is_counted():
    lines = {"text": "\n".join("abcdefghijk")}
    found = parts(*[change({"text": "\n"}, lines)] * 3, most=2)
    assert len(found.parts) == 2 * MAX_PARTS
    whole = parts(change({"text": "\n"}, lines))
    assert found.more == 1 + 2 * whole.more
    (long,) = parts(change(after={"a": "x" * 999})).parts
    assert len(long.after) == MAX_STATE_VALUE + 1


def test_states_without_changes_are_left_out():
    states = [
        {"name": "same"},
        {"name": "large", "omitted_changes": 2},
        {"name": "gone", "error": "it is gone"},
    ]
    assert summarize_states(states) == (
        StateSummary("large", more=2),
        StateSummary("gone", error="it is gone"),
    )
