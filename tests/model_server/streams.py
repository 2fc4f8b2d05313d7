"""The streams of the three APIs: the server-sent events of a complete answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Json = dict[str, Any]


def chat_events(completion: Mapping[str, Any], *, with_usage: bool) -> Iterator[bytes]:
    """Yield the events of a chat completion; usage only if it was asked for."""
    head = {key: completion[key] for key in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    choice = completion["choices"][0]
    for delta in _chat_deltas(choice["message"]):
        yield data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield data({**head, "choices": [end]})
    if with_usage and "usage" in completion:
        yield data({**head, "choices": [], "usage": completion["usage"]})
    yield b"data: [DONE]\n\n"


def _chat_deltas(message: Mapping[str, Any]) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    for key in ("reasoning_content", "content"):
        for part in halves(message.get(key) or ""):
            yield {key: part}
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        yield {"tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]}
        for part in halves(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def response_events(response: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the events of a response."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    kinds = ("response.created", "response.in_progress")
    events: list[Json] = [{"type": kind, "response": begun} for kind in kinds]
    for index, item in enumerate(response["output"]):
        events += _item_events(index, item)
    events.append({"type": "response.completed", "response": response})
    for number, event in enumerate(events):
        yield data({**event, "sequence_number": number}, event["type"])


def _item_events(index: int, item: Json) -> Iterator[Json]:
    at = {"output_index": index}
    started = {"status": "in_progress", "content": [], "arguments": ""}
    kept = {**item, **{key: value for key, value in started.items() if key in item}}
    yield {"type": "response.output_item.added", **at, "item": kept}
    at["item_id"] = item["id"]
    if item["type"] == "function_call":
        for part in halves(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": part}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **at, **done}
    elif item["type"] == "message":
        yield from _text_events({**at, "content_index": 0}, item["content"][0])
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _text_events(at: Json, part: Json) -> Iterator[Json]:
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for text in halves(part["text"]):
        yield {"type": "response.output_text.delta", **at, "delta": text, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}


def message_events(message: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the events of an Anthropic message."""
    usage = {**message["usage"], "output_tokens": 1}
    begun = {**message, "content": [], "stop_reason": None, "usage": usage}
    yield _named({"type": "message_start", "message": begun})
    yield _named({"type": "ping"})
    for index, block in enumerate(message["content"]):
        for event in _block_events(block):
            yield _named({**event, "index": index})
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    used = {"output_tokens": message["usage"]["output_tokens"]}
    yield _named({"type": "message_delta", "delta": delta, "usage": used})
    yield _named({"type": "message_stop"})


def _block_events(block: Json) -> Iterator[Json]:
    empty, deltas = _BLOCKS[block["type"]](block)
    yield {"type": "content_block_start", "content_block": {**block, **empty}}
    for delta in deltas:
        yield {"type": "content_block_delta", "delta": delta}
    yield {"type": "content_block_stop"}


def _deltas(kind: str, key: str, text: str) -> list[Json]:
    return [{"type": kind, key: part} for part in halves(text)]


_BLOCKS: Mapping[str, Callable[[Json], tuple[Json, list[Json]]]] = {
    "text": lambda block: ({"text": ""}, _deltas("text_delta", "text", block["text"])),
    "thinking": lambda block: (
        {"thinking": "", "signature": ""},
        [
            *_deltas("thinking_delta", "thinking", block["thinking"]),
            {"type": "signature_delta", "signature": block["signature"]},
        ],
    ),
    "tool_use": lambda block: (
        {"input": {}},
        [
            {"type": "input_json_delta", "partial_json": part}
            for part in ("", *halves(_text_of(block["input"])))
        ],
    ),
}


def _text_of(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def halves(text: str) -> list[str]:
    """Cut a text in two, as a model's stream would."""
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]


def _named(payload: Json) -> bytes:
    return data(payload, payload["type"])


def data(payload: object, name: str | None = None) -> bytes:
    """Return a server-sent event."""
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {json.dumps(payload)}\n\n".encode()
