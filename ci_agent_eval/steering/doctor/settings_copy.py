"""Copies of an agent's settings that contain the hook, trust and switches of hooks only.

Settings contain credentials and commands (servers, notifications, helpers for keys), and new
versions of agents add more. So the copy has an allow-list.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.doctor.hook_command import find_command_problem
from ci_agent_eval.steering.hook.agent_settings import AgentSettings
from ci_agent_eval.steering.hook.hook_settings import HOOKS
from ci_agent_eval.steering.hook.json_edit import blank_comments
from ci_agent_eval.steering.hook.opencode_plugin import find_plugin_command, render_plugin

Json = dict[str, Any]
_Rules = Mapping[str, "_Rules"]
"""Members to copy, with the rules of the members in them; `*` is any other, empty is a value."""

_VALUE: _Rules = {}
_ALLOWED: _Rules = {
    "version": _VALUE,
    "disableAllHooks": _VALUE,
    "hooksConfig": {"enabled": _VALUE, "disabled": _VALUE},
    "tools": {"enableHooks": _VALUE},
    "security": {"folderTrust": {"enabled": _VALUE}},
    "trustedFolders": _VALUE,
    "trusted_folders": _VALUE,
    "features": {"hooks": _VALUE, "codex_hooks": _VALUE},
    HOOKS: {
        "enabled": _VALUE,
        "disabled": _VALUE,
        "state": {"*": {"enabled": _VALUE, "trusted_hash": _VALUE}},
    },
    "projects": {"*": {"trust_level": _VALUE}},
}
_TRUSTED_FOLDERS: _Rules = {"*": _VALUE}
_ALLOWED_OF_GROUP: _Rules = {"matcher": _VALUE, "sequential": _VALUE}
_COMMANDS = ("command", "bash")
_OTHERS = ("type", "matcher", "timeout", "timeoutSec", "name", "if", "async", "statusMessage")
_ALLOWED_OF_HOOK: _Rules = dict.fromkeys((*_COMMANDS, *_OTHERS), _VALUE)
"""Not its environment, its working folder, or commands for other shells."""


def copy_settings(
    source: Path, target: Path, agent: AgentSettings, moved: Mapping[str, str]
) -> str | None:
    """Copy what a launch needs of a file, if it exists; return why it is not copied.

    Paths that the agent trusts become the throwaway ones, as `moved` maps them.
    """
    if not source.is_file():
        return None
    try:
        text = _render_copy(source, agent, moved)
    except (InputError, OSError, ValueError, RecursionError) as error:
        return f"{source} was not copied ({error})"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")
    return None


def _render_copy(source: Path, agent: AgentSettings, moved: Mapping[str, str]) -> str:
    """Return the text of the copy. Raises ValueError for an invalid file."""
    text = source.read_bytes().decode()
    if source.suffix == ".js":
        return _require_plugin(text)
    if source.suffix == ".toml":
        selected = _move_paths(_select_members(tomllib.loads(text), _ALLOWED), moved)
        return "".join(_render_toml(selected))
    document = json.loads(blank_comments(text))
    if not isinstance(document, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004 - an invalid file
    rules = _TRUSTED_FOLDERS if source.name == "trustedFolders.json" else _ALLOWED
    selected = _move_paths(_select_members(document, rules), moved)
    hooks = _select_own_hooks(document.get(HOOKS), agent)
    if hooks:
        selected[HOOKS] = {**selected.get(HOOKS, {}), **hooks}
    return json.dumps(selected)


def _require_plugin(text: str) -> str:
    """Return the text if it is the plugin of this version. Raises ValueError."""
    command = find_plugin_command(text)
    if not _is_valid_hook(command) or render_plugin(str(command)) != text:
        raise ValueError("differs from what `agent-eval steer install` writes; run it again")
    return text


def _select_members(document: Json, rules: _Rules) -> Json:
    selected: Json = {}
    for key, value in document.items():
        inner = rules.get(key, rules.get("*"))
        if inner and isinstance(value, dict):
            selected[key] = _select_members(value, inner)
        elif inner is _VALUE and not isinstance(value, dict):
            selected[key] = value
    return selected


def _select_own_hooks(hooks: object, agent: AgentSettings) -> Json:
    if not isinstance(hooks, dict):
        return {}
    return {
        event: [_select_own_hook(item) for item in hooks[event]]
        for event in agent.events
        if isinstance(hooks.get(event), list)
    }


def _select_own_hook(entry: object) -> Json:
    """Return a hook of agent-eval, or a group with only such hooks.

    Others become `true`, because Codex trusts a hook by its position.
    """
    if not isinstance(entry, dict):
        return {}
    group = entry.get("hooks")
    if isinstance(group, list):
        own = _select_members(entry, _ALLOWED_OF_GROUP)
        return {**own, "hooks": [_select_own_hook(each) for each in group]}
    commands = [entry[key] for key in _COMMANDS if key in entry]
    if commands and all(map(_is_valid_hook, commands)):
        return _select_members(entry, _ALLOWED_OF_HOOK)
    return {"type": "command", "bash" if "bash" in entry else "command": "true"}


def _is_valid_hook(command: object) -> bool:
    return isinstance(command, str) and find_command_problem(command) is None


def _move_paths(value: Any, moved: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {_move_path(key, moved): _move_paths(each, moved) for key, each in value.items()}
    if isinstance(value, list):
        return [_move_paths(each, moved) for each in value]
    return _move_path(value, moved) if isinstance(value, str) else value


def _move_path(text: str, moved: Mapping[str, str]) -> str:
    for old, new in moved.items():
        # Codex names a hook by its file and position.
        starts = (f"{old}/hooks.json:", f"{old}/.codex/hooks.json:")
        if text == old or text.startswith(starts):
            return new + text.removeprefix(old)
    return text


def _render_toml(table: Json, prefix: str = "") -> Iterator[str]:
    """Yield a line per value: its quoted keys and the value; in these files JSON is TOML too."""
    for key, value in table.items():
        name = prefix + json.dumps(key, ensure_ascii=False)
        if isinstance(value, dict):
            yield from _render_toml(value, f"{name}.")
        elif isinstance(value, str | bool):
            yield f"{name} = {json.dumps(value, ensure_ascii=False)}\n"
