"""The ledger file of a run: a SQLite database in a private folder.

Every write is one short exclusive transaction, so values that it read are still valid when it
writes. The system frees the locks of a process that dies, and its transaction is rolled back.
The file contains only hashes, no text of a test, an agent or a provider.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ci_agent_eval.errors import InputError

if TYPE_CHECKING:
    import sqlite3

LEDGER_NAME = "run.sqlite3"

BUSY_S = 30.0
"""Timeout for the lock; a process holds it for less than a millisecond."""

_INHERITED: list[sqlite3.Connection | None] = []
"""Connections from before a fork: a child may neither use nor close them
(https://sqlite.org/howtocorrupt.html#_carrying_an_open_database_file_across_a_fork_)."""

_TABLES = """
CREATE TABLE IF NOT EXISTS spent (
    episode TEXT PRIMARY KEY, cost_usd REAL NOT NULL, tokens INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    cost_usd REAL NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    stopped TEXT
);
INSERT OR IGNORE INTO run (one) VALUES (1);
CREATE TABLE IF NOT EXISTS providers (
    provider TEXT PRIMARY KEY, requests REAL, tokens REAL, paused_until REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    provider TEXT NOT NULL,
    at REAL NOT NULL,
    tokens REAL NOT NULL,
    is_taken INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS requests_of_provider ON requests (provider, at, is_taken, tokens);
"""


def hash_parts(*parts: object) -> str:
    """Return a hash that replaces a name in the file, as the name may contain a secret."""
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()


class LedgerFile:
    """One process's connection to the file, opened on first use. Threads may share it.

    Its methods raise InputError if the file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LEDGER_NAME
        self._lock = threading.Lock()
        self._opened: sqlite3.Connection | None = None
        self._pid = 0

    @contextmanager
    def open_transaction(self) -> Iterator[sqlite3.Connection]:
        """Open an exclusive write transaction; commit it, or roll it back on an exception."""
        with self._use_connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def open_for_reading(self) -> Iterator[sqlite3.Connection]:
        """Open the connection for one query."""
        with self._use_connection() as connection:
            yield connection

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            opened, self._opened = self._opened, None
            if opened is not None and self._pid == os.getpid():
                opened.close()
            else:
                _INHERITED.append(opened)

    @contextmanager
    def _use_connection(self) -> Iterator[sqlite3.Connection]:
        import sqlite3  # noqa: PLC0415 - most runs are of one process

        with self._lock:
            try:
                yield self._get_connection()
            except (OSError, sqlite3.Error) as error:
                raise InputError(
                    f"{self._path}: cannot be used, and the workers of this run share their "
                    f"limits in it ({error}); make room in the folder of temporary files, or run "
                    "without workers (-n 0)"
                ) from None

    def _get_connection(self) -> sqlite3.Connection:
        """Return this process's connection; one from before a fork must not be used."""
        if self._opened is None or self._pid != os.getpid():
            _INHERITED.append(self._opened)
            self._opened, self._pid = _open_database(self._path), os.getpid()
        return self._opened


def _make_folder(folder: Path) -> None:
    """Create the run's folder if missing. Raises OSError if it has another owner."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} is somebody else's")


def _open_database(path: Path) -> sqlite3.Connection:
    import sqlite3  # noqa: PLC0415 - see above

    _make_folder(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(
        path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        # The death of a process never corrupts the file, and a power cut ends the run anyway.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
    except BaseException:
        connection.close()
        raise
    return connection
