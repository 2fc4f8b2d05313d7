"""The instructions of agents and the descriptions of tools that model calls contain. Pure."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Literal

from pydantic import JsonValue

from ci_agent_eval.contract.episode import Instructions
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.model_traffic.conversations import ConversationReader
from ci_agent_eval.model_traffic.messages import ModelRequest, ToolDefinition
from ci_agent_eval.model_traffic.recorder import ModelCall
from ci_agent_eval.model_traffic.trajectory import MAX_NAME_CHARACTERS, limit_text

_Part = tuple[Literal["agent", "tool"], str | None]
"""Whose text it is."""

MAX_CHARACTERS = 20_000
"""Characters kept of a text; of the others a checksum shows that they changed."""
MAX_TEXTS = 100
"""Texts kept of an episode."""


def list_instructions(calls: Iterable[ModelCall]) -> tuple[Instructions, ...]:
    """Return the distinct texts of all requests, also of refused ones, in their order."""
    found: dict[Instructions, None] = {}
    seen = set()
    for step in ConversationReader().read(calls):
        key = step.agent.name, step.instructions
        if step.request is not None and key not in seen and len(found) < MAX_TEXTS:
            seen.add(key)
            request, *recorded = step.call.missed or (step.request,)
            found |= dict.fromkeys(_build_texts(step.agent.name, request, *recorded))
    return tuple(found)


def _build_texts(
    agent: str | None, request: ModelRequest, recorded: ModelRequest | None = None
) -> Iterator[Instructions]:
    before = {} if recorded is None else _read_request(agent, recorded)
    for (kind, name), text in _read_request(agent, request).items():
        old = before.get((kind, name))
        yield Instructions(kind=kind, name=name, text=text, recorded=None if old == text else old)


def _read_request(agent: str | None, request: ModelRequest) -> dict[_Part, str]:
    # Later messages of this role are of the framework, such as a demand to try again.
    first = takewhile(lambda message: message.role == "system", request.messages)
    name = None if agent is None else limit_text(agent, MAX_NAME_CHARACTERS)
    texts: dict[_Part, str] = {("agent", name): "\n\n".join(message.text for message in first)}
    for tool in request.tools:
        texts["tool", limit_text(tool.name, MAX_NAME_CHARACTERS)] = _describe_tool(tool)
    return {part: _limit(text) for part, text in texts.items()}


def _describe_tool(tool: ToolDefinition) -> str:
    """Return the description of a tool, and a line for each parameter."""
    schema = tool.schema if isinstance(tool.schema, dict) else {}
    parameters = schema.get("properties")
    others = {key: value for key, value in schema.items() if key not in {"properties", "title"}}
    lines = [tool.description] if tool.description else []
    if isinstance(parameters, dict):
        lines += [f"{name}: {_dump(parameters[name])}" for name in sorted(parameters)]
    return "\n".join([*lines, *([_dump(others)] if others else [])])


def _dump(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _limit(text: str) -> str:
    """Return a text of limited length, cut between words: a cut secret is not recognized."""
    text = clean_text(text)
    if len(text) <= MAX_CHARACTERS:
        return text
    kept = text[:MAX_CHARACTERS]
    kept = kept[: max(kept.rfind(" "), kept.rfind("\n"), 0)]
    rest = zlib.crc32(text[len(kept) :].encode())
    return f"{kept}… ({len(text) - len(kept):,} more characters, checksum {rest:08x})"
