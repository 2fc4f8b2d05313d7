"""`agent-eval steer install`: the hook in an agent's settings, and out of them again."""

from __future__ import annotations

import functools
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.agents import AGENTS
from ci_agent_eval.steering.hook.install import find_program, read_hook_commands
from ci_agent_eval.steering.settings_loader import parse_steering_settings
from tests.integration.steering.hook_events import EVENTS
from tests.integration.steering.in_process import run_steer
from tests.tables import each_row

SETTINGS = '{\n  "model": "opus",\n  "hooks": {\n    "Stop": []\n  }\n}\n'


def run_text(folder, *words, **environ):
    """Run a command in the folder `app` of a home; return it with its output as texts."""
    (folder / "app").mkdir(exist_ok=True)
    done = run_steer(folder / "app", *words, HOME=str(folder), **environ)
    texts = (done.stdout.decode(), done.stderr.decode())
    return subprocess.CompletedProcess(done.args, done.returncode, *texts)


@pytest.fixture
def steer(tmp_path):
    return functools.partial(run_text, tmp_path)


def commands(path: Path):
    groups = json.loads(path.read_text())["hooks"]["PreToolUse"]
    return [hook["command"] for group in groups for hook in group["hooks"]]


def test_a_project_without_settings_of_steering_gets_some(steer, tmp_path):
    path = tmp_path / "app/agent-eval-steering.yaml"

    done = steer("install", "--for", "claude-code")

    assert f"{path}: new settings of steering\n" in done.stdout
    settings = parse_steering_settings(path.read_text(), "new")
    assert settings.rules.bare_directory == "covers_testpaths"
    path.write_text("session: {}\n")
    assert "new settings" not in steer("install", "--for", "codex").stdout
    assert path.read_text() == "session: {}\n"
    steer("uninstall", "--for", "claude-code")
    assert path.exists()


def test_no_settings_of_steering_are_written_for_a_user_or_beside_named_ones(steer, tmp_path):
    (tmp_path / "steer.yaml").write_text("session: {}\n")

    steer("install", "--for", "claude-code", "--user")
    steer("install", "--for", "claude-code", "--config", "../steer.yaml")

    assert list(tmp_path.rglob("agent-eval-steering.yaml")) == []


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

    assert f"{path}: hook already installed\n" in again.stdout
    assert path.read_text() == once != SETTINGS
    assert path.stat().st_mode & 0o777 == 0o640
    assert steer("uninstall", "--for", "claude-code").stdout.endswith("hook removed\n")
    assert path.read_text() == SETTINGS
    done = steer("uninstall", "--for", "claude-code")
    assert (done.returncode, done.stdout) == (0, f"{path}: no agent-eval hook found\n")


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
    assert shlex.split(shared)[-2:] == ["--config", str(tmp_path / "app/my steer.yaml")]
    assert shlex.split(own)[-2:] == ["--config", str(tmp_path / "app/my steer.yaml")]


@each_row("command", ["install", "uninstall"])
@each_row(
    "content",
    [
        b"{",
        b"\xff{}",
        b'{"hooks": 7}',
        b"[]",
        b"[" * 100_000,
        b'{"hooks": {"PreToolUse": {}}}',
    ],
)
def test_settings_that_cannot_be_read_stay_as_they_are(tmp_path, command, content):
    path = tmp_path / "app/.claude/settings.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)

    done = run_text(tmp_path, command, "--for", "claude-code")

    assert done.returncode == 2
    assert done.stderr.startswith(f"agent-eval: {path}: ")
    assert "repair it first" in done.stderr
    assert path.read_bytes() == content
    assert "new settings" not in done.stdout
    assert [each.name for each in path.parent.parent.iterdir()] == [".claude"]


def test_the_program_of_an_installation_without_a_virtual_environment_is_found(
    tmp_path, monkeypatch
):
    """As with `pip install --user`: Python is in /usr/bin, and the program in ~/.local/bin."""
    program = tmp_path / "bin/agent-eval"
    program.parent.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    monkeypatch.setattr(sys, "argv", ["ci_agent_eval/__main__.py"])
    monkeypatch.setenv("PATH", "bin")
    with pytest.raises(InputError, match="there is no such program"):
        find_program()
    program.touch(mode=0o755)

    assert find_program() == program
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", ["bin/agent-eval"])
    assert find_program() == program


