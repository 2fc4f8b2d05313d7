"""Checks of the state after an episode.

As in tau-bench, a task is done if the final state is the expected one, however it was reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from ci_agent_eval.checks.base import BaseCheck, format_list, format_value
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import SomeTexts
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.state import (
    Entries,
    Fields,
    StateChange,
    WatchedState,
    list_changes,
    matches_any,
)
from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.errors import InputError


@dataclass(frozen=True, slots=True)
class StateUnchanged(BaseCheck):
    """The episode changes nothing in its watched states, or none of these entries.

    `entries` has patterns such as `orders/*`; `state` is the name of one of several states.
    """

    entries: SomeTexts = ("*",)
    state: str | None = None

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        states = _find_states(episode, self.state)
        found = [
            _describe_change(change)
            for state in states
            for change in state.changes
            if matches_any(change.entry, self.entries)
        ]
        found += [
            f"{pluralize(state.omitted_changes, 'larger change')} of {state.name}"
            for state in states
            if state.omitted_changes
        ]
        every = self.entries == ("*",)
        what = format_list(state.name for state in states) if every else format_list(self.entries)
        reason = format_list(found) if found else "nothing changed"
        return (self._build_assertion(f"leaves {what} unchanged", not found, reason),)


@dataclass(frozen=True, slots=True)
class FinalState(BaseCheck):
    """The watched state is as expected after the episode, and nothing else changed.

    `expected` is a mapping from entries to the fields that they must have, None for an entry that
    must be gone; fields that it does not name, and all other entries, must be as they were. Or it
    is a reference: anything that `episode.watch` takes, such as a second
    database on which the right actions were done; then both must be equal.

    A name with `*` stands for exactly one entry that changed. `others=True` allows other changes.
    `state` is the name of one of several watched states.
    """

    expected: Annotated[Any, "a mapping of entries, or a reference state"]
    state: str | None = None
    others: bool = False

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        state = self._find_state(episode)
        if state.final is None:
            raise InputError(
                f"FinalState: the episode was read from a file, which has only the changes of "
                f"{state.name!r}; FinalState judges running episodes"
            )
        is_reference = not isinstance(self.expected, Mapping)
        compare = self._compare_reference if is_reference else self._compare_entries
        found = list(compare(state, state.final))
        more = f" (the first of {len(found)} differences)" if len(found) > 1 else ""
        success = f"{pluralize(len(state.changes), 'change')}, as expected"
        reason = f"{found[0]}{more}" if found else success
        statement = f"leaves {state.name} in the expected state"
        return (self._build_assertion(statement, not found, reason),)

    def _find_state(self, episode: Episode) -> WatchedState:
        state, *others = _find_states(episode, self.state)
        if others:
            names = format_list(one.name for one in (state, *others))
            raise InputError(f"FinalState: the episode watches {names}; name one with state=")
        return state

    def _compare_reference(self, state: WatchedState, final: Entries) -> Iterator[str]:
        """Yield the differences from the reference, which is read now."""
        from ci_agent_eval.state.sources import build_source  # noqa: PLC0415 - imports SQLite

        reference = build_source(self.expected, "the reference").take_snapshot(state.ignored)
        for change in list_changes(reference, final):
            yield from _compare_entry(change.entry, change.before, change.after, exact=True)

    def _compare_entries(self, state: WatchedState, final: Entries) -> Iterator[str]:
        """Yield the differences from the expected entries, then all other changes."""
        changes = {change.entry: change for change in state.changes}
        named: set[str] = set()
        for pattern, given in self.expected.items():
            expected, entries = to_jsonable(given), [pattern]
            if "*" in pattern:
                entries = [name for name in changes if matches_any(name, entries)]
                if len(entries) != 1:
                    yield f"{pattern} stands for one changed entry, but there are {len(entries)}"
                    continue
            (entry,) = entries
            named.add(entry)
            after = final.get(entry)
            yield from _compare_entry(entry, _name_only_field(expected, after), after)
            if entry in changes and expected is not None and not self.others:
                yield from _list_other_fields(changes[entry], expected)
        if not self.others:
            rest = (change for change in state.changes if change.entry not in named)
            yield from (f"{_describe_change(change)}, which is not expected" for change in rest)
            if state.omitted_changes:
                yield f"{state.omitted_changes} more changes than an episode records"


def _find_states(episode: Episode, name: str | None) -> Sequence[WatchedState]:
    """Return the states to judge. Raises InputError if there is none, or one is unknown."""
    found = [state for state in episode.states if name in {None, state.name}]
    if not found:
        known = format_list(state.name for state in episode.states) or "nothing"
        wanted = "" if name is None else f", not {name!r}"
        raise InputError(
            f"the episode watches {known}{wanted}; call episode.watch(...) before the agent runs"
        )
    if errors := [state.error for state in found if state.error]:
        raise InputError("; ".join(errors))
    return found


def _name_only_field(expected: Any, after: Fields | None) -> Fields | None:
    """Return the expected fields; a plain value is that of the only field, such as a content."""
    if expected is None or isinstance(expected, dict):
        return expected
    return dict.fromkeys(after or ("value",), expected)


def _compare_entry(
    entry: str, expected: Fields | None, after: Fields | None, *, exact: bool = False
) -> Iterator[str]:
    """Yield how an entry differs from the expected fields; None: it must be gone.

    `exact`: it must have no other fields.
    """
    if expected is None:
        if after is not None:
            yield f"{entry} exists, expected none: {format_value(after)}"
    elif after is None:
        yield f"{entry} is missing, expected {format_value(expected)}"
    else:
        for field in StateChange(entry=entry, before=expected, after=after).differing_fields():
            if exact or field in expected:
                found, wanted = _format_field(after, field), _format_field(expected, field)
                yield f"{entry}.{field} is {found}, expected {wanted}"


def _list_other_fields(change: StateChange, expected: Any) -> Iterator[str]:
    """Yield the fields that changed in an entry that was there before, and are not expected."""
    if change.before is None or change.after is None or not isinstance(expected, dict):
        return
    for field in change.differing_fields():
        if field not in expected:
            before, after = (
                format_value(side.get(field)) for side in (change.before, change.after)
            )
            yield f"{change.entry}.{field} changed from {before} to {after}, which is not expected"


def _describe_change(change: StateChange) -> str:
    """Return what happened to an entry, with its first field that differs."""
    if change.before is None:
        return f"{change.entry} was added: {format_value(change.after)}"
    if change.after is None:
        return f"{change.entry} was removed"
    field, *more = change.differing_fields()
    note = f" (and {pluralize(len(more), 'more field')})" if more else ""
    return f"{_describe_field(change, field)}{note}"


def _describe_field(change: StateChange, field: str) -> str:
    before, after = (_format_field(side or {}, field) for side in (change.before, change.after))
    return f"{change.entry}.{field} changed from {before} to {after}"


def _format_field(fields: Fields, field: str) -> str:
    return format_value(fields[field]) if field in fields else "none"
