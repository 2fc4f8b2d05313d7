"""HTTP traffic of each format for tests: a request and an answer, plain and streamed.

`llm_wire` has the bodies; here they have one shape for all formats.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.model_traffic.formats.message_format import Format
from ci_agent_eval.model_traffic.formats.registry import FORMATS
from ci_agent_eval.model_traffic.messages import FormatName, ModelAnswer
from tests import llm_wire as wire
from tests.model_server import bedrock
from tests.model_server.bedrock import aws_event

EVENTS = {"content-type": "text/event-stream"}
AWS_EVENTS = {"content-type": "application/vnd.amazon.eventstream"}
JSON = {"content-type": "application/json"}

Call = tuple[str, Any]


@dataclass(frozen=True)
class Wire:
    """How one format writes requests and answers."""

    name: FormatName
    url: str
    build_body: Callable[..., dict[str, Any]]
    build_events: Callable[..., list[bytes]]
    build_request: Callable[..., dict[str, Any]]
    """`(prompt, call, call_id, result, **more)`: a conversation with one tool call."""
    other_url: str | None = None
    """The address of another model, if the address names it."""
    streamed_url: str | None = None
    """The address of a streamed answer, if it is another one."""
    settings: str | None = None
    """The key that the sampling settings are at."""
    event_headers: dict[str, str] = field(default_factory=lambda: EVENTS)

    @property
    def format(self) -> Format:
        return FORMATS[self.name]

    def parse(self, request: dict[str, Any], url: str | None = None) -> Any:
        return self.format.parse_request(url or self.url, json.dumps(request).encode())

    def key(self, request: dict[str, Any], url: str | None = None) -> str:
        return self.format.build_key(url or self.url, json.dumps(request).encode())

    def temperature(self, value: float) -> dict[str, Any]:
        """Return the part of a request that sets the temperature."""
        found = {"temperature": value}
        return {self.settings: found} if self.settings else found

    def read(self, body: Any, status: int = 200, **headers: str) -> ModelAnswer:
        """Return the answer of a body without streaming."""
        return self.assemble([json.dumps(body).encode()], status, {**JSON, **headers}).answer

    def read_events(self, events: Iterable[bytes]) -> ModelAnswer:
        return self.assemble(events).answer

    def assemble(
        self, chunks: Iterable[bytes], status: int = 200, headers: dict[str, str] | None = None
    ) -> Any:
        assembler = self.format.create_assembler(
            status, self.event_headers if headers is None else headers
        )
        for chunk in chunks:
            assembler.feed(chunk)
        return assembler


def cut(stream: bytes, places: Sequence[int]) -> list[bytes]:
    """Cut a stream at places, which may be any numbers."""
    at = sorted({place % (len(stream) + 1) for place in places} | {0, len(stream)})
    return [stream[a:b] for a, b in itertools.pairwise(at)]


def chat_request(prompt: str, call: Call, call_id: str, result: str, **more: Any) -> dict[str, Any]:
    function = {"name": call[0], "arguments": json.dumps(call[1])}
    return {
        "model": "gpt-5",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": prompt},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call_id, "content": result},
        ],
        **more,
    }


def responses_request(
    prompt: str, call: Call, call_id: str, result: str, **more: Any
) -> dict[str, Any]:
    return {
        "model": "gpt-5",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": prompt},
            {
                "type": "reasoning",
                "id": f"rs_{call_id}",
                "summary": [],
                "encrypted_content": call_id * 9,
            },
            {
                "type": "function_call",
                "id": f"fc_{call_id}",
                "call_id": call_id,
                "name": call[0],
                "arguments": json.dumps(call[1]),
            },
            {"type": "function_call_output", "call_id": call_id, "output": result},
        ],
        **more,
    }


def messages_request(
    prompt: str, call: Call, call_id: str, result: str, **more: Any
) -> dict[str, Any]:
    return {
        "model": "claude-sonnet-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": prompt},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": call_id * 9},
                    {"type": "tool_use", "id": call_id, "name": call[0], "input": call[1]},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call_id, "content": result}],
            },
        ],
        **more,
    }


def gemini_body(*calls: Call, text: str | None = None, finish: str = "STOP") -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    parts += [
        {"functionCall": {"id": f"call_{at}", "name": name, "args": arguments}}
        for at, (name, arguments) in enumerate(calls)
    ]
    return {
        "candidates": [
            {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": 30,
            "candidatesTokenCount": 12,
            "thoughtsTokenCount": 5,
            "totalTokenCount": 47,
        },
        "modelVersion": "gemini-3-pro",
        "responseId": "resp_1",
    }


def gemini_chunks(*calls: Call, text: str | None = None) -> list[dict[str, Any]]:
    """The objects of a stream: Google sends the usage so far with each, and calls as a whole."""
    whole = gemini_body(*calls, text=text)
    shared = {key: whole[key] for key in ("modelVersion", "responseId")}
    usage = {"promptTokenCount": 30, "totalTokenCount": 30}
    parts = [{"text": piece} for piece in wire.halves(text or "")]
    parts += [part for part in whole["candidates"][0]["content"]["parts"] if "text" not in part]
    chunks = [
        {"candidates": [{"content": {"parts": [part]}}], "usageMetadata": usage, **shared}
        for part in parts
    ]
    last = {"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}
    return [*chunks, {"candidates": [last], "usageMetadata": whole["usageMetadata"], **shared}]


def gemini_events(*calls: Call, text: str | None = None) -> list[bytes]:
    return [wire.data(chunk) for chunk in gemini_chunks(*calls, text=text)]


def gemini_request(
    prompt: str, call: Call, call_id: str, result: str, **more: Any
) -> dict[str, Any]:
    function = {"id": call_id, "name": call[0]}
    return {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": prompt}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Hm.", "thought": True},
                    {
                        "functionCall": {**function, "args": call[1]},
                        "thoughtSignature": call_id * 9,
                    },
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {**function, "response": {"result": result}}}],
            },
        ],
        **more,
    }


def converse_body(*calls: Call, text: str | None = None) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"text": text}] if text else []
    content += [
        {"toolUse": {"toolUseId": f"t{at}", "name": name, "input": arguments}}
        for at, (name, arguments) in enumerate(calls)
    ]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use" if calls else "end_turn",
        "usage": {"inputTokens": 30, "outputTokens": 12, "totalTokens": 42},
        "metrics": {"latencyMs": 551},
    }


def converse_events(*calls: Call, text: str | None = None) -> list[bytes]:
    return list(bedrock.events(converse_body(*calls, text=text)))


def invoke_events(events: Iterable[bytes]) -> list[bytes]:
    """Wrap Anthropic's events as Bedrock does in answers to `invoke-with-response-stream`."""
    return [
        aws_event("chunk", {"bytes": base64.b64encode(event[event.index(b"{") :]).decode()})
        for event in events
    ]


