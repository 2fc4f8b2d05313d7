"""The ledger of test runs in the hook's file: what it keeps, its limits and older files."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering import sqlite_ledger
from ci_agent_eval.steering.policy.model import ToolCallRequest
from ci_agent_eval.steering.sqlite_ledger import SqliteCallLedger
from ci_agent_eval.steering.sqlite_store import SqliteWarnedCommands

FULL = ToolCallRequest("Bash", {"command": "pytest --token=secret"})
TARGETED = ToolCallRequest("Bash", {"command": "pytest tests/test_a.py"})

FIRST_VERSION = """
    CREATE TABLE sessions (id TEXT PRIMARY KEY, used REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE commands (number INTEGER PRIMARY KEY,
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        command TEXT NOT NULL, UNIQUE (session, command));
    PRAGMA application_id = 0x41475354; PRAGMA user_version = 1;
"""
"""The file before there was a ledger."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "steering.sqlite3"


@pytest.fixture
def ledger(path):
    return SqliteCallLedger(path)


def list_calls(ledger):
    return [(call.kind, call.seconds) for call in ledger.load_calls()]


def test_a_duration_belongs_to_the_newest_equal_call_of_its_session(ledger):
    for session in "ab":
        ledger.record_call(session, FULL, "held", 1.0)
        ledger.record_call(session, TARGETED, "targeted", 2.0)
        ledger.record_call(session, TARGETED, "targeted", 3.0)
    ledger.record_duration("a", TARGETED, 0.5)
    ledger.record_duration("a", TARGETED, 9.0)
    ledger.record_duration("b", FULL, 9.0)
    ledger.record_duration("c", TARGETED, 9.0)

    assert [call.seconds for call in ledger.load_calls()] == [None, None, 0.5, None, None, None]


def test_sessions_that_were_never_held_back_leave_no_file_and_no_call(ledger, path):
    ledger.record_call("s", TARGETED, "targeted", 1.0)
    ledger.record_duration("s", TARGETED, 1.0)
    assert ledger.load_calls() == []
    assert not path.exists()

    ledger.record_call("other", FULL, "held", 1.0)
    ledger.record_call("s", TARGETED, "targeted", 2.0)
    assert list_calls(ledger) == [("held", None)]


def test_the_oldest_calls_are_dropped(ledger, monkeypatch):
    monkeypatch.setattr(sqlite_ledger, "MAX_CALLS", 3)
    for number in range(5):
        ledger.record_call(str(number), FULL, "held", float(number))

    assert [call.started for call in ledger.load_calls()] == [2.0, 3.0, 4.0]


def test_the_file_holds_no_text(ledger, path):
    ledger.record_call("session-name", FULL, "held", 1.0)

    content = path.read_bytes()
    assert b"secret" not in content
    assert b"session-name" not in content
    assert b"Bash" not in content


def test_an_older_file_keeps_its_memory_and_gets_a_ledger(ledger, path):
    SqliteWarnedCommands(path).record_command("s", "pytest", 1.0)
    with closing(sqlite3.connect(path)) as new:
        sessions, commands = (
            new.execute(f"SELECT * FROM {table}").fetchall() for table in ("sessions", "commands")
        )
    path.unlink()
    with closing(sqlite3.connect(path)) as old, old:
        old.executescript(FIRST_VERSION)
        old.executemany("INSERT INTO sessions VALUES (?, ?)", sessions)
        old.executemany("INSERT INTO commands VALUES (?, ?, ?)", commands)

    assert not SqliteWarnedCommands(path).record_command("s", "pytest", 2.0)
    ledger.record_call("s", FULL, "insisted", 2.0)
    assert list_calls(ledger) == [("insisted", None)]


def test_a_file_of_a_later_version_stays_as_it_is(ledger, path):
    with closing(sqlite3.connect(path)) as later, later:
        later.executescript(f"{FIRST_VERSION} PRAGMA user_version = 99;")
    before = path.read_bytes()

    with pytest.raises(InputError, match="not a session file of this version of agent-eval"):
        ledger.record_call("s", FULL, "held", 1.0)
    assert path.read_bytes() == before
