"""Insertion and removal of the hook of agent-eval in Claude Code's settings. Pure.

Format: https://code.claude.com/docs/en/settings, key `hooks`; a group of hooks has a matcher
of tool names.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.json_edit import (
    append_member,
    find_member,
    list_members,
    remove_member,
)

HOOKS, EVENT = "hooks", "PreToolUse"

MATCHER = "Bash|PowerShell"
"""Claude Code's tools that run commands; the hook would only slow down other tools."""

TIMEOUT_S = 10


def add_hook(text: str, command: str) -> str:
    """Return the settings with exactly one hook of agent-eval. Raises InputError if invalid.

    An empty text represents a missing file.
    """
    if not text.strip():
        settings = {HOOKS: {EVENT: [_build_group(command)]}}
        return json.dumps(settings, indent=2) + "\n"
    _require_settings(text)
    if [hook_position.command for hook_position in _find_hooks(text)] == [command]:
        return text
    return _insert_hook(remove_hook(text), command)


def remove_hook(text: str) -> str:
    """Return the settings without hooks of agent-eval, and without containers left empty.

    Raises InputError if the settings are invalid.
    """
    if not text.strip():
        return text
    _require_settings(text)
    while (hook_position := next(_find_hooks(text), None)) is not None:
        text = _remove_position(text, hook_position)
    return text


def is_own_hook(command: object) -> bool:
    """Return whether a hook's command is a hook of agent-eval."""
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    program = PurePath(words[0].replace("\\", "/")).name.removesuffix(".exe") if words else ""
    return program == "agent-eval" and words[1:3] == ["steer", "hook"]


def _build_group(command: str) -> dict[str, object]:
    hook = {"type": "command", "command": command, "timeout": TIMEOUT_S}
    return {"matcher": MATCHER, "hooks": [hook]}


def _find_start(text: str) -> int:
    return len(text) - len(text.lstrip())


def _require_settings(text: str) -> None:
    """Validate the parts of the settings that the edits use. Raises InputError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error}); repair it first") from None
    if not isinstance(document, dict):
        raise InputError("is no JSON object; repair it first")
    hooks = document.get(HOOKS, {})
    if not isinstance(hooks, dict) or not isinstance(hooks.get(EVENT, []), list):
        raise InputError(f"{HOOKS}.{EVENT} is no list of hooks; repair it first")


def _insert_hook(text: str, command: str) -> str:
    root = _find_start(text)
    hooks = find_member(text, root, HOOKS)
    if hooks is None:
        return append_member(text, root, {EVENT: [_build_group(command)]}, HOOKS)
    event = find_member(text, hooks.value, EVENT)
    if event is None:
        return append_member(text, hooks.value, [_build_group(command)], EVENT)
    return append_member(text, event.value, _build_group(command))


class _HookPosition(NamedTuple):
    """A hook of agent-eval: index of its group, start of its list, and index in the list."""

    group: int
    inner: int
    at: int
    command: str


def _find_hooks(text: str) -> Iterator[_HookPosition]:
    """Yield the positions of the hooks of agent-eval."""
    hooks = find_member(text, _find_start(text), HOOKS)
    event = hooks and find_member(text, hooks.value, EVENT)
    for number, group in enumerate(list_members(text, event.value) if event else ()):
        if text[group.value] != "{":
            continue
        inner = find_member(text, group.value, "hooks")
        if inner is None or text[inner.value] != "[":
            continue
        for at, item in enumerate(json.loads(text[inner.value : inner.end])):
            if isinstance(item, dict) and is_own_hook(item.get("command")):
                yield _HookPosition(number, inner.value, at, item["command"])


def _remove_position(text: str, hook_position: _HookPosition) -> str:
    """Remove one hook, and each container left empty."""
    if len(list_members(text, hook_position.inner)) > 1:
        return remove_member(text, hook_position.inner, hook_position.at)
    root = _find_start(text)
    hooks = find_member(text, root, HOOKS)
    event = hooks and find_member(text, hooks.value, EVENT)
    if hooks is None or event is None:
        return text
    for start, position in (
        (event.value, hook_position.group),
        (hooks.value, _find_position(text, hooks.value, EVENT)),
        (root, _find_position(text, root, HOOKS)),
    ):
        if len(list_members(text, start)) > 1 or start == root:
            return remove_member(text, start, position)
    return text


def _find_position(text: str, start: int, key: str) -> int:
    keys = [each.key for each in list_members(text, start)]
    return len(keys) - 1 - keys[::-1].index(key)
