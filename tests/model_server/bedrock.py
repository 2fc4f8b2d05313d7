"""Bedrock's Converse: its requests as chat messages, its answers from a step, its binary stream."""

from __future__ import annotations

import json
import struct
from binascii import crc32
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.model_server.script import Step, tool_calls
from tests.model_server.streams import halves

Json = dict[str, Any]
STREAM_TYPE = "application/vnd.amazon.eventstream"


def as_messages(given: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return the messages of a request as chat messages: each tool's result is one."""
    return [message for item in given for message in _split(item)]


def _split(message: Mapping[str, Any]) -> Iterator[Json]:
    blocks = message["content"]
    results = [block["toolResult"] for block in blocks if "toolResult" in block]
    for result in results:
        texts = [part.get("text", json.dumps(part.get("json"))) for part in result["content"]]
        yield {"role": "tool", "content": "".join(texts)}
    if message["role"] == "assistant" or len(results) < len(blocks):
        text = "".join(block.get("text", "") for block in blocks)
        yield {"role": message["role"], "content": text}


def answer(step: Step, model: str, turn: int) -> Json:
    """Return the response for a step, in the form of the API reference of Bedrock's runtime."""
    del model
    content: list[Json] = [] if step.text is None else [{"text": step.text}]
    for call in tool_calls(step, turn):
        function = call["function"]
        use = {"toolUseId": f"tooluse_{turn}_{len(content)}", "name": function["name"]}
        content.append({"toolUse": {**use, "input": json.loads(function["arguments"])}})
    used = {} if step.usage is None else {"usage": _usage(step.usage)}
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": step.finish_reason or ("tool_use" if step.tool_calls else "end_turn"),
        **used,
        "metrics": {"latencyMs": 1},
    }


def events(response: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the frames of a response's stream."""
    yield aws_event("messageStart", {"role": "assistant"})
    for index, block in enumerate(response["output"]["message"]["content"]):
        at = {"contentBlockIndex": index}
        use = block.get("toolUse")
        if use is not None:
            start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
            yield aws_event("contentBlockStart", {"start": start, **at})
        for part in halves(json.dumps(use["input"]) if use else block["text"]):
            delta = {"toolUse": {"input": part}} if use else {"text": part}
            yield aws_event("contentBlockDelta", {"delta": delta, **at})
        yield aws_event("contentBlockStop", at)
    yield aws_event("messageStop", {"stopReason": response["stopReason"]})
    kept = {key: response[key] for key in ("usage", "metrics") if key in response}
    yield aws_event("metadata", kept)


def _usage(usage: Mapping[str, int]) -> Json:
    taken, given, cached = (usage.get(name, 0) for name in ("input", "output", "cached"))
    return {
        "inputTokens": taken - cached,
        "outputTokens": given,
        "totalTokens": taken + given,
        "cacheReadInputTokens": cached,
    }


def aws_event(name: str, data: Mapping[str, Any], kind: str = "event") -> bytes:
    """Encode an event of AWS's event stream: lengths, headers, payload and their checksums."""
    named = {":message-type": kind, f":{kind}-type": name, ":content-type": "application/json"}
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
        for key, value in named.items()
    )
    payload = json.dumps(data).encode()
    prelude = struct.pack("!II", len(headers) + len(payload) + 16, len(headers))
    head = prelude + struct.pack("!I", crc32(prelude))
    message = head + headers + payload
    return message + struct.pack("!I", crc32(message))
