"""What a GenAI span says, whichever form it says it in. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from pydantic import JsonValue

from ci_agent_eval.contract.base import Count
from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall

CHAT = frozenset({"chat", "generate_content", "text_completion"})
"""Operations that ask a model."""
TOOL = "execute_tool"
AGENT = "invoke_agent"

_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_CACHED = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.details.cache_read_tokens")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "gen_ai.tool.arguments", "tool_arguments")
_RESULT = ("gen_ai.tool.call.result", "gen_ai.tool.result", "tool_response")
_COST = ("operation.cost", "gen_ai.usage.cost")
_DETAILS = "gen_ai.client.inference.operation.details"

Message = dict[str, Any]
"""A message of the conventions: `role`, and `parts` that each have a `type`."""


class SpanLike(Protocol):
    """What is read of a span; OpenTelemetry's `ReadableSpan` has it."""

    @property
    def attributes(self) -> Mapping[str, Any] | None:
        """What it says."""

    @property
    def events(self) -> Sequence[Any]:
        """What happened in it; each with `name` and `attributes`."""

    @property
    def start_time(self) -> int | None:
        """Nanoseconds since 1970."""

    @property
    def end_time(self) -> int | None:
        """Nanoseconds since 1970; None while it goes on."""

    @property
    def context(self) -> Any:
        """Its own `span_id`."""

    @property
    def parent(self) -> Any:
        """Its parent's `span_id`, or None."""

    @property
    def status(self) -> Any:
        """`is_ok` or not, and a `description`."""


def operation(span: SpanLike) -> str:
    """Return the operation's name; empty where it is no GenAI span."""
    return str(_first(span, ("gen_ai.operation.name",)) or "")


def latency_ms(span: SpanLike) -> float | None:
    """Return how long it took; None where it has not ended."""
    if span.start_time is None or span.end_time is None:
        return None
    return round(max(span.end_time - span.start_time, 0) / 1e6, 3)


def tokens(span: SpanLike) -> TokenUsage | None:
    """Return the tokens of a model's answer; None where they were not measured."""
    taken, given = _count(span, _INPUT), _count(span, _OUTPUT)
    if taken is None or given is None:
        return None
    return TokenUsage(input=taken, output=given, cached=_count(span, _CACHED) or 0)


def cost_usd(span: SpanLike) -> float | None:
    """Return the cost where the instrumentation says it."""
    found = _first(span, _COST)
    is_cost = isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < 1e15
    return float(found) if is_cost else None


def finish_reason(span: SpanLike) -> str | None:
    """Return why the model stopped, by its first choice; None where nobody says."""
    found = _first(span, ("gen_ai.response.finish_reasons",))
    reasons = found if isinstance(found, list | tuple) else ()
    return clean_text(str(reasons[0])) if reasons else None


def error(span: SpanLike) -> str | None:
    """Return what went wrong; None where nothing did."""
    failed = not getattr(span.status, "is_ok", True) or _first(span, ("error.type",)) is not None
    if not failed:
        return None
    raised = [_attributes(event) for event in span.events if event.name == "exception"]
    said = [str(of.get("exception.message")) for of in raised if of.get("exception.message")]
    known = [getattr(span.status, "description", None), _first(span, ("error.type",))]
    return clean_text(next((str(text) for text in [*said, *known] if text), "it failed"))


def tool_of(span: SpanLike) -> ToolCall:
    """Return the call a tool's span tells of."""
    given = _first(span, ("gen_ai.tool.call.id",))
    failed = error(span)
    return ToolCall(
        id=None if given is None else clean_text(str(given)),
        name=clean_text(str(_first(span, ("gen_ai.tool.name",)) or "unnamed")),
        arguments=value_of(_first(span, _ARGUMENTS)),
        result=None if failed else value_of(_first(span, _RESULT)),
        error=failed,
        duration_ms=latency_ms(span),
    )


def asked(span: SpanLike) -> list[Message]:
    """Return the messages a model was given."""
    found = _messages(_told(span, "gen_ai.input.messages"))
    return found or [message for name, message in _old_events(span) if name != "gen_ai.choice"]


