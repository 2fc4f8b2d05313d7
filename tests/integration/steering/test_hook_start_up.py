"""How little the hook loads: an agent waits for it before each command."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.integration.steering.hook_events import (
    CLAUDE,
    ENABLE,
)


def answer_and_imports(event, folder):
    """Names instead of milliseconds: a busy machine must not fail a test of how fast it starts."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ci_agent_eval", "steer", "hook", ENABLE],
        input=json.dumps(event).encode(),
        env={**os.environ, "XDG_STATE_HOME": str(folder)},
        capture_output=True,
        check=True,
        timeout=600,
    )
    lines = done.stderr.decode().splitlines()
    return done.stdout, {line.rpartition("|")[2].strip() for line in lines}


def test_nothing_is_loaded_that_takes_long(tmp_path):
    _, loaded = answer_and_imports(CLAUDE, tmp_path)

    assert {"tree_sitter", "sqlite3"} <= loaded
    slow = ("pydantic", "yaml", "pytest", "httpx", "starlette", "github", "jinja2", "asyncio")
    assert not loaded.intersection(slow)


def test_what_no_command_is_needs_no_grammar(tmp_path):
    event = {**CLAUDE, "tool_name": "Write", "tool_input": {"content": "pytest"}}
    answer, loaded = answer_and_imports(event, tmp_path)

    assert answer == b""
    assert "ci_agent_eval.steering.hook" in loaded
    assert not loaded.intersection({"tree_sitter", "sqlite3", "hashlib", "click"})


def test_a_command_without_a_runner_loads_next_to_nothing(tmp_path):
    """The standard library's `typing` alone takes half as long as starting Python."""
    event = {
        **CLAUDE,
        "tool_input": {"command": "cd src && git log --oneline | head -5; echo $?"},
    }
    answer, loaded = answer_and_imports(event, tmp_path)

    assert answer == b""
    ours = {name for name in loaded if name.startswith("ci_agent_eval")}
    assert "ci_agent_eval.steering.hook.command" in ours
    assert len(ours) <= 13
    assert not loaded.intersection({"typing", "dataclasses", "pathlib", "hashlib"})
