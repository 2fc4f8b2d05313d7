"""The state that an agent changes: databases, folders and values, before and after.

A state is a mapping of entries: the rows of all tables, the files of a folder, or values. Each
entry has a name, such as `orders/1001` or `reports/may.txt`, and fields.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from pydantic import Field, JsonValue, PrivateAttr

from ci_agent_eval.contract.base import Count, FrozenModel, is_equal_json

StateKind = Literal["database", "folder", "value"]

Fields = dict[str, JsonValue]
Entries = Mapping[str, Fields]
"""A whole state: the fields of each entry by its name."""

MAX_RECORDED = 256_000
"""Characters of all changes of a state that an episode records; it counts the others."""


class StateChange(FrozenModel):
    """An entry that was added, removed or changed."""

    entry: str
    before: Fields | None = Field(default=None, description="its fields before; unset: added")
    after: Fields | None = Field(default=None, description="its fields after; unset: removed")

    def differing_fields(self) -> tuple[str, ...]:
        """Return the names of the fields that differ, sorted."""
        before, after = self.before or {}, self.after or {}
        names = sorted({*before, *after})
        return tuple(
            name
            for name in names
            if name not in before
            or name not in after
            or not is_equal_json(before[name], after[name])
        )


class WatchedState(FrozenModel):
    """A watched database, folder or value, with the changes by the episode."""

    name: str
    kind: StateKind
    ignored: tuple[str, ...] = Field(
        default=(), description="patterns of entries and fields that were not compared"
    )
    entries: Count = Field(default=0, description="number of entries at the end")
    sha256: str | None = Field(
        default=None, description="hash of the whole final state; unset: it could not be read"
    )
    changes: tuple[StateChange, ...] = Field(default=(), description="by the name of the entry")
    omitted_changes: Count = Field(default=0, description="changes that were too large to record")
    error: str | None = Field(default=None, description="why the final state is unknown")

    _final: Entries | None = PrivateAttr(default=None)

    @property
    def final(self) -> Entries | None:
        """The whole final state; None: the episode was read from a file, which has the changes."""
        return self._final


def compare_states(
    name: str, kind: StateKind, before: Entries, after: Entries, ignored: tuple[str, ...] = ()
) -> WatchedState:
    """Return the changes between two states, as far as they fit into a record."""
    changes = tuple(list_changes(before, after))
    recorded = _count_recorded(changes)
    state = WatchedState(
        name=name,
        kind=kind,
        ignored=ignored,
        entries=len(after),
        sha256=hash_entries(after),
        changes=changes[:recorded],
        omitted_changes=len(changes) - recorded,
    )
    state._final = after  # noqa: SLF001 - it is not part of the file
    return state


def list_changes(before: Entries, after: Entries) -> Iterator[StateChange]:
    """Yield the entries that differ, by name."""
    for entry in sorted({*before, *after}):
        old, new = before.get(entry), after.get(entry)
        if old is None or new is None or not is_equal_json(old, new):
            yield StateChange(entry=entry, before=old, after=new)


def _count_recorded(changes: tuple[StateChange, ...]) -> int:
    room = MAX_RECORDED
    for number, change in enumerate(changes):
        room -= len(change.entry) + len(_encode(change.before)) + len(_encode(change.after))
        if room < 0:
            return number
    return len(changes)


def hash_entries(entries: Entries) -> str:
    """Return the SHA-256 of a state: equal states have equal hashes."""
    return hashlib.sha256(_encode(entries).encode()).hexdigest()


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a name matches one of the patterns, in which `*` stands for any characters."""
    return any(_compile(pattern).fullmatch(name) for pattern in patterns)


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
