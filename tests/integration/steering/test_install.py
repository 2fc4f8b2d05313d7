"""`agent-eval steer install`: the hook in Claude Code's settings, and out of them again."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

SETTINGS = '{\n  "model": "opus",\n  "hooks": {"Stop": []}\n}\n'


@pytest.fixture
def steer(tmp_path):
    def run(*arguments, **environ):
        kept = {k: v for k, v in os.environ.items() if k != "CLAUDE_CONFIG_DIR"}
        (tmp_path / "app").mkdir(exist_ok=True)
        return subprocess.run(
            [sys.executable, "-m", "ci_agent_eval", "steer", *arguments],
            cwd=tmp_path / "app",
            env={**kept, "HOME": str(tmp_path), **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def commands(path: Path):
    groups = json.loads(path.read_text())["hooks"]["PreToolUse"]
    return [hook["command"] for group in groups for hook in group["hooks"]]


def test_a_projects_settings(steer, tmp_path):
    path = tmp_path / "app/.claude/settings.json"

    done = steer("install", "--for", "claude-code", "--project")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path}: the hook is in it now\n"
    assert commands(path) == [
        "agent-eval steer hook --for claude-code --enable-pytest-full-suite-steering"
    ]
    assert [each.name for each in path.parent.iterdir()] == ["settings.json"]


def test_a_persons_settings_name_the_program_by_its_path(steer, tmp_path):
    done = steer("install", "--for", "claude-code", "--user")

    assert done.returncode == 0
    (command,) = commands(tmp_path / ".claude/settings.json")
    program, *rest = shlex.split(command)
    assert rest[:4] == ["steer", "hook", "--for", "claude-code"]
    assert Path(program) == Path(sys.executable).with_name("agent-eval")


def test_claude_codes_own_variable_moves_a_persons_settings(steer, tmp_path):
    steer("install", "--for", "claude-code", "--user", CLAUDE_CONFIG_DIR=str(tmp_path / "conf"))

    assert len(commands(tmp_path / "conf/settings.json")) == 1
    assert not (tmp_path / ".claude").exists()


def test_in_twice_and_out_twice(steer, tmp_path):
    path = tmp_path / "app/.claude/settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(SETTINGS)
    path.chmod(0o640)

    steer("install", "--for", "claude-code")
    once = path.read_text()
    again = steer("install", "--for", "claude-code")

    assert again.stdout.endswith("the hook is in it already\n")
    assert path.read_text() == once != SETTINGS
    assert path.stat().st_mode & 0o777 == 0o640
    assert steer("uninstall", "--for", "claude-code").stdout.endswith("the hook is out of it\n")
    assert path.read_text() == SETTINGS
    done = steer("uninstall", "--for", "claude-code")
    assert (done.returncode, done.stdout) == (0, f"{path}: there was no hook of ours\n")


def test_out_of_a_file_that_is_not_there_makes_none(steer, tmp_path):
    assert steer("uninstall", "--for", "claude-code", "--user").returncode == 0
    assert not (tmp_path / ".claude").exists()


def test_a_link_into_dotfiles_stays_one(steer, tmp_path):
    real, link = tmp_path / "dotfiles/claude.json", tmp_path / ".claude/settings.json"
    real.parent.mkdir()
    real.write_text(SETTINGS)
    link.parent.mkdir()
    link.symlink_to(real)

    steer("install", "--for", "claude-code", "--user")

    assert link.is_symlink()
    assert len(commands(real)) == 1


def test_a_configuration_is_passed_on(steer, tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app/my steer.yaml").write_text("session: {}\n")

    steer("install", "--for", "claude-code", "--config", "my steer.yaml")
    steer("install", "--for", "claude-code", "--user", "--config", "my steer.yaml")

    (shared,) = commands(tmp_path / "app/.claude/settings.json")
    (own,) = commands(tmp_path / ".claude/settings.json")
    assert shlex.split(shared)[-2:] == ["--config", "my steer.yaml"]
    assert shlex.split(own)[-2:] == ["--config", str(tmp_path / "app/my steer.yaml")]


@pytest.mark.parametrize("command", ["install", "uninstall"])
@pytest.mark.parametrize("content", [b"{", b"// mine\n{}", b"\xff{}", b'{"hooks": 7}'])
def test_settings_that_cannot_be_read_stay_as_they_are(steer, tmp_path, command, content):
    path = tmp_path / "app/.claude/settings.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)

    done = steer(command, "--for", "claude-code")

    assert done.returncode == 2
    assert done.stderr.startswith(f"agent-eval: {path}: ")
    assert "repair it first" in done.stderr
    assert path.read_bytes() == content


def test_what_is_installed_works(steer, tmp_path):
    """Run the very command that Claude Code would run, as it runs it: through a shell."""
    steer("install", "--for", "claude-code", "--user")
    (command,) = commands(tmp_path / ".claude/settings.json")
    event = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash",
             "tool_input": {"command": "pytest"}}  # fmt: skip
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps(event),
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    said = json.loads(done.stdout)["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny"


@pytest.mark.parametrize("options", [[], ["--for", "emacs"], ["--for", "cursor"]])
def test_other_agents_are_refused(steer, options):
    assert steer("install", *options).returncode == 2
