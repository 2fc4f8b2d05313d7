"""Diagnosis whether the hook in a coding agent's settings holds a full run."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.agents import AGENTS, TIMEOUT_S, Agent
from ci_agent_eval.steering.hook.install import (
    is_own_hook,
    parse_commented_json,
    read_hook_commands,
)
from ci_agent_eval.steering.hook.options import parse_hook_options
from ci_agent_eval.steering.settings_loader import MESSAGE_VARIABLE

_MESSAGE = "agent-eval steer doctor holds this full run."
_SWITCHES = {
    "disableAllHooks": True,
    "hooksConfig.enabled": False,
    "tools.enableHooks": False,
    "features.hooks": False,
    "features.codex_hooks": False,
}
"""Settings that switch all hooks off, with the value that does."""
_FILES = ("settings.json", "settings.local.json", "config.json", "config.toml")
"""Files in an agent's folders that may have a switch."""


def find_agents_with_hook() -> list[str]:
    """Return the agents whose settings have the hook. Raises InputError for a broken file."""
    return [name for name, agent in AGENTS.items() if _find_hooks(agent)]


def find_problem(name: str) -> str | None:
    """Return why an agent's full run would not be held; None if the hook holds it.

    Raises InputError for a broken file.
    """
    agent = AGENTS[name]
    hooks = _find_hooks(agent)
    if not hooks:
        return f"no settings contain the hook; run `agent-eval steer install --for {name}`"
    for path, command in hooks:
        problem = _find_command_problem(command)
        if problem is not None:
            return f"{path}: {problem}; run `agent-eval steer install` again"
    switch = next(_find_switches(agent), None)
    return switch or _try_hook(agent, hooks[0][1])


def _find_hooks(agent: Agent) -> list[tuple[Path, str]]:
    """Return the commands of the hooks with their files."""
    paths = [agent.get_path(root, os.environ, Path.home()) for root in (Path.cwd(), None)]
    return [(path, command) for path in paths for command in read_hook_commands(agent, path)]


def _find_command_problem(command: str) -> str | None:
    """Return why a command is not run; None if `agent-eval steer install` writes such commands.

    A project's settings come with its repository, and agents run a hook's command in a shell:
    every word must therefore be one that the shell does not interpret.
    """
    words = shlex.split(command)
    if not is_own_hook(command):
        return "is not a hook of agent-eval"
    if not Path(words[0]).is_absolute():
        return f"the program is not an absolute path: {words[0]}"
    if shutil.which(words[0]) is None:
        return f"command not found: {words[0]}"
    if shlex.join(words) != command:
        return "is not quoted as `agent-eval steer install` does it"
    return parse_hook_options(words[3:]).problem


def _find_switches(agent: Agent) -> Iterator[str]:
    """Yield a sentence for each setting that switches the agent's hooks off."""
    project = Path.cwd() / (".github/copilot" if agent.name == "copilot" else agent.user_folder)
    folders = (project, agent.get_user_folder(os.environ, Path.home()))
    for path in (folder / name for folder in folders for name in _FILES):
        document = _read_settings(path)
        for name, value in _SWITCHES.items():
            setting = document
            for key in name.split("."):
                setting = setting.get(key) if isinstance(setting, dict) else None
            if setting is value:
                yield f"{path}: {name} = {json.dumps(value)} switches the hooks off"


def _read_settings(path: Path) -> Any:
    if not path.is_file():
        return {}
    try:
        text = path.read_bytes().decode()
        return tomllib.loads(text) if path.suffix == ".toml" else parse_commented_json(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read ({error}); repair it first") from None


def _try_hook(agent: Agent, command: str) -> str | None:
    """Send an example event to the hook; return why it allows a full run; None if it denies it."""
    call = {"command": "pytest -q"}
    event = {
        "hook_event_name": agent.events[0],
        "cwd": str(Path.cwd()),
        "tool_name": "bash",
        "tool_input": call,
        "toolName": "bash",  # Copilot CLI
        "toolArgs": call,
        **call,  # Cursor
    }
    with TemporaryDirectory(prefix="agent-eval-doctor-") as state:
        environ = {**os.environ, MESSAGE_VARIABLE: _MESSAGE, "XDG_STATE_HOME": state}
        try:
            done = subprocess.run(
                shlex.split(command),
                input=json.dumps(event).encode(),
                env=environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"the hook does not work: {error}"
    output = " ".join(done.stdout.decode("utf-8", "replace").split())
    if _MESSAGE in output:
        return None
    return f"the hook lets a full run through: {output[-500:] or 'it gives no reason'}"
