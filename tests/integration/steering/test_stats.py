"""`agent-eval steer stats` after a session of hook processes."""

from __future__ import annotations

import json

import pytest

from tests.integration.steering.in_process import run_steer

ENABLE = "--enable-pytest-full-suite-steering"


@pytest.fixture
def steer(tmp_path):
    def run(*words, event=None):
        given, state = json.dumps(event).encode(), str(tmp_path / "state")
        done = run_steer(tmp_path, *words, given=given, XDG_STATE_HOME=state)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


def build_claude_event(command):
    return {
        "session_id": "s",
        "transcript_path": "/t",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
    }


def test_a_session_is_counted(steer):
    commands = ["pytest", "pytest --co", "pytest tests/test_a.py", "pytest -q", "ls"]
    for command in commands:
        code, _, errors = steer(
            "hook", "--for=claude-code", ENABLE, event=build_claude_event(command)
        )
        assert (code, errors) == (0, "")

    code, text, _ = steer("stats")
    assert code == 0
    assert [line.partition(" in ")[0].split(" (")[0] for line in text.splitlines()] == [
        "held back:     1 full run",
        "redirected:    0",
        "insisted:      1",
        "neither:       0",
        "full runs:     1",
        "targeted runs: 1",
    ]
    assert json.loads(steer("stats", "--format", "json")[1])["full_runs"] == 1


def test_without_a_session_there_is_nothing_to_count(steer, tmp_path):
    assert steer("stats") == (0, "no full run was held back yet\n", "")
    assert not (tmp_path / "state").exists()


def test_another_file_is_refused(steer, tmp_path):
    (tmp_path / "other").write_text("no database" * 99)

    code, _, errors = steer("stats", "--store", "other")
    assert code == 2
    assert "delete it, or name another one with --store" in errors
