"""Sources: whatever an author watches, as something that takes snapshots."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from ci_agent_eval.contract.jsonable import describe_error
from ci_agent_eval.contract.state import Entries, StateKind, WatchedState, compare_states
from ci_agent_eval.errors import InputError
from ci_agent_eval.state.databases import (
    SQLITE_HEADER,
    read_sqlalchemy,
    read_sqlite,
    read_sqlite_file,
)
from ci_agent_eval.state.folders import read_folder
from ci_agent_eval.state.http_mocks import read_requests, records_requests
from ci_agent_eval.state.snapshot import ReadState, Snapshot


@dataclass(frozen=True, slots=True)
class StateSource:
    """A database, folder, mock or value that snapshots are taken of."""

    name: str
    kind: StateKind
    read: ReadState

    def take_snapshot(self, ignored: tuple[str, ...] = ()) -> Entries:
        """Return all entries but the ignored ones. Raises InputError, which names the source."""
        snapshot = Snapshot(ignored)
        try:
            self.read(snapshot)
        except Exception as error:
            reason = str(error) if isinstance(error, InputError) else describe_error(error)
            raise InputError(f"the state of {self.name!r} cannot be read: {reason}") from error
        return snapshot.entries


@dataclass(frozen=True, slots=True)
class StateWatch:
    """A source with its state before the agent ran."""

    source: StateSource
    before: Entries
    ignored: tuple[str, ...]

    def compare(self) -> WatchedState:
        """Return what has changed since then; the error, if the state cannot be read."""
        name, kind = self.source.name, self.source.kind
        try:
            after = self.source.take_snapshot(self.ignored)
        except InputError as error:
            return WatchedState(name=name, kind=kind, ignored=self.ignored, error=str(error))
        return compare_states(name, kind, self.before, after, self.ignored)


def watch_state(watched: object, name: str | None, ignored: tuple[str, ...]) -> StateWatch:
    """Take the first snapshot of a state. Raises InputError if it cannot be read."""
    source = build_source(watched, name)
    return StateWatch(source, source.take_snapshot(ignored), ignored)


def build_source(watched: Any, name: str | None = None) -> StateSource:
    """Return the source for a value. Raises InputError for one that cannot be watched."""
    if isinstance(watched, str | PathLike):
        return _build_path_source(Path(fspath(watched)).absolute(), name)
    if isinstance(watched, sqlite3.Connection):
        return StateSource(name or "database", "database", partial(read_sqlite, watched))
    if type(watched).__module__.startswith("sqlalchemy.") and not _is_async(watched):
        return StateSource(name or "database", "database", partial(read_sqlalchemy, watched))
    if records_requests(watched):
        return StateSource(name or "requests", "requests", partial(read_requests, watched))
    if isinstance(watched, Mapping):
        return StateSource(name or "value", "value", partial(_read_value, lambda: watched))
    if callable(watched):
        given = name or getattr(watched, "__name__", "value").strip("<>")
        return StateSource(given, "value", partial(_read_value, watched))
    raise InputError(
        f"the state of a {type(watched).__name__} cannot be watched; give a folder, a SQLite file "
        "or connection, an engine, connection or session of SQLAlchemy (not an async one), a mock "
        "of HTTP, a mapping, or a function that returns a mapping"
    )


def _is_async(watched: object) -> bool:
    return type(watched).__module__.startswith("sqlalchemy.ext.asyncio")


def _build_path_source(path: Path, name: str | None) -> StateSource:
    if path.is_dir():
        return StateSource(name or path.name, "folder", partial(read_folder, path))
    if not path.is_file():
        raise InputError(f"the state of {str(path)!r} cannot be watched: it does not exist yet")
    with path.open("rb") as file:
        header = file.read(len(SQLITE_HEADER))
    if header not in {SQLITE_HEADER, b""}:
        raise InputError(
            f"the state of {str(path)!r} cannot be watched: it is no SQLite file; give its folder"
        )
    return StateSource(name or path.name, "database", partial(read_sqlite_file, path.as_uri()))


def _read_value(get_value: Callable[[], object], snapshot: Snapshot) -> None:
    value = get_value()
    if not isinstance(value, Mapping):
        raise InputError(f"it is a {type(value).__name__}; return a mapping")
    for name, fields in _list_entries(value):
        snapshot.add(name, fields)


def _list_entries(value: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield entries: a mapping of mappings is a table, any other value is an entry."""
    for key, item in value.items():
        name = f"{prefix}{key}"
        if not isinstance(item, Mapping):
            yield name, {"value": item}
        elif item and all(isinstance(inner, Mapping) for inner in item.values()):
            yield from _list_entries(item, f"{name}/")
        else:
            yield name, item
