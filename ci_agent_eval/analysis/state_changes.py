"""The changes of an episode's watched states, as reports show them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ci_agent_eval.analysis.behaviour_pairs import MAX_STATE_VALUE, ChangedPart, StateSummary
from ci_agent_eval.analysis.natural_order import build_natural_key
from ci_agent_eval.contract.base import is_equal_json

MAX_CHANGES = 12
"""Changed entries kept of a state in the example of a cause."""
MAX_PARTS = 8
"""Changed fields kept of an entry, and changed lines of a text."""
_MAX_COMPARED = 2_000
"""Lines of a text that are compared."""


def summarize_states(
    states: Iterable[Mapping[str, Any]], most: int = MAX_CHANGES
) -> tuple[StateSummary, ...]:
    """Summarize the states of an episode, as its JSON has them, if something changed in them."""
    found = (_summarize_state(state, most) for state in states)
    return tuple(one for one in found if one.parts or one.more or one.error)


def _summarize_state(state: Mapping[str, Any], most: int) -> StateSummary:
    changes = sorted(state.get("changes", ()), key=lambda one: build_natural_key(one["entry"]))
    parts: list[ChangedPart] = []
    more = max(0, len(changes) - most) + state.get("omitted_changes", 0)
    for change in changes[:most]:
        found = list(_list_parts(change))
        parts += found[:MAX_PARTS]
        more += max(0, len(found) - MAX_PARTS)
    return StateSummary(state["name"], tuple(parts), more, state.get("error"))


def _list_parts(change: Mapping[str, Any]) -> Iterator[ChangedPart]:
    before, after = change.get("before"), change.get("after")
    if before is None or after is None:
        sides = (None if side is None else _shorten(_encode(side)) for side in (before, after))
        yield ChangedPart(change["entry"], *sides)
        return
    for field in sorted({*before, *after}):
        yield from _list_field_parts(f"{change['entry']}.{field}", before, after, field)


def _list_field_parts(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any], field: str
) -> Iterator[ChangedPart]:
    if field not in before or field not in after:
        sides = (_shorten(_encode(one[field])) if field in one else None for one in (before, after))
        yield ChangedPart(name, *sides)
        return
    old, new = before[field], after[field]
    if isinstance(old, str) and isinstance(new, str) and ("\n" in old or "\n" in new):
        yield from _list_line_parts(name, old, new)
    elif not is_equal_json(old, new):
        yield ChangedPart(name, _shorten(_encode(old)), _shorten(_encode(new)))


def _list_line_parts(name: str, before: str, after: str) -> Iterator[ChangedPart]:
    """Yield the lines of a text that differ, the removed ones of each place first."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - few reports have a changed text

    old, new = (text.split("\n")[:_MAX_COMPARED] for text in (before, after))
    for kind, start, end, new_start, new_end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if kind != "equal":
            yield from (ChangedPart(name, before=_shorten(line)) for line in old[start:end])
            yield from (ChangedPart(name, after=_shorten(line)) for line in new[new_start:new_end])


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_STATE_VALUE else f"{text[:MAX_STATE_VALUE]}…"


_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
