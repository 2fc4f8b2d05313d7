"""Dependencies that pytest-testmon recorded; the tables are those of its version 2.2."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from ci_agent_eval.steering.affected.deadline import Deadline
from ci_agent_eval.steering.affected.testmon_data import load_dependent_tests
from ci_agent_eval.steering.affected.working_tree import ChangedFile

OLD = "a" * 40
SCHEMA = """
CREATE TABLE test_execution (id INTEGER PRIMARY KEY ASC, environment_id INTEGER,
    test_name TEXT, duration FLOAT, failed BIT, forced BIT);
CREATE TABLE file_fp (id INTEGER PRIMARY KEY, filename TEXT, method_checksums BLOB,
    mtime FLOAT, fsha TEXT, UNIQUE (filename, fsha, method_checksums));
CREATE TABLE test_execution_file_fp (test_execution_id INTEGER, fingerprint_id INTEGER);
"""


@pytest.fixture
def recorded(tmp_path):
    """Write the data of two tests that ran `prices.py`, and load it for a change."""

    def load(change, version=14, seconds=600):
        with closing(sqlite3.connect(tmp_path / ".testmondata")) as connection, connection:
            connection.executescript(f"{SCHEMA} PRAGMA user_version = {version};")
            connection.executemany(
                "INSERT INTO test_execution (id, test_name) VALUES (?, ?)",
                [(1, "tests/test_a.py::test_1"), (2, "tests/test_a.py::test_2[x]"), (3, "b.py::t")],
            )
            connection.executemany(
                "INSERT INTO file_fp VALUES (?, ?, ?, 0.0, ?)",
                [(1, "prices.py", b"1", OLD), (2, "prices.py", b"2", OLD), (3, "x.py", b"", OLD)],
            )
            connection.executemany(
                "INSERT INTO test_execution_file_fp VALUES (?, ?)", [(1, 1), (2, 2), (3, 3)]
            )
        return load_dependent_tests(tmp_path, [change], Deadline(seconds))

    return load


def test_the_files_of_the_tests_that_ran_a_changed_file(recorded):
    assert recorded(ChangedFile("prices.py", OLD)) == {"tests/test_a.py"}


@pytest.mark.parametrize(
    "change",
    [ChangedFile("prices.py", "b" * 40), ChangedFile("new.py"), ChangedFile("y.py", OLD)],
    ids=["recorded of another version", "new", "unknown"],
)
def test_data_that_does_not_know_the_file_as_it_was_is_unknown(recorded, change):
    assert recorded(change) is None


def test_data_of_another_format_is_unknown(recorded):
    assert recorded(ChangedFile("prices.py", OLD), version=13) is None


def test_no_file_and_a_broken_file_are_unknown(tmp_path):
    change = ChangedFile("prices.py", OLD)
    assert load_dependent_tests(tmp_path, [change], Deadline(600)) is None
    (tmp_path / ".testmondata").write_text("no database" * 99)
    assert load_dependent_tests(tmp_path, [change], Deadline(600)) is None
