"""The changes of watched states as the lines of a diff: before and after the episode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ci_agent_eval.analysis.behaviour_pairs import ChangedPart, StateSummary
from ci_agent_eval.analysis.state_changes import MAX_VALUE
from ci_agent_eval.render.escape import visible_line
from ci_agent_eval.render.numbers import count_noun

_NAME = 120
"""Characters of the name of a state, an entry and its field."""


def list_state_lines(states: Iterable[StateSummary]) -> list[str]:
    """Return the lines; empty: nothing changed. Each line of foreign text has a prefix."""
    return [line for state in states for line in _list_lines(state)]


def _list_lines(state: StateSummary) -> Iterator[str]:
    yield "@@ state: before the episode (-), after it (+) @@"
    yield f"  {visible_line(state.name, _NAME)}"
    if state.error is not None:
        yield f"  {visible_line(state.error, MAX_VALUE)}"
    for part in state.parts:
        yield from _list_part_lines(part)
    if state.more:
        yield f"  … {count_noun(state.more, 'more change')}"


def _list_part_lines(part: ChangedPart) -> Iterator[str]:
    name = visible_line(part.name, _NAME)
    for mark, value in (("-", part.before), ("+", part.after)):
        if value is not None:
            yield f"{mark} {name}: {visible_line(value, MAX_VALUE + 1)}"
