"""The SQLite file of the experiment store: created atomically, refused if it is foreign.

SQLite's write-ahead log allows concurrent readers and one writer, and a killed process leaves
no partial transaction behind (https://sqlite.org/wal.html).
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import open_regular

APPLICATION_ID = 0x41474556
"""`AGEV`: SQLite stores it in the file's header, at byte 68."""

VERSION = 1
"""Version of the tables; SQLite's `user_version`."""

BUSY_S = 30.0
"""Seconds that a writer waits for another one."""

SCHEMA = """
CREATE TABLE datasets (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE items (
    id TEXT PRIMARY KEY,
    dataset_id INTEGER NOT NULL REFERENCES datasets (id),
    hash TEXT NOT NULL,
    content TEXT NOT NULL,
    UNIQUE (dataset_id, hash)
) WITHOUT ROWID;
CREATE TABLE experiments (
    uid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    dataset_id INTEGER NOT NULL REFERENCES datasets (id),
    started TEXT NOT NULL,
    ended TEXT,
    "commit" TEXT,
    settings TEXT NOT NULL,
    sink TEXT,
    sent TEXT
) WITHOUT ROWID;
CREATE TABLE results (
    experiment TEXT NOT NULL REFERENCES experiments (uid),
    nodeid TEXT NOT NULL,
    item_id TEXT REFERENCES items (id),
    trace_id TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 1,
    outcome TEXT NOT NULL,
    reason TEXT,
    scores TEXT NOT NULL DEFAULT '[]',
    started TEXT NOT NULL,
    ended TEXT,
    PRIMARY KEY (experiment, nodeid)
) WITHOUT ROWID;
"""

_MAGIC = b"SQLite format 3\x00"
_GITIGNORE = "# Created by agent-eval\n*\n"


def open_database(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open the file; `create` creates a missing one, with its folder.

    Raises InputError if it is missing, belongs to another program, has another version of the
    tables, or cannot be used.
    """
    try:
        if create and not path.exists():
            _create_file(path)
        elif path.is_file() and not path.stat().st_size:
            _create_tables(path, create=create)
        _check_header(path)
        return _open_connection(path)
    except FileNotFoundError:
        raise InputError(
            f"{path}: there is no experiment store; run tests that use @llm_unit first, or name "
            "another one"
        ) from None
    except (OSError, sqlite3.Error) as error:
        why = _describe_error(error)
        raise InputError(
            f"{path}: cannot be used as the experiment store ({why}); name another one"
        ) from None


def _open_connection(path: Path) -> sqlite3.Connection:
    """Open a verified file. Raises sqlite3.Error, after closing the connection."""
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        # With the write-ahead log this survives the death of the process; only a power cut may
        # lose the last transactions, without corrupting the file.
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _describe_error(error: OSError | sqlite3.Error) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _check_header(path: Path) -> None:
    """Read the header. Raises InputError for a foreign file or another version of the tables."""
    with open_regular(path, follow=True) as file:
        header = file.read(100)
    application, version = header[68:72], int.from_bytes(header[60:64], "big")
    if header[:16] != _MAGIC or int.from_bytes(application, "big") != APPLICATION_ID:
        raise InputError(
            f"{path}: is no experiment store of this program and stays as it is; name another one"
        )
    if version != VERSION:
        raise InputError(
            f"{path}: was written by another version of this program (tables of version {version}, "
            f"not {VERSION}); use that version, or name another store"
        )


def _create_file(path: Path) -> None:
    """Create the file under a temporary name and move it into place when it is complete.

    If several processes do so at once, one wins, and the others use its file.
    """
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / ".gitignore").write_text(_GITIGNORE, encoding="utf-8", newline="\n")
    with tempfile.TemporaryDirectory(prefix=".store-", dir=path.parent) as folder:
        fresh = Path(folder) / path.name
        with closing(sqlite3.connect(fresh)) as connection:
            connection.executescript(
                f"PRAGMA journal_mode = WAL;\nPRAGMA application_id = {APPLICATION_ID};\n"
                f"BEGIN;\n{SCHEMA}\nPRAGMA user_version = {VERSION};\nCOMMIT;"
            )
        _move_into_place(fresh, path)


def _create_tables(path: Path, *, create: bool) -> None:
    """Create the tables in an empty file, which SQLite treats as an empty database.

    In place, and by one process at a time: another one may have the file open. Raises
    FileNotFoundError without `create`.
    """
    if not create:
        raise FileNotFoundError(path)
    with closing(sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)) as connection:
        with open_transaction(connection):
            if connection.execute("PRAGMA application_id").fetchone() == (0,):
                for statement in f"PRAGMA application_id = {APPLICATION_ID};{SCHEMA}".split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("PRAGMA journal_mode = WAL")


def _move_into_place(fresh: Path, path: Path) -> None:
    try:
        os.link(fresh, path)
    except OSError:
        if not path.exists():  # no hard links here; otherwise another process was first
            fresh.rename(path)


@contextmanager
def open_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in an exclusive write transaction; roll back if it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
