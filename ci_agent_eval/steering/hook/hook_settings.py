"""Insertion and removal of the hook of agent-eval in an agent's settings in JSON. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.agent_settings import AgentSettings

HOOKS = "hooks"
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


def add_hook(text: str, command: str, agent: AgentSettings) -> str:
    """Return the settings with exactly one hook of agent-eval per event.

    An empty text represents a missing file. Raises InputError if the settings are invalid, or
    have comments, which would be lost.
    """
    document: dict[str, Any] = dict(agent.initial)
    if text.strip():
        document = _load_settings(text, agent)
    entry = agent.build_entry(command)
    if [found for found, _ in _find_hooks(document, agent.events)] == [entry] * len(agent.events):
        return text
    added = {HOOKS: {event: [entry] for event in agent.events}}
    _refuse_comments(text, f"add this by hand: {json.dumps(added)}")
    document = _remove_hooks(document, agent.events)
    hooks = document.get(HOOKS, {})
    more = {event: [*hooks.get(event, []), entry] for event in agent.events}
    return _render_settings({**document, HOOKS: {**hooks, **more}})


def remove_hook(text: str, agent: AgentSettings) -> str:
    """Return the settings without hooks of agent-eval in any event, or containers left empty.

    Raises InputError if the settings are invalid, or have comments, which would be lost.
    """
    if not text.strip():
        return text
    document = _load_settings(text, agent)
    changed = _remove_hooks(document, list(document.get(HOOKS, {})))
    if changed == document:
        return text
    _refuse_comments(text, "remove the hooks with `agent-eval steer hook` by hand")
    return _render_settings(changed)


def is_initial(text: str, agent: AgentSettings) -> bool:
    """Return whether a valid file is empty, or as a new one is without hooks."""
    if not text.strip() or not agent.events:
        return not text.strip()
    return bool(parse_commented_json(text) == agent.initial)


def find_hook_commands(text: str, agent: AgentSettings) -> list[str]:
    """Return the command lines of agent-eval's hooks. Raises InputError."""
    if not text.strip():
        return []
    return [
        str(_get_command(hook))
        for _, hook in _find_hooks(_load_settings(text, agent), agent.events)
    ]


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


def parse_commented_json(text: str) -> Any:
    """Parse JSON with comments and trailing commas. Raises ValueError or RecursionError."""
    plain = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", text)
    return json.loads(_TRAILING_COMMA.sub(lambda match: match[0].lstrip(","), plain))


def _load_settings(text: str, agent: AgentSettings) -> dict[str, Any]:
    """Parse settings, and check the parts that are used here. Raises InputError."""
    try:
        document = parse_commented_json(text) if agent.allows_comments else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error}); repair it first") from None
    if not isinstance(document, dict):
        raise InputError("is no JSON object; repair it first")
    hooks = document.get(HOOKS, {})
    for event in agent.events:
        if not isinstance(hooks, dict) or not isinstance(hooks.get(event, []), list):
            raise InputError(f"{HOOKS}.{event} is no list of hooks; repair it first")
    return document


def _refuse_comments(text: str, remedy: str) -> None:
    """Raise InputError if a file cannot be written again as it is."""
    try:
        json.loads(text or "{}")
    except ValueError:
        raise InputError(
            f"has comments or trailing commas, which would be lost; {remedy}"
        ) from None


def _render_settings(document: Mapping[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _find_hooks(
    document: Mapping[str, Any], events: Sequence[str]
) -> Iterator[tuple[object, object]]:
    """Yield the hooks of agent-eval in these events: the item of the event's list, and the hook."""
    for event in events:
        for item in document.get(HOOKS, {}).get(event, []):
            yield from ((item, hook) for hook in _list_hooks(item) or [item] if _is_own(hook))


def _list_hooks(item: object) -> list[object] | None:
    """Return the hooks of a group; None if the item of an event's list is a hook itself."""
    group = item.get(HOOKS) if isinstance(item, dict) else None
    return group if isinstance(group, list) else None


def _get_command(hook: object) -> object:
    return hook.get("command", hook.get("bash")) if isinstance(hook, dict) else None


def _is_own(hook: object) -> bool:
    return is_own_hook(_get_command(hook))


def _remove_hooks(document: Mapping[str, Any], events: Sequence[str]) -> dict[str, Any]:
    """Return settings without the hooks of agent-eval, and without the containers left empty."""
    hooks = document.get(HOOKS, {})
    left = {
        event: _remove_items(items) if event in events and isinstance(items, list) else items
        for event, items in hooks.items()
    }
    kept = {event: items for event, items in left.items() if items or items == hooks[event]}
    others = {key: value for key, value in document.items() if key != HOOKS or kept or not hooks}
    return {**others, HOOKS: kept} if kept else others


def _remove_items(items: Sequence[object]) -> list[object]:
    kept: list[object] = []
    for item in items:
        group = _list_hooks(item)
        if group is None or not isinstance(item, dict):
            kept += [] if _is_own(item) else [item]
            continue
        hooks = [hook for hook in group if not _is_own(hook)]
        kept += [{**item, HOOKS: hooks}] if hooks or hooks == group else []
    return kept
