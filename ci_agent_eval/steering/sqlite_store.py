"""Memory of warned commands in a SQLite file that processes share.

A hook runs as a separate process for each tool call. A write transaction makes the check and
the update atomic, so that exactly one of several concurrent calls is the first. The file
contains only hashes.
"""

from __future__ import annotations

# ruff: noqa: PLC0415 - a hook needs SQLite for few of the commands it sees
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.policy.warned_commands import (
    DEFAULT_TTL,
    MAX_COMMANDS,
    MAX_SESSIONS,
    hash_text,
)

if TYPE_CHECKING:
    import sqlite3

APPLICATION_ID = 0x41475354
"""`AGST`, stored in the header of the SQLite file."""

BUSY_S = 5.0
"""Seconds that a process waits for the lock."""

_TABLES = (
    (
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, used REAL NOT NULL) WITHOUT ROWID",
        """CREATE TABLE commands (
            number INTEGER PRIMARY KEY,
            session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
            command TEXT NOT NULL,
            UNIQUE (session, command)
        )""",
    ),
    (
        """CREATE TABLE calls (
            number INTEGER PRIMARY KEY,
            session TEXT NOT NULL,
            call TEXT NOT NULL,
            kind TEXT NOT NULL CHECK (kind IN ('held', 'insisted', 'targeted')),
            started REAL NOT NULL,
            seconds REAL
        )""",
        "CREATE INDEX calls_of_session ON calls (session, number)",
    ),
)
"""The statements that lead from each version of the tables to the next."""

VERSION = len(_TABLES)
"""Version of the tables, stored as SQLite's `user_version`."""


class SqliteWarnedCommands:
    """A memory in a file; threads and processes may share it, because each call reopens it."""

    def __init__(
        self,
        path: Path,
        ttl: float = DEFAULT_TTL,
        max_sessions: int = MAX_SESSIONS,
        find_answer: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Create a memory; `find_answer` returns the id of the answer that contains the call."""
        self._path = path
        self._ttl = ttl
        self._max_sessions = max_sessions
        self._find_answer = find_answer

    def record_command(self, session: str, command: str, now: float) -> bool:
        """Record a session's command; return whether it is the first time.

        A command that is repeated in the answer which contained it first counts as the first.
        Raises InputError if the file is unusable.
        """
        answer = self._find_answer()
        repeated = None if answer is None else hash_text(f"{answer}\n{command}")
        hashes = hash_text(session), hash_text(command)
        with open_store(self._path) as connection:
            self._prune(connection, now)
            is_first = self._remember(connection, *hashes, now)
            if repeated is not None and is_first:
                self._remember(connection, hashes[0], repeated, now)
            return is_first or _has_command(connection, hashes[0], repeated)

    def _prune(self, connection: sqlite3.Connection, now: float) -> None:
        connection.execute("DELETE FROM sessions WHERE abs(? - used) > ?", (now, self._ttl))

    def _remember(
        self, connection: sqlite3.Connection, session: str, command: str, now: float
    ) -> bool:
        connection.execute(
            "INSERT INTO sessions VALUES (?, ?) ON CONFLICT DO UPDATE SET used = excluded.used",
            (session, now),
        )
        added = connection.execute(
            "INSERT OR IGNORE INTO commands (session, command) VALUES (?, ?)", (session, command)
        )
        if added.rowcount:
            self._delete_oldest(connection, session)
        return bool(added.rowcount)

    def _delete_oldest(self, connection: sqlite3.Connection, session: str) -> None:
        connection.execute(
            "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE id != ? "
            "ORDER BY used DESC, id LIMIT -1 OFFSET ?)",
            (session, self._max_sessions - 1),
        )
        connection.execute(
            "DELETE FROM commands WHERE number IN (SELECT number FROM commands "
            "WHERE session = ? ORDER BY number DESC LIMIT -1 OFFSET ?)",
            (session, MAX_COMMANDS),
        )


@contextmanager
def open_store(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file in an exclusive write transaction; create or update its tables.

    Raises InputError if the file is unusable.
    """
    import sqlite3

    try:
        _make_private(path)
        with closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            # A crash of a process leaves the file intact. Only a power cut can lose the data,
            # which is acceptable here; syncing would take most of a hook's time.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN IMMEDIATE")
            _update_tables(connection, path)
            yield connection
            # Without a commit, closing rolls back.
            connection.execute("COMMIT")
    except (OSError, sqlite3.Error) as error:
        raise InputError(
            f"{path}: cannot be used to remember sessions ({error}); "
            "delete it, or name another one with --store"
        ) from None


def _has_command(connection: sqlite3.Connection, session: str, command: str | None) -> bool:
    query = "SELECT 1 FROM commands WHERE session = ? AND command = ?"
    return connection.execute(query, (session, command)).fetchone() is not None


def _make_private(path: Path) -> None:
    """Create an empty file for its owner only, if none exists; SQLite accepts an empty file."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o600))


def _update_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables that the file lacks. Raises InputError for other files."""
    version = _read_pragma(connection, "user_version")
    if _read_pragma(connection, "application_id") == APPLICATION_ID:
        is_known = 0 < version <= VERSION
    else:
        is_empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        is_known = is_empty and version == _read_pragma(connection, "application_id") == 0
    if not is_known:
        raise InputError(
            f"{path}: not a session file of this version of agent-eval, so it was not changed; "
            "delete it, or name another one with --store"
        )
    if version == VERSION:
        return
    for statements in _TABLES[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _read_pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
