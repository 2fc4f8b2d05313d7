"""Recorded model calls for tests, from requests and answers that are already parsed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall
from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from ci_agent_eval.model_traffic.messages import (
    FormatName,
    ModelAnswer,
    ModelRequest,
    RequestHead,
    RequestMessage,
    ToolDefinition,
    ToolResult,
)
from ci_agent_eval.model_traffic.recorder import ModelCall, TrafficRecorder

URL = "http://127.0.0.1/v1/chat/completions"


def user(text: str, **others: Any) -> RequestMessage:
    return RequestMessage("user", text, **others)


def system(text: str) -> RequestMessage:
    return RequestMessage("system", text)


def said(text: str = "", *calls: ToolCall) -> RequestMessage:
    """An answer of the model, as a later request repeats it."""
    return RequestMessage("assistant", text, calls)


def result(value: Any, call_id: str | None = None, name: str | None = None, **others: Any) -> Any:
    return RequestMessage("tool", tool_results=(ToolResult(call_id, name, value, **others),))


def tool(name: str, call_id: str | None = None, **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def answer(text: str = "", *calls: ToolCall, **others: Any) -> ModelAnswer:
    fields = {"tokens": TokenUsage(input=10, output=5), "finish_reason": "stop", **others}
    return ModelAnswer(text=text, tool_calls=calls, **fields)


@dataclass
class ParsedAnswer:
    """An assembler whose answer arrives with its first chunk."""

    answer: ModelAnswer
    is_ended: bool = False

    def feed(self, chunk: bytes) -> None:
        self.is_ended = chunk == b"whole"

    @property
    def is_complete(self) -> bool:
        return self.is_ended


@dataclass
class ParsedFormat:
    """A format whose bodies are names of requests that are already parsed."""

    name: FormatName = "openai-chat"
    path: re.Pattern[str] = re.compile("/chat/completions$")
    conversation: str = "messages"
    requests: dict[bytes, ModelRequest] = field(default_factory=dict)
    answers: dict[int, ModelAnswer] = field(default_factory=dict)
    next_answer: ModelAnswer = field(default_factory=ModelAnswer)

    def parse_head(self, path: str, body: bytes) -> RequestHead:
        return self.requests[body]

    def parse_request(self, path: str, body: bytes) -> ModelRequest:
        return self.requests[body]

    def create_assembler(self, status: int, headers: Mapping[str, str]) -> ParsedAnswer:
        return ParsedAnswer(self.next_answer)

    def build_refusal(self, message: str) -> HTTPAnswer:
        return HTTPAnswer(400, chunks=(message.encode(),))

    def build_key(self, path: str, body: bytes) -> str:
        return body.decode()


@dataclass
class Traffic:
    """Model calls of an episode; each step of the clock takes a second."""

    format: ParsedFormat = field(default_factory=ParsedFormat)
    recorder: TrafficRecorder = field(
        default_factory=lambda: TrafficRecorder(itertools.count(0.0, 1.0).__next__)
    )

    @property
    def calls(self) -> Sequence[ModelCall]:
        return self.recorder.calls

    def start(self, *messages: RequestMessage, tools: Sequence[str] = (), **fields: Any) -> Any:
        """Start a call that has no answer yet; returns it."""
        body = f"request {len(self.calls) + 1}".encode()
        offered = tuple(ToolDefinition(name) for name in tools)
        fields = {"model": "gpt-5-mini", "tools": offered, **fields}
        self.format.requests[body] = ModelRequest(
            format=self.format.name, messages=messages, **fields
        )
        return self.recorder.start_call(self.format, URL, body)

    def finish(self, call: ModelCall, given: ModelAnswer, status: int = 200) -> ModelCall:
        self.format.next_answer = given
        call.set_response(status, {})
        call.feed(b"whole")
        return call

    def ask(self, *messages: RequestMessage, gives: ModelAnswer, **fields: Any) -> ModelCall:
        """Record a complete call."""
        return self.finish(self.start(*messages, **fields), gives)

    def fail(self, *messages: RequestMessage, status: int | None = None, **fields: Any) -> None:
        """Record a call without an answer: an error status, or a connection error."""
        call = self.start(*messages, **fields)
        if status is None:
            call.end("ConnectError: refused")
        else:
            self.finish(call, ModelAnswer(error="overloaded"), status)

    def break_off(self, *messages: RequestMessage, gives: ModelAnswer, **fields: Any) -> None:
        """Record a call whose answer ends early."""
        call = self.start(*messages, **fields)
        self.format.next_answer = gives
        call.set_response(200, {})
        call.feed(b"part")
        call.end()