def converse_request(
    prompt: str, call: Call, call_id: str, result: str, **more: Any
) -> dict[str, Any]:
    use = {"toolUseId": call_id, "name": call[0], "input": call[1]}
    reasoning = {"reasoningText": {"text": "Hm.", "signature": call_id * 9}}
    found = {"toolUseId": call_id, "content": [{"text": result}], "status": "success"}
    return {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": prompt}]},
            {"role": "assistant", "content": [{"reasoningContent": reasoning}, {"toolUse": use}]},
            {"role": "user", "content": [{"toolResult": found}]},
        ],
        **more,
    }


WIRES = {
    wire_of.name: wire_of
    for wire_of in (
        Wire(
            "openai-chat",
            "https://api.openai.com/v1/chat/completions",
            wire.chat_body,
            wire.chat_events,
            chat_request,
        ),
        Wire(
            "openai-responses",
            "https://api.openai.com/v1/responses",
            wire.response_body,
            wire.response_events,
            responses_request,
        ),
        Wire(
            "anthropic-messages",
            "https://api.anthropic.com/v1/messages",
            wire.message_body,
            wire.message_events,
            messages_request,
        ),
        Wire(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent",
            gemini_body,
            gemini_events,
            gemini_request,
            other_url="https://generativelanguage.googleapis.com/models/gemini-3:generateContent",
            streamed_url="https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:streamGenerateContent",
            settings="generationConfig",
        ),
        Wire(
            "bedrock-converse",
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.amazon.nova-pro-v1%3A0/converse",
            converse_body,
            converse_events,
            converse_request,
            other_url="https://bedrock-runtime.us-east-1.amazonaws.com/model/other/converse",
            streamed_url="https://bedrock-runtime.us-east-1.amazonaws.com/model/us.amazon.nova-pro-v1%3A0/converse-stream",
            settings="inferenceConfig",
            event_headers=AWS_EVENTS,
        ),
    )
}
SSE_WIRES = {name: item for name, item in WIRES.items() if item.event_headers is EVENTS}
