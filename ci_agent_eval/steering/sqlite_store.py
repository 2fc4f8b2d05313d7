"""Warned commands in a SQLite file, which processes share and which outlives them.

A hook is a process for each tool call, so this is where two of them meet: a write transaction
is open while one looks and remembers, and of many that ask at once exactly one is the first.
Only digests are written.
"""

# ruff: noqa: PLC0415 - a hook needs SQLite for few of the commands it sees

from __future__ import annotations

# ruff: noqa: PLC0415 - a hook needs SQLite for few of the commands it sees
import os
from collections.abc import Iterator, Mapping
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
"""`AGST`: SQLite keeps it in the file's header."""

VERSION = 1
"""Version of the tables; SQLite's `user_version`."""

BUSY_S = 5.0
"""How long a process waits for the others."""

_TABLES = (
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, used REAL NOT NULL) WITHOUT ROWID",
    """CREATE TABLE commands (
        number INTEGER PRIMARY KEY,
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        command TEXT NOT NULL,
        UNIQUE (session, command)
    )""",
)


def get_default_store(environ: Mapping[str, str], home: Path) -> Path:
    """Return where the file is unless it is named: where users keep the state of programs.

    https://specifications.freedesktop.org/basedir-spec/latest/
    """
    named = environ.get("XDG_STATE_HOME", "")
    folder = Path(named) if Path(named).is_absolute() else home / ".local/state"
    return folder / "agent-eval/steering.sqlite3"


class SqliteWarnedCommands:
    """Remembers in a file. Threads and processes may share it: each call opens it anew."""

    def __init__(
        self, path: Path, ttl: float = DEFAULT_TTL, max_sessions: int = MAX_SESSIONS
    ) -> None:
        self._path = path
        self._ttl = ttl
        self._max_sessions = max_sessions

    def first_time(self, session: str, normal: str, now: float) -> bool:
        """Say whether the session meets this command for the first time, and remember it.

        Raises InputError where the file cannot be used.
        """
        import sqlite3

        try:
            with self._writing() as connection:
                self._prune(connection, now)
                return self._remember(connection, hash_text(session), hash_text(normal), now)
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"{self._path}: cannot be used to remember sessions ({error}); "
                "delete it, or name another one with --store"
            ) from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Open the file as its only writer; what is done is kept as a whole, or not at all."""
        import sqlite3

        _make_private(self._path)
        with closing(sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)) as opened:
            opened.execute("PRAGMA foreign_keys = ON")
            # Any death of a process leaves the file whole; what half an hour's memory need not
            # survive is a power cut, and waiting for the disk would be most of a hook's time.
            opened.execute("PRAGMA synchronous = OFF")
            opened.execute("BEGIN IMMEDIATE")
            _require_own_file(opened, self._path)
            # Closing without this rolls back.
            yield opened
            opened.execute("COMMIT")

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
            self._make_room(connection, session)
        return bool(added.rowcount)

    def _make_room(self, connection: sqlite3.Connection, session: str) -> None:
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


def _make_private(path: Path) -> None:
    """Make the file where there is none, for its owner alone; SQLite takes an empty one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o600))


def _require_own_file(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables in an empty file. Raises InputError where the file is something else."""
    mark = (_read_pragma(connection, "application_id"), _read_pragma(connection, "user_version"))
    if mark == (APPLICATION_ID, VERSION):
        return
    if mark != (0, 0) or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise InputError(
            f"{path}: is no memory of this version of steering and stays as it is; "
            "delete it, or name another one with --store"
        )
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _read_pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
