"""Memory of steering in one SQLite table: the runs that sessions were warned of, and test runs.

A hook runs as a separate process for each tool call. A write transaction makes the check and the
update atomic, so that exactly one of several concurrent calls is the first. The table contains
only hashes, kinds and times.
"""

from __future__ import annotations

# ruff: noqa: PLC0415 - a hook needs SQLite and OpenSSL for few of the commands it sees
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from copy import copy
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.policy.reactor import CallKind
from ci_agent_eval.steering.policy.settings import DEFAULT_TTL

if TYPE_CHECKING:
    import sqlite3

MAX_SESSIONS = 1024
"""Maximum number of sessions; the least recently used one is dropped first."""
MAX_COMMANDS = 1024
"""Maximum number of commands per session; the oldest one is dropped first."""
MAX_CALLS = 10_000
"""Maximum number of recorded test runs; the oldest one is dropped first."""
BUSY_S = 5.0
"""Seconds that a process waits for the lock."""

_TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('warned', 'held', 'insisted', 'targeted')),
    session TEXT NOT NULL,
    call TEXT NOT NULL,
    time REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS calls_of_session ON calls (kind, session, call)
"""
_FORGET_SESSIONS = (
    "DELETE FROM calls WHERE kind = 'warned' AND session IN (SELECT session FROM calls "
    "WHERE kind = 'warned' GROUP BY session "
)
_FORGET_CALLS = (
    "DELETE FROM calls WHERE number IN (SELECT number FROM calls WHERE kind {kind} 'warned' "
    "AND session LIKE ? ORDER BY number DESC LIMIT -1 OFFSET ?)"
)


class RecordedCall(NamedTuple):
    """A recorded test run; `session` is a hash."""

    session: str
    kind: CallKind
    started: float
    """Unix time in seconds."""


class SteeringStore:
    """A memory in a file that threads and processes share, or without a path in this process."""

    def __init__(
        self,
        path: Path | None = None,
        ttl: float = DEFAULT_TTL,
        find_answer: Callable[[], object] = lambda: None,
    ) -> None:
        """Create a memory; `find_answer` returns the id of the answer that contains the call."""
        self._path = path
        self._ttl = ttl
        self.find_answer = find_answer
        self._lock = Lock()
        self._in_process = None if path else _connect(":memory:")

    def for_answer(self, answer: object) -> SteeringStore:
        """Return the same memory for the calls of one answer of the model."""
        same = copy(self)
        same.find_answer = lambda: answer
        return same

    def record_command(self, session: str, command: str, now: float) -> bool:
        """Record a session's command; return whether it is the first time.

        A command that is repeated in the answer which contained it first counts as the first.
        Raises InputError if the file is unusable.
        """
        answer, session = self.find_answer(), _hash_text(session)
        repeated = None if answer is None else _hash_text(f"{answer}\n{command}")
        with self._open() as connection:
            expired = f"{_FORGET_SESSIONS} HAVING min(abs(? - time)) > ?)"
            connection.execute(expired, (now, self._ttl))
            is_first = _remember(connection, session, _hash_text(command), now)
            if is_first and repeated is not None:
                _remember(connection, session, repeated, now)
            query = "SELECT 1 FROM calls WHERE kind = 'warned' AND session = ? AND call = ?"
            return is_first or bool(connection.execute(query, (session, repeated)).fetchone())

    def record_call(self, session: str, kind: CallKind, now: float) -> None:
        """Record a test run; a targeted one only after a held one of its session.

        Raises InputError if the file is unusable.
        """
        if kind == "targeted" and self._is_missing():
            return
        session = _hash_text(session)
        with self._open() as connection:
            query = "SELECT 1 FROM calls WHERE kind = 'held' AND session = ?"
            if kind == "targeted" and not connection.execute(query, (session,)).fetchone():
                return
            connection.execute(
                "INSERT INTO calls (kind, session, call, time) VALUES (?, ?, '', ?)",
                (kind, session, now),
            )
            connection.execute(_FORGET_CALLS.format(kind="!="), ("%", MAX_CALLS))

    def load_calls(self) -> list[RecordedCall]:
        """Return all test runs, oldest first. Raises InputError if the file is unusable."""
        if self._is_missing():
            return []
        query = "SELECT session, kind, time FROM calls WHERE kind != 'warned' ORDER BY number"
        with self._open() as connection:
            return [RecordedCall(*row) for row in connection.execute(query)]

    def _is_missing(self) -> bool:
        return self._path is not None and not self._path.exists()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the table in an exclusive write transaction. Raises InputError."""
        import sqlite3

        try:
            with self._lock, self._connect() as connection, connection:
                # A crash of a process leaves the file intact. Only a power cut can lose the data,
                # which is acceptable here; syncing would take most of a hook's time.
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute("BEGIN IMMEDIATE")
                self._create_tables(connection)
                yield connection
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"{self._path}: cannot be used to remember sessions ({error}); "
                "delete it, or name another one with --store"
            ) from None

    def _connect(self) -> AbstractContextManager[sqlite3.Connection]:
        if self._in_process is not None:
            return nullcontext(self._in_process)
        path = Path(self._path or "")
        # The file is for its owner only; SQLite accepts an empty one.
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o600))
        return closing(_connect(path))

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        """Create the table in an empty file. Raises InputError for other files."""
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if names and names != {"calls", "calls_of_session"}:
            raise InputError(
                f"{self._path}: not a session file of this version of agent-eval, so it was not "
                "changed; delete it, or name another one with --store"
            )
        for statement in _TABLES.split(";") if not names else ():
            connection.execute(statement)


def _connect(path: Path | str) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)


def _remember(connection: sqlite3.Connection, session: str, command: str, now: float) -> bool:
    """Record that a session was warned of a command; return whether that is new."""
    used = connection.execute(
        "UPDATE calls SET time = ? WHERE kind = 'warned' AND session = ? AND call = ?",
        (now, session, command),
    )
    if used.rowcount:
        return False
    connection.execute(
        "INSERT INTO calls (kind, session, call, time) VALUES ('warned', ?, ?, ?)",
        (session, command, now),
    )
    oldest = f"{_FORGET_SESSIONS} ORDER BY session = ? DESC, max(time) DESC LIMIT -1 OFFSET ?)"
    connection.execute(oldest, (session, MAX_SESSIONS))
    connection.execute(_FORGET_CALLS.format(kind="="), (session, MAX_COMMANDS))
    return True


def _hash_text(text: str) -> str:
    """Return a hash of a session's name or a command, which may contain secrets."""
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
