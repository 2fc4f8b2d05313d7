"""The instructions of agents and the descriptions of tools that model calls contain. Pure."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from itertools import takewhile

from pydantic import JsonValue

from ci_agent_eval.contract.episode import Instructions
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.model_traffic.conversations import ConversationReader
from ci_agent_eval.model_traffic.messages import ModelRequest, ToolDefinition
from ci_agent_eval.model_traffic.recorder import ModelCall
from ci_agent_eval.model_traffic.trajectory import MAX_NAME_CHARACTERS, limit_text

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
            found |= dict.fromkeys(_read_request(step.agent.name, step.request))
    return tuple(found)


def _read_request(agent: str | None, request: ModelRequest) -> Iterator[Instructions]:
    # Later messages of this role are of the framework, such as a demand to try again.
    first = takewhile(lambda message: message.role == "system", request.messages)
    text = "\n\n".join(message.text for message in first)
    yield _build("agent", agent, text)
    for tool in request.tools:
        yield _build("tool", tool.name, _describe_tool(tool))


def _build(kind: str, name: str | None, text: str) -> Instructions:
    name = None if name is None else limit_text(name, MAX_NAME_CHARACTERS)
    return Instructions.model_validate({"kind": kind, "name": name, "text": _limit(text)})


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
