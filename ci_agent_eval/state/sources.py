"""Sources: whatever an author watches, as something that takes snapshots."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from ci_agent_eval.contract.jsonable import clean_text, describe_error, to_jsonable
from ci_agent_eval.contract.state import (
    Entries,
    Fields,
    StateKind,
    WatchedState,
    compare_states,
    matches_any,
)
from ci_agent_eval.errors import InputError

MAX_ENTRIES = 10_000
"""Rows, files or values of one state."""
MAX_BYTES = 32_000_000
"""Bytes of the fields of one state, and of the files that are read."""
MAX_TEXT = 64_000
"""Bytes of a binary value or a file that are kept; a larger one is kept as its hash."""

_SQLITE_HEADER = b"SQLite format 3\0"
_TABLES = (
    "select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' "
    "escape '\\' order by name"
)
_REMEDY = 'leave out tables or folders with ignore=["NAME/*"]'


class Snapshot:
    """Collects the entries of a state; ignored entries and fields are left out."""

    def __init__(self, ignored: tuple[str, ...]) -> None:
        self.entries: dict[str, Fields] = {}
        self._ignored = ignored
        self._bytes = 0

    def is_ignored(self, name: str) -> bool:
        """Say whether an entry is ignored; of a table or folder, which ends in `/`, all of it."""
        return matches_any(name, self._ignored)

    def add(self, name: str, fields: Mapping[str, Any]) -> None:
        """Add an entry; one of the same name gets a number. Raises InputError at the limits."""
        name = clean_text(name)
        if self.is_ignored(name):
            return
        kept = {
            clean_text(str(key)): _convert_value(value)
            for key, value in fields.items()
            if not self.is_ignored(f"{name}.{key}")
        }
        self.count_bytes(len(json.dumps(kept)))
        if len(self.entries) >= MAX_ENTRIES:
            raise InputError(f"it has more than {MAX_ENTRIES:,} entries; {_REMEDY}")
        number, numbered = 1, name
        while numbered in self.entries:
            number += 1
            numbered = f"{name} #{number}"
        self.entries[numbered] = kept

    def count_bytes(self, number: int) -> None:
        """Count bytes that are read. Raises InputError at the limit."""
        self._bytes += number
        if self._bytes > MAX_BYTES:
            raise InputError(f"it has more than {MAX_BYTES // 1_000_000} MB; {_REMEDY}")


def _convert_value(value: Any) -> Any:
    return _describe_bytes(value) if isinstance(value, bytes) else to_jsonable(value)


def _describe_bytes(data: bytes) -> Any:
    """Return short UTF-8 as text, and anything else as its size and hash."""
    if len(data) <= MAX_TEXT:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


@dataclass(frozen=True, slots=True)
class StateSource:
    """A function, folder or SQLite file that snapshots are taken of."""

    name: str
    kind: StateKind
    read: Callable[[Snapshot], None]
    """Adds every entry of the state to a snapshot."""

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
    if callable(watched):
        default_name = getattr(watched, "__name__", "value").strip("<>")
        return StateSource(name or default_name, "value", partial(_read_value, watched))
    raise InputError(
        f"the state of a {type(watched).__name__} cannot be watched; give a function that returns "
        "a mapping, such as the rows of a table by their keys, a folder, or a SQLite file"
    )


def _build_path_source(path: Path, name: str | None) -> StateSource:
    if path.is_dir():
        return StateSource(name or path.name, "folder", partial(_read_folder, path))
    if not path.is_file():
        raise InputError(f"the state of {str(path)!r} cannot be watched: it does not exist yet")
    with path.open("rb") as file:
        header = file.read(len(_SQLITE_HEADER))
    if header not in {_SQLITE_HEADER, b""}:
        raise InputError(
            f"the state of {str(path)!r} cannot be watched: it is not a SQLite file; give its "
            "folder"
        )
    return StateSource(name or path.name, "database", partial(_read_sqlite_file, path))


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


def _read_folder(folder: Path, snapshot: Snapshot) -> None:
    """Add every file below a folder; links are read as links and not followed."""
    if not folder.is_dir():
        raise InputError("there is no such folder")
    for path in _list_files(folder, folder, snapshot):
        name = path.relative_to(folder).as_posix()
        if not snapshot.is_ignored(name):
            snapshot.add(name, _read_file(path, snapshot))


def _list_files(root: Path, folder: Path, snapshot: Snapshot) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_dir():
            yield path
        elif not snapshot.is_ignored(f"{path.relative_to(root).as_posix()}/"):
            yield from _list_files(root, path, snapshot)


def _read_file(path: Path, snapshot: Snapshot) -> dict[str, object]:
    if path.is_symlink():
        return {"link": os.fsdecode(path.readlink())}
    if not path.is_file():
        return {"content": "no regular file"}
    size = path.stat().st_size
    snapshot.count_bytes(size)
    if size <= MAX_TEXT:
        return {"content": _describe_bytes(path.read_bytes())}
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"content": {"bytes": size, "sha256": digest}}


def _read_sqlite_file(path: Path, snapshot: Snapshot) -> None:
    """Add the rows of all tables, without changing or locking the file."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        for (table,) in connection.execute(_TABLES).fetchall():
            if not snapshot.is_ignored(f"{table}/"):
                _read_table(connection, table, snapshot)


def _read_table(connection: sqlite3.Connection, table: str, snapshot: Snapshot) -> None:
    """Add the rows by primary key; without one by a hash, so that rows are added or removed."""
    columns = connection.execute("select name, pk from pragma_table_info(?)", (table,)).fetchall()
    key = [column for column, place in sorted(columns, key=lambda one: one[1]) if place]
    quoted = table.replace('"', '""')
    query = f'select * from "{quoted}"'  # noqa: S608 - a name, quoted as SQL asks
    with closing(connection.execute(query)) as rows:  # else a refusal would keep the file locked
        names = [column[0] for column in rows.description]
        for values in rows:
            row = dict(zip(names, values, strict=True))
            parts = [str(row[column]) for column in key] or [f"row {_hash_row(row)}"]
            snapshot.add(f"{table}/{','.join(parts)}", row)


def _hash_row(row: Mapping[str, Any]) -> str:
    text = json.dumps(to_jsonable(dict(row)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