FILES = {
    "claude-code": (".claude/settings.json", ".claude/settings.json"),
    "codex": (".codex/hooks.json", ".codex/hooks.json"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json"),
    "qwen-code": (".qwen/settings.json", ".qwen/settings.json"),
    "cursor": (".cursor/hooks.json", ".cursor/hooks.json"),
    "copilot": (".github/hooks/agent-eval.json", ".copilot/hooks/agent-eval.json"),
    "opencode": (".opencode/plugins/agent-eval.js", ".config/opencode/plugins/agent-eval.js"),
}
EVENTS_BY_AGENT = {documented["agent"]: documented for documented in EVENTS.values()}


@each_row("scope", ["--project", "--user"])
@each_row("agent", FILES)
def test_each_agents_hook_is_installed_works_and_is_removed(tmp_path, agent, scope):
    """Run the very command that the agent would run, as it runs it: through a shell."""
    path = (
        tmp_path / "app" / FILES[agent][0] if scope == "--project" else tmp_path / FILES[agent][1]
    )

    done = run_text(tmp_path, "install", "--for", agent, scope)

    assert (done.returncode, done.stderr) == (0, "")
    assert f"{path}: hook added\n" in done.stdout
    assert f"agent-eval steer doctor --for {agent}\n" in done.stdout
    assert "already installed" in run_text(tmp_path, "install", "--for", agent, scope).stdout
    command, *others = read_hook_commands(AGENTS[agent], path)
    assert set(others) <= {command}
    if scope == "--project":  # the command of the other scope is the same one
        ran = subprocess.run(
            ["/bin/sh", "-c", command],
            input=json.dumps(EVENTS_BY_AGENT[agent]["event"]),
            env={**os.environ, "PATH": "/nowhere", "XDG_STATE_HOME": str(tmp_path / "state")},
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        assert json.loads(ran.stdout).keys() == EVENTS_BY_AGENT[agent]["denied"].keys()
    assert run_text(tmp_path, "uninstall", "--for", agent, scope).returncode == 0
    assert not path.exists() or read_hook_commands(AGENTS[agent], path) == []
    assert path.exists() == (agent not in {"copilot", "opencode"})


@each_row("command", ["install", "uninstall"])
def test_a_plugin_of_somebody_else_stays(tmp_path, command):
    path = tmp_path / "app" / FILES["opencode"][0]
    path.parent.mkdir(parents=True)
    path.write_text("export const Mine = async () => ({})\n")

    done = run_text(tmp_path, command, "--for", "opencode")

    assert done.returncode == 2
    assert "was not written by agent-eval; move it first" in done.stderr
    assert path.read_text().startswith("export const Mine")


OTHERS = {
    "copilot": json.dumps(
        {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "x"}]}}, indent=2
    )
    + "\n",
    "opencode": "export const Mine = async () => ({})\n",
}


@each_row("agent", OTHERS)
def test_a_file_with_our_name_stays_if_others_wrote_into_it(tmp_path, agent):
    path = tmp_path / "app" / FILES[agent][0]
    if agent == "copilot":
        path.parent.mkdir(parents=True)
        path.write_text(OTHERS[agent])
    run_text(tmp_path, "install", "--for", agent)
    if agent == "opencode":
        path.write_text(path.read_text() + OTHERS[agent])
    run_text(tmp_path, "install", "--for", agent, "--config", "agent-eval-steering.yaml")

    assert OTHERS[agent] in path.read_text() or agent == "copilot"
    assert "agent-eval-steering.yaml" in path.read_text()
    assert run_text(tmp_path, "uninstall", "--for", agent).returncode == 0
    assert path.read_text() == OTHERS[agent]


@each_row("options", [[], ["--for", "emacs"]])
def test_other_agents_are_refused(steer, options):
    assert steer("install", *options).returncode == 2
