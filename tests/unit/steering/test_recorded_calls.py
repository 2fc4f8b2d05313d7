"""The ledger of test runs in the hook's file: what it keeps, its limits."""

from __future__ import annotations

import pytest

from ci_agent_eval.steering import store
from ci_agent_eval.steering.policy.model import ToolCallRequest
from ci_agent_eval.steering.store import SteeringStore

FULL = ToolCallRequest("Bash", {"command": "pytest --token=secret"})
TARGETED = ToolCallRequest("Bash", {"command": "pytest tests/test_a.py"})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "steering.sqlite3"


@pytest.fixture
def ledger(path):
    return SteeringStore(path)


def test_sessions_that_were_never_held_back_leave_no_file_and_no_call(ledger, path):
    ledger.record_call("s", TARGETED, "targeted", 1.0)
    assert ledger.load_calls() == []
    assert not path.exists()

    ledger.record_call("other", FULL, "held", 1.0)
    ledger.record_call("s", TARGETED, "targeted", 2.0)
    assert [call.kind for call in ledger.load_calls()] == ["held"]


def test_the_oldest_calls_are_dropped(ledger, monkeypatch):
    monkeypatch.setattr(store, "MAX_CALLS", 3)
    for number in range(5):
        ledger.record_call(str(number), FULL, "held", float(number))

    assert [call.started for call in ledger.load_calls()] == [2.0, 3.0, 4.0]


def test_the_file_holds_no_text(ledger, path):
    ledger.record_call("session-name", FULL, "held", 1.0)

    content = path.read_bytes()
    assert b"secret" not in content
    assert b"session-name" not in content
    assert b"Bash" not in content
