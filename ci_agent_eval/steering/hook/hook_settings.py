"""Insertion and removal of the hook of agent-eval in an agent's settings in JSON. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.agent_settings import AgentSettings
from ci_agent_eval.steering.hook.json_edit import (
    append_member,
    blank_comments,
    find_member,
    list_members,
    parse_value,
    remove_member,
)

HOOKS = "hooks"


def add_hook(text: str, command: str, agent: AgentSettings) -> str:
    """Return the settings with exactly one hook of agent-eval per event.

    An empty text represents a missing file. Raises InputError if the settings are invalid.
    """
    if not text.strip():
        events = {event: [agent.build_entry(command)] for event in agent.events}
        return json.dumps({**agent.initial, HOOKS: events}, indent=2) + "\n"
    _require_settings(text, agent)
    entry = agent.build_entry(command)
    if [each.entry for each in _find_hooks(text, agent.events)] == [entry] * len(agent.events):
        return text
    text = _remove_hooks(text, agent.events)
    for event in agent.events:
        text = _insert_hook(text, event, entry)
    return text


def remove_hook(text: str, agent: AgentSettings) -> str:
    """Return the settings without hooks of agent-eval in any event, or containers left empty.

    Raises InputError if the settings are invalid.
    """
    if not text.strip():
        return text
    _require_settings(text, agent)
    hooks = find_member(text, _find_start(text), HOOKS)
    return _remove_hooks(
        text, [each.key for each in list_members(text, hooks.value)] if hooks else []
    )


def is_initial(text: str, agent: AgentSettings) -> bool:
    """Return whether a valid file is empty, or as a new one is without hooks."""
    if not text.strip() or not agent.events:
        return not text.strip()
    return bool(json.loads(blank_comments(text)) == agent.initial)


def find_hook_commands(text: str, agent: AgentSettings) -> list[str]:
    """Return the command lines of agent-eval's hooks. Raises InputError."""
    if not text.strip():
        return []
    _require_settings(text, agent)
    return [each.command for each in _find_hooks(text, agent.events)]


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


def _find_start(text: str) -> int:
    plain = blank_comments(text)
    return len(plain) - len(plain.lstrip())


def _require_settings(text: str, agent: AgentSettings) -> None:
    """Validate the parts of the settings that the edits use. Raises InputError."""
    try:
        document = json.loads(blank_comments(text) if agent.allows_comments else text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error}); repair it first") from None
    if not isinstance(document, dict):
        raise InputError("is no JSON object; repair it first")
    hooks = document.get(HOOKS, {})
    for event in agent.events:
        if not isinstance(hooks, dict) or not isinstance(hooks.get(event, []), list):
            raise InputError(f"{HOOKS}.{event} is no list of hooks; repair it first")


def _remove_hooks(text: str, events: Sequence[str]) -> str:
    while (position := next(_find_hooks(text, events), None)) is not None:
        text = _remove_position(text, position)
    return text


def _insert_hook(text: str, event: str, entry: object) -> str:
    root = _find_start(text)
    hooks = find_member(text, root, HOOKS)
    if hooks is None:
        return append_member(text, root, {event: [entry]}, HOOKS)
    found = find_member(text, hooks.value, event)
    if found is None:
        return append_member(text, hooks.value, [entry], event)
    return append_member(text, found.value, entry)


class _HookPosition(NamedTuple):
    """A hook of agent-eval: its event, the path of indexes to it, and its content."""

    event: str
    at: int
    """The index of its item in the event's list."""
    inner: int | None
    """Its index in the item's own list of hooks; None if the item is the hook."""
    entry: object
    command: str


def _find_hooks(text: str, events: Sequence[str]) -> Iterator[_HookPosition]:
    """Yield the positions of the hooks of agent-eval in the lists of these events."""
    hooks = find_member(text, _find_start(text), HOOKS)
    for event in events if hooks else ():
        found = hooks and find_member(text, hooks.value, event)
        is_list = found is not None and text[found.value] == "["
        for index, item in enumerate(list_members(text, found.value) if found and is_list else ()):
            entry = parse_value(text, item)
            for inner, hook in _list_hooks(entry):
                command = hook.get("command", hook.get("bash"))
                if is_own_hook(command):
                    yield _HookPosition(event, index, inner, entry, str(command))


def _list_hooks(entry: object) -> Iterator[tuple[int | None, dict[str, object]]]:
    """Yield the hooks of an event's item: itself, or the hooks of a group."""
    if not isinstance(entry, dict):
        return
    group = entry.get("hooks")
    if not isinstance(group, list):
        yield None, entry
        return
    for inner, hook in enumerate(group):
        if isinstance(hook, dict):
            yield inner, hook


def _remove_position(text: str, position: _HookPosition) -> str:
    """Remove one hook, and each container left empty."""
    root = _find_start(text)
    hooks = find_member(text, root, HOOKS)
    event = hooks and find_member(text, hooks.value, position.event)
    if hooks is None or event is None:
        return text
    levels = [
        (event.value, position.at),
        (hooks.value, _find_position(text, hooks.value, position.event)),
        (root, _find_position(text, root, HOOKS)),
    ]
    if position.inner is not None:
        item = list_members(text, event.value)[position.at]
        group = find_member(text, item.value, "hooks")
        levels = [(group.value, position.inner), *levels] if group else levels
    for start, index in levels:
        if len(list_members(text, start)) > 1 or start == root:
            return remove_member(text, start, index)
    return text


def _find_position(text: str, start: int, key: str) -> int:
    keys = [each.key for each in list_members(text, start)]
    return len(keys) - 1 - keys[::-1].index(key)
