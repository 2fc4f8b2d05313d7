"""Tests that depend on files, as recorded by pytest-testmon.

`.testmondata` is an SQLite file; the tables are those of testmon 2.2 (`testmon/db.py`, data
version 14): a test execution has fingerprints of files, each with the file's blob id.
"""

from __future__ import annotations

# ruff: noqa: PLC0415 - a hook needs SQLite for few of the commands it sees
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ci_agent_eval.steering.affected.deadline import Deadline
from ci_agent_eval.steering.affected.working_tree import ChangedFile

if TYPE_CHECKING:
    import sqlite3

FILE_NAME = ".testmondata"
DATA_VERSION = 14
_MAX_CHANGES = 500
_BUSY_S = 0.5
_STEPS_BETWEEN_CHECKS = 100_000
"""Steps of SQLite's virtual machine between two looks at the clock: a few milliseconds."""

_RECORDED_BLOBS = "SELECT DISTINCT filename, fsha FROM file_fp WHERE filename IN ({})"
_DEPENDENT_TESTS = """
    SELECT DISTINCT test.test_name
    FROM test_execution AS test
    JOIN test_execution_file_fp AS link ON link.test_execution_id = test.id
    JOIN file_fp AS file ON file.id = link.fingerprint_id
    WHERE file.filename IN ({})
"""


def load_dependent_tests(
    folder: Path, changes: Sequence[ChangedFile], deadline: Deadline
) -> frozenset[str] | None:
    """Return the test files that ran code of changed files, relative to `folder`.

    `changes` are paths relative to `folder`, which contains `.testmondata`. Returns None if
    there is no such file, or if a file has changed that it does not know as it was before.
    """
    import sqlite3

    path = folder / FILE_NAME
    if not changes or len(changes) > _MAX_CHANGES or not path.is_file():
        return None
    try:
        address = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_S)) as connection:
            connection.set_progress_handler(lambda: _is_over(deadline), _STEPS_BETWEEN_CHECKS)
            return _query_tests(connection, changes)
    except sqlite3.Error:
        return None


def _is_over(deadline: Deadline) -> bool:
    try:
        deadline.require_time()
    except TimeoutError:
        return True
    return False


def _query_tests(
    connection: sqlite3.Connection, changes: Sequence[ChangedFile]
) -> frozenset[str] | None:
    if connection.execute("PRAGMA user_version").fetchone()[0] != DATA_VERSION:
        return None
    paths = [change.path for change in changes]
    marks = ", ".join("?" * len(paths))
    recorded = set(connection.execute(_RECORDED_BLOBS.format(marks), paths))
    if any((change.path, change.old_blob) not in recorded for change in changes):
        return None
    names = connection.execute(_DEPENDENT_TESTS.format(marks), paths)
    return frozenset(str(name).partition("::")[0] for (name,) in names)