def answered(span: SpanLike) -> list[Message]:
    """Return the messages a model answered with."""
    found = _messages(_told(span, "gen_ai.output.messages"))
    return found or [message for name, message in _old_events(span) if name == "gen_ai.choice"]


def text_of(message: Message) -> str:
    """Return the text of a message; thoughts and files are none."""
    texts = [part.get("content") for part in message["parts"] if part.get("type") == "text"]
    return clean_text("\n".join(text for text in texts if isinstance(text, str)))


def calls_of(message: Message) -> Iterator[ToolCall]:
    """Yield the calls a message asks for."""
    for part in message["parts"]:
        if part.get("type") == "tool_call":
            given = part.get("id")
            yield ToolCall(
                id=None if given is None else clean_text(str(given)),
                name=clean_text(str(part.get("name") or "unnamed")),
                arguments=value_of(part.get("arguments")),
            )


def results_of(message: Message) -> Iterator[tuple[str, JsonValue]]:
    """Yield what tools answered: call id and result. The conventions say `response`."""
    for part in message["parts"]:
        if part.get("type") == "tool_call_response":
            yield str(part.get("id")), value_of(part.get("response", part.get("result")))


def value_of(value: Any) -> JsonValue:
    """Return a value as JSON; attributes hold objects as JSON texts."""
    if isinstance(value, str):
        try:
            return to_jsonable(json.loads(value))
        except (ValueError, RecursionError):
            return clean_text(value)
    return to_jsonable(value)


def _told(span: SpanLike, name: str) -> Any:
    """Return an attribute of the span, or of the event that may hold it instead."""
    found = _first(span, (name,))
    for event in span.events if found is None else ():
        if event.name == _DETAILS:
            found = _attributes(event).get(name, found)
    return found


def _messages(value: Any) -> list[Message]:
    plain = value_of(value)
    items = plain if isinstance(plain, list) else []
    return [
        {"role": item.get("role"), "parts": [part for part in parts if isinstance(part, dict)]}
        for item in items
        if isinstance(item, dict) and isinstance(parts := item.get("parts"), list)
    ]


def _old_events(span: SpanLike) -> Iterator[tuple[str, Message]]:
    """Yield what older instrumentations tell by events, on the span or as its `events`."""
    listed = value_of(_first(span, ("events",)))
    bodies = [body for body in listed if isinstance(body, dict)] if isinstance(listed, list) else []
    told: list[tuple[str, Mapping[str, Any]]] = [
        (str(body.get("event.name")), body) for body in bodies
    ]
    told += [(event.name, _attributes(event)) for event in span.events]
    for name, body in told:
        if name in _OLD_ROLES:
            yield name, _old_message(_OLD_ROLES[name], body)
        elif name in _OLDEST:
            role, key = _OLDEST[name]
            yield (
                ("gen_ai.choice" if role == "assistant" else name),
                _old_message(role, {"content": body.get(key)}),
            )


_OLD_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}
_OLDEST = {
    "gen_ai.content.prompt": ("user", "gen_ai.prompt"),
    "gen_ai.content.completion": ("assistant", "gen_ai.completion"),
}


def _old_message(role: str, body: Mapping[str, Any]) -> Message:
    inner = value_of(body.get("message"))
    said: Mapping[str, Any] = inner if isinstance(inner, dict) else body
    content = said.get("content")
    if role == "tool":
        return {
            "role": role,
            "parts": [{"type": "tool_call_response", "id": said.get("id"), "response": content}],
        }
    parts: list[Message] = []
    if content is not None:
        text = content if isinstance(content, str) else json.dumps(to_jsonable(content))
        parts.append({"type": "text", "content": text})
    calls = value_of(said.get("tool_calls"))
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            parts.append({"type": "tool_call", "id": call.get("id"), **function})
    return {"role": role, "parts": parts}


def _attributes(event: Any) -> Mapping[str, Any]:
    return event.attributes or {}


def _first(span: SpanLike, names: Sequence[str]) -> Any:
    given = span.attributes or {}
    return next((given[name] for name in names if given.get(name) is not None), None)


def _count(span: SpanLike, names: Sequence[str]) -> Count | None:
    found = _first(span, names)
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= 2**53
    return found if is_count else None
