"""`agent-eval steer doctor`: does the hook in the settings hold a full run?"""

from __future__ import annotations

import functools
import json
import re
import sys
from pathlib import Path

import pytest

from ci_agent_eval.steering.hook.agents import AGENTS
from tests.integration.steering.test_install import run_text
from tests.tables import each_row


@pytest.fixture
def steer(tmp_path):
    (tmp_path / "app").mkdir()
    return functools.partial(run_text, tmp_path)


@pytest.fixture
def settings(tmp_path):
    return tmp_path / "app/.claude/settings.json"


def test_the_hooks_of_all_agents_hold_a_full_run(steer, tmp_path):
    for number, name in enumerate(AGENTS):
        steer("install", "--for", name, "--user" if number % 2 else "--project")

    done = steer("doctor")

    steps = {name: each.next_step for name, each in AGENTS.items()}
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{name}: the hook holds a full run" + (f". {step}" if step else "")
        for name, step in steps.items()
    ]
    assert not (tmp_path / ".local").exists()


def test_a_missing_hook_is_found(steer):
    assert steer("doctor").returncode == 2
    done = steer("doctor", "--for", "claude-code")

    install = "agent-eval steer install --for claude-code"
    missing = f"claude-code: no settings contain the hook; run `{install}`\n"
    assert (done.returncode, done.stdout) == (1, missing)


def test_a_command_that_install_does_not_write_is_not_run(steer, settings, tmp_path):
    ran, script = tmp_path / "ran", tmp_path / "app/agent-eval"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    own = Path(sys.executable).with_name("agent-eval")
    cases = {
        f"./agent-eval steer hook --for claude-code; touch {ran}": "the program is not an absolute path: ./agent-eval",
        "agent-eval steer hook --for claude-code": "the program is not an absolute path: agent-eval",
        f"{own} steer hook --for claude-code; touch {ran}": "is not quoted as",
        f"{own} steer hook --for claude-code --config $(touch${{IFS}}{ran})": "is not quoted as",
        f"{own} steer hook --config\n{script}": "is not quoted as",
        f"{own} steer hook --verbose": "unknown option '--verbose'",
        f"{tmp_path}/agent-eval steer hook": f"command not found: {tmp_path}/agent-eval",
    }
    steer("install", "--for", "claude-code")
    installed = json.loads(settings.read_text())["hooks"]["PreToolUse"]
    wrong = []
    for command, problem in cases.items():
        hook = {"hooks": [{"type": "command", "command": command}]}
        settings.write_text(json.dumps({"hooks": {"PreToolUse": [*installed, hook]}}))
        done = steer("doctor", "--for", "claude-code")
        if done.returncode != 1 or f"{settings}: {problem}" not in done.stdout:
            wrong.append((command, done))

    assert wrong == []
    assert not ran.exists()


OFF = json.dumps({"disableAllHooks": True})
SWITCHES = [
    ("claude-code", "app/.claude/settings.local.json", OFF, "disableAllHooks = true"),
    ("gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}} // x', "hooksConfig.enabled = false"),
    ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks = false"),
    ("copilot", "app/.github/copilot/settings.json", OFF, "disableAllHooks = true"),
]  # fmt: skip


@each_row("switch", SWITCHES, ids=[each[0] for each in SWITCHES])
def test_settings_that_switch_hooks_off_are_found(tmp_path, switch):
    agent, file, text, setting = switch
    run_text(tmp_path, "install", "--for", agent)
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

    done = run_text(tmp_path, "doctor", "--for", agent)

    reason = f"{agent}: {path}: {setting} switches the hooks off\n"
    assert (done.returncode, done.stdout) == (1, reason)


def test_a_hook_that_lets_a_full_run_through_is_found(steer, tmp_path):
    (tmp_path / "app/agent-eval-steering.yaml").write_text("session: 7\n")
    steer("install", "--for", "claude-code")

    done = steer("doctor", "--for", "claude-code")

    assert done.returncode == 1
    assert "the hook lets a full run through" in done.stdout
    assert "agent-eval-steering.yaml:1: session: must be a mapping" in done.stdout


def test_a_program_that_does_not_start_is_found(steer, settings, tmp_path):
    steer("install", "--for", "claude-code")
    (tmp_path / "agent-eval").write_text("#!/nowhere\n")
    (tmp_path / "agent-eval").chmod(0o755)
    own = Path(sys.executable).with_name("agent-eval")
    settings.write_text(settings.read_text().replace(str(own), f"{tmp_path}/agent-eval"))

    done = steer("doctor", "--for", "claude-code")

    assert done.returncode == 1
    assert "the hook does not work: " in done.stdout


def test_a_broken_file_is_named(steer, settings, tmp_path):
    steer("install", "--for", "claude-code")
    local = settings.with_name("settings.local.json")
    local.write_text('{"env": {"KEY": "sk-1"}')
    done = steer("doctor")

    assert (done.returncode, done.stdout) == (2, "")
    assert f"{local}: cannot be read (" in done.stderr
    assert "sk-1" not in done.stderr

    steer("install", "--for", "opencode")
    plugin = tmp_path / "app/.opencode/plugins/agent-eval.js"
    plugin.write_text(
        re.sub("(?m)^const COMMAND = .*", "const COMMAND = [oops", plugin.read_text())
    )
    done = steer("doctor")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        f"{plugin}: COMMAND is not a list of words; run `agent-eval steer install`" in done.stderr
    )
