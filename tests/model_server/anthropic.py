"""Anthropic's messages: its requests as chat messages, its answers from a step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.model_server.script import Step, tool_calls


def as_messages(given: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a request as chat messages: each tool's result is one."""
    return [message for item in given for message in _split(item)]


def _split(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    results = [block for block in blocks if block["type"] == "tool_result"]
    for block in results:
        yield {"role": "tool", "content": block.get("content")}
    if message["role"] == "assistant" or len(results) < len(blocks):
        texts = [block for block in blocks if block["type"] == "text"]
        yield {"role": message["role"], "content": texts}


def message(step: Step, model: str, turn: int) -> dict[str, Any]:
    """Return the message object for a step, in the form of Anthropic's API reference."""
    content: list[dict[str, Any]] = []
    if step.text is not None:
        content.append({"type": "text", "text": step.text})
    for call in tool_calls(step, turn):
        function = call["function"]
        arguments = json.loads(function["arguments"])
        block = {"id": f"toolu_{turn}_{len(content)}", "name": function["name"]}
        content.append({"type": "tool_use", **block, "input": arguments})
    reason = step.finish_reason or ("tool_use" if step.tool_calls else "end_turn")
    usage = step.usage or {}
    return {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.get("input", 0) - usage.get("cached", 0),
            "output_tokens": usage.get("output", 0),
            "cache_read_input_tokens": usage.get("cached", 0),
            "cache_creation_input_tokens": 0,
        },
    }
