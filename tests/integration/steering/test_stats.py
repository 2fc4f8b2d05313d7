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


def build_claude_event(command, **fields):
    return {
        "session_id": "s",
        "transcript_path": "/t",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        **fields,
    }


def test_a_session_of_claude_code_is_counted_and_measured(steer):
    hook = ["hook", "--for=claude-code", ENABLE]
    ended = {"hook_event_name": "PostToolUse", "tool_response": {}, "duration_ms": 1500}
    failed = {"hook_event_name": "PostToolUseFailure", "error": "x", "duration_ms": 90_000}
    for event in (
        build_claude_event("pytest"),
        build_claude_event("pytest --co"),
        build_claude_event("pytest tests/test_a.py"),
        build_claude_event("pytest tests/test_a.py", **ended),
        build_claude_event("pytest -q"),
        build_claude_event("pytest -q", **failed),
        build_claude_event("ls", **ended),
        build_claude_event("pytest tests/test_a.py", **{**ended, "duration_ms": "soon"}),
    ):
        code, _, errors = steer(*hook, event=event)
        assert (code, errors) == (0, "")

    code, text, _ = steer("stats")
    assert code == 0
    assert [line.partition(" in ")[0].split(" (")[0] for line in text.splitlines()] == [
        "held back:     1 full run",
        "redirected:    0",
        "insisted:      1",
        "neither:       0",
        "full runs:     1, 1 of them measured: median 90.0 s, total 90.0 s",
        "targeted runs: 1, 1 of them measured: median 1.5 s, total 1.5 s",
    ]
    assert json.loads(steer("stats", "--format", "json")[1])["full_runs"]["total_seconds"] == 90.0


def test_a_session_of_cursor_is_measured(steer):
    hook = ["hook", "--for=cursor", ENABLE]
    for event in (
        {"hook_event_name": "beforeShellExecution", "command": "pytest"},
        {"hook_event_name": "beforeShellExecution", "command": "pytest a.py"},
        {"hook_event_name": "afterShellExecution", "command": "pytest a.py", "duration": 250},
    ):
        assert steer(*hook, event={**event, "conversation_id": "c"})[0] == 0

    stats = json.loads(steer("stats", "--format", "json")[1])
    assert (stats["redirected"], stats["targeted_runs"]["total_seconds"]) == (1, 0.25)


def test_without_a_session_there_is_nothing_to_count(steer, tmp_path):
    assert steer("stats") == (0, "no full run was held back yet\n", "")
    assert not (tmp_path / "state").exists()


def test_another_file_is_refused(steer, tmp_path):
    (tmp_path / "other").write_text("no database" * 99)

    code, _, errors = steer("stats", "--store", "other")
    assert code == 2
    assert "delete it, or name another one with --store" in errors
