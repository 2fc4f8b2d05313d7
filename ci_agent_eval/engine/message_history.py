"""Messages of OpenAI's chat API as the message history of PydanticAI."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from ci_agent_eval.engine.declarations import Provider
from ci_agent_eval.engine.model import build_model


def build_messages(entries: Iterable[Mapping[str, Any]]) -> list[ModelMessage]:
    """Return messages with roles, texts, tool calls and results as PydanticAI has them."""
    tools: dict[str, str] = {}
    found: list[ModelMessage] = []
    for entry in entries:
        role, text = entry["role"], entry["content"]
        if role == "assistant":
            parts: list[ModelResponsePart] = [TextPart(text)] if text else []
            parts += [_build_call(call, tools) for call in entry.get("tool_calls", ())]
            found.append(ModelResponse(parts=parts))
        elif role == "tool":
            call_id = entry["tool_call_id"]
            part = ToolReturnPart(tools[call_id], text, tool_call_id=call_id)
            found.append(ModelRequest(parts=[part]))
        else:
            kind = UserPromptPart if role == "user" else SystemPromptPart
            found.append(ModelRequest(parts=[kind(text)]))
    return found


async def read_system_prompt(agent: object) -> list[ModelMessage]:
    """Return the system prompt of a PydanticAI agent, or of its adapter, as a first message.

    PydanticAI adds it to conversations without a history only. Instructions are no part of it.
    """
    loop = agent if isinstance(agent, AbstractAgent) else getattr(agent, "agent", None)
    if not isinstance(loop, AbstractAgent) or loop.model is None:
        return []
    # A model given by name needs no key for this: a replay has none.
    model = (
        build_model(Provider(loop.model), {}, offline=True) if isinstance(loop.model, str) else None
    )
    parts = await loop.system_prompt_parts(deps=getattr(agent, "deps", None), model=model)
    return [ModelRequest(parts=parts)] if parts else []


def build_prompt(text: str, files: Iterable[tuple[bytes, str]]) -> list[UserContent]:
    """Return a prompt with files, each as its bytes and media type."""
    return [text, *(BinaryContent(data, media_type=kind) for data, kind in files)]


def _build_call(call: Mapping[str, Any], tools: dict[str, str]) -> ToolCallPart:
    function = call["function"]
    tools[call["id"]] = function["name"]
    return ToolCallPart(
        function["name"], json.loads(function["arguments"]), tool_call_id=call["id"]
    )
