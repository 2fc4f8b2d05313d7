"""Our hook in the text of Claude Code's settings: put in, and taken out again. Pure.

The format is https://code.claude.com/docs/en/settings and its `hooks`; a group of hooks has a
matcher of tool names.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.json_edit import appended, member, members, removed

HOOKS, EVENT = "hooks", "PreToolUse"

MATCHER = "Bash|PowerShell"
"""Claude Code's tools that run commands; each other tool would wait for nothing."""

TIMEOUT_S = 10


def with_hook(text: str, command: str) -> str:
    """Return the settings with our hook in them, once. Raises InputError for no settings.

    An empty text stands for a file that is not there.
    """
    if not text.strip():
        whole = {HOOKS: {EVENT: [_group(command)]}}
        return json.dumps(whole, indent=2) + "\n"
    _require_settings(text)
    if [place.command for place in _places(text)] == [command]:
        return text
    return _added(without_hook(text), command)


def without_hook(text: str) -> str:
    """Return the settings without our hook, and without what held nothing but it.

    Raises InputError for no settings.
    """
    if not text.strip():
        return text
    _require_settings(text)
    while (place := next(_places(text), None)) is not None:
        text = _without(text, place)
    return text


def is_ours(command: object) -> bool:
    """Say whether a hook's command is one that we install."""
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    program = PurePath(words[0].replace("\\", "/")).name.removesuffix(".exe") if words else ""
    return program == "agent-eval" and words[1:3] == ["steer", "hook"]


def _group(command: str) -> dict[str, object]:
    hook = {"type": "command", "command": command, "timeout": TIMEOUT_S}
    return {"matcher": MATCHER, "hooks": [hook]}


def _start(text: str) -> int:
    return len(text) - len(text.lstrip())


def _require_settings(text: str) -> None:
    """Look at all that we are going to walk through."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error}); repair it first") from None
    if not isinstance(document, dict):
        raise InputError("is no JSON object; repair it first")
    hooks = document.get(HOOKS, {})
    if not isinstance(hooks, dict) or not isinstance(hooks.get(EVENT, []), list):
        raise InputError(f"{HOOKS}.{EVENT} is no list of hooks; repair it first")


def _added(text: str, command: str) -> str:
    root = _start(text)
    hooks = member(text, root, HOOKS)
    if hooks is None:
        return appended(text, root, {EVENT: [_group(command)]}, HOOKS)
    event = member(text, hooks.value, EVENT)
    if event is None:
        return appended(text, hooks.value, [_group(command)], EVENT)
    return appended(text, event.value, _group(command))


class _Place(NamedTuple):
    """A hook of ours: its group's position, its list's start, its position in it."""

    group: int
    inner: int
    at: int
    command: str


def _places(text: str) -> Iterator[_Place]:
    """Yield each hook of ours."""
    hooks = member(text, _start(text), HOOKS)
    event = hooks and member(text, hooks.value, EVENT)
    for number, group in enumerate(members(text, event.value) if event else ()):
        if text[group.value] != "{":
            continue
        inner = member(text, group.value, "hooks")
        if inner is None or text[inner.value] != "[":
            continue
        for at, item in enumerate(json.loads(text[inner.value : inner.end])):
            if isinstance(item, dict) and is_ours(item.get("command")):
                yield _Place(number, inner.value, at, item["command"])


def _without(text: str, place: _Place) -> str:
    """Take out one hook, and each thing around it that held nothing else."""
    if len(members(text, place.inner)) > 1:
        return removed(text, place.inner, place.at)
    root = _start(text)
    hooks = member(text, root, HOOKS)
    event = hooks and member(text, hooks.value, EVENT)
    if hooks is None or event is None:
        return text
    for start, position in (
        (event.value, place.group),
        (hooks.value, _position(text, hooks.value, EVENT)),
        (root, _position(text, root, HOOKS)),
    ):
        if len(members(text, start)) > 1 or start == root:
            return removed(text, start, position)
    return text


def _position(text: str, start: int, key: str) -> int:
    keys = [each.key for each in members(text, start)]
    return len(keys) - 1 - keys[::-1].index(key)
