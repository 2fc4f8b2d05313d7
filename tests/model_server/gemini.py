"""Gemini's generateContent: its requests as chat messages, its answers from a step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.model_server.script import Step, tool_calls

Json = dict[str, Any]


def as_messages(contents: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return the contents of a request as chat messages: each function's response is one."""
    return [message for content in contents for message in _split(content)]


def _split(content: Mapping[str, Any]) -> Iterator[Json]:
    results = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
    for result in results:
        value = result["response"]
        yield {"role": "tool", "content": str(value.get("result", json.dumps(value)))}
    if content.get("role") == "model":
        yield {"role": "assistant"}
    elif len(results) < len(content["parts"]):
        text = "".join(part.get("text", "") for part in content["parts"])
        yield {"role": "user", "content": text}


def answer(step: Step, model: str, turn: int) -> Json:
    """Return the response for a step, in the form of Gemini's API reference."""
    parts: list[Json] = [] if step.text is None else [{"text": step.text}]
    for call in tool_calls(step, turn):
        function = call["function"]
        arguments = json.loads(function["arguments"])
        parts.append({"functionCall": {"name": function["name"], "args": arguments}})
    candidate = {
        "content": {"role": "model", "parts": parts},
        "finishReason": step.finish_reason or "STOP",
        "index": 0,
    }
    used = {} if step.usage is None else {"usageMetadata": _usage(step.usage)}
    return {
        "candidates": [candidate],
        **used,
        "modelVersion": model,
        "responseId": f"gemini_{turn}",
    }


def events(response: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the events of a response: one for each part, the last with reason and usage."""
    candidate = response["candidates"][0]
    parts = candidate["content"]["parts"]
    for part in parts[:-1]:
        begun = {"content": {"role": "model", "parts": [part]}, "index": 0}
        kept = {key: response[key] for key in ("modelVersion", "responseId")}
        yield _event({"candidates": [begun], **kept})
    last = {**candidate, "content": {"role": "model", "parts": parts[-1:]}}
    yield _event({**response, "candidates": [last]})


def _usage(usage: Mapping[str, int]) -> Json:
    taken, given = usage.get("input", 0), usage.get("output", 0)
    return {
        "promptTokenCount": taken,
        "candidatesTokenCount": given,
        "totalTokenCount": taken + given,
        "cachedContentTokenCount": usage.get("cached", 0),
    }


def _event(data: Json) -> bytes:
    return f"data: {json.dumps(data)}\r\n\r\n".encode()
