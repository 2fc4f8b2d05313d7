"""Reading of GenAI spans in all versions of the conventions. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from pydantic import JsonValue

from ci_agent_eval.contract.base import Count
from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall

CHAT_OPERATIONS = frozenset({"chat", "generate_content", "text_completion"})
"""Operations that call a model."""
TOOL_OPERATION = "execute_tool"
AGENT_OPERATION = "invoke_agent"

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
    """The used part of a span; OpenTelemetry's `ReadableSpan` has it."""

    @property
    def attributes(self) -> Mapping[str, Any] | None:
        """The attributes of the span."""

    @property
    def events(self) -> Sequence[Any]:
        """The events of the span, each with `name` and `attributes`."""

    @property
    def start_time(self) -> int | None:
        """Nanoseconds since 1970."""

    @property
    def end_time(self) -> int | None:
        """Nanoseconds since 1970; None before the end."""

    @property
    def context(self) -> Any:
        """The context with `span_id`."""

    @property
    def parent(self) -> Any:
        """The parent's context with `span_id`, or None."""

    @property
    def status(self) -> Any:
        """The status with `is_ok` and `description`."""


def get_operation(span: SpanLike) -> str:
    """Return the operation's name; empty for other spans."""
    return str(_get_first(span, ("gen_ai.operation.name",)) or "")


def compute_latency_ms(span: SpanLike) -> float | None:
    """Return the duration in milliseconds; None before the end."""
    if span.start_time is None or span.end_time is None:
        return None
    return round(max(span.end_time - span.start_time, 0) / 1e6, 3)


def get_tokens(span: SpanLike) -> TokenUsage | None:
    """Return the tokens of a model call; None if not measured."""
    input_tokens, output_tokens = _get_count(span, _INPUT), _get_count(span, _OUTPUT)
    if input_tokens is None or output_tokens is None:
        return None
    return TokenUsage(
        input=input_tokens, output=output_tokens, cached=_get_count(span, _CACHED) or 0
    )


def get_cost_usd(span: SpanLike) -> float | None:
    """Return the cost in US dollars, if the instrumentation reports it."""
    found = _get_first(span, _COST)
    is_cost = isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < 1e15
    return float(found) if is_cost else None


def get_finish_reason(span: SpanLike) -> str | None:
    """Return the finish reason of the first choice; None if unknown."""
    found = _get_first(span, ("gen_ai.response.finish_reasons",))
    reasons = found if isinstance(found, list | tuple) else ()
    return clean_text(str(reasons[0])) if reasons else None


def get_error(span: SpanLike) -> str | None:
    """Return the error message; None without an error."""
    failed = (
        not getattr(span.status, "is_ok", True) or _get_first(span, ("error.type",)) is not None
    )
    if not failed:
        return None
    exceptions = [_get_attributes(event) for event in span.events if event.name == "exception"]
    texts = [
        str(event.get("exception.message"))
        for event in exceptions
        if event.get("exception.message")
    ]
    known = [getattr(span.status, "description", None), _get_first(span, ("error.type",))]
    return clean_text(next((str(text) for text in [*texts, *known] if text), "it failed"))


def build_tool_call(span: SpanLike) -> ToolCall:
    """Build the tool call of a tool's span."""
    given = _get_first(span, ("gen_ai.tool.call.id",))
    failed = get_error(span)
    return ToolCall(
        id=None if given is None else clean_text(str(given)),
        name=clean_text(str(_get_first(span, ("gen_ai.tool.name",)) or "unnamed")),
        arguments=parse_attribute(_get_first(span, _ARGUMENTS)),
        result=None if failed else parse_attribute(_get_first(span, _RESULT)),
        error=failed,
        duration_ms=compute_latency_ms(span),
    )


def get_input_messages(span: SpanLike) -> list[Message]:
    """Return the messages to the model."""
    found = _parse_messages(_get_message_attribute(span, "gen_ai.input.messages"))
    return found or [message for name, message in _read_old_events(span) if name != "gen_ai.choice"]


def get_output_messages(span: SpanLike) -> list[Message]:
    """Return the messages from the model."""
    found = _parse_messages(_get_message_attribute(span, "gen_ai.output.messages"))
    return found or [message for name, message in _read_old_events(span) if name == "gen_ai.choice"]


def get_text(message: Message) -> str:
    """Return the text of a message, without thoughts and files."""
    texts = [part.get("content") for part in message["parts"] if part.get("type") == "text"]
    return clean_text("\n".join(text for text in texts if isinstance(text, str)))


def iterate_calls(message: Message) -> Iterator[ToolCall]:
    """Yield the tool calls in a message."""
    for part in message["parts"]:
        if part.get("type") == "tool_call":
            given = part.get("id")
            yield ToolCall(
                id=None if given is None else clean_text(str(given)),
                name=clean_text(str(part.get("name") or "unnamed")),
                arguments=parse_attribute(part.get("arguments")),
            )


def iterate_results(message: Message) -> Iterator[tuple[str, JsonValue]]:
    """Yield call id and result of tools; the conventions call it `response`."""
    for part in message["parts"]:
        if part.get("type") == "tool_call_response":
            yield str(part.get("id")), parse_attribute(part.get("response", part.get("result")))


def parse_attribute(value: Any) -> JsonValue:
    """Convert an attribute to JSON; objects are stored as JSON texts."""
    if isinstance(value, str):
        try:
            return to_jsonable(json.loads(value))
        except (ValueError, RecursionError):
            return clean_text(value)
    return to_jsonable(value)


def _get_message_attribute(span: SpanLike, name: str) -> Any:
    """Return an attribute of the span, or of its details event."""
    found = _get_first(span, (name,))
    for event in span.events if found is None else ():
        if event.name == _DETAILS:
            found = _get_attributes(event).get(name, found)
    return found


def _parse_messages(value: Any) -> list[Message]:
    plain = parse_attribute(value)
    items = plain if isinstance(plain, list) else []
    return [
        {"role": item.get("role"), "parts": [part for part in parts if isinstance(part, dict)]}
        for item in items
        if isinstance(item, dict) and isinstance(parts := item.get("parts"), list)
    ]


def _read_old_events(span: SpanLike) -> Iterator[tuple[str, Message]]:
    """Yield the messages in events of older instrumentations."""
    listed = parse_attribute(_get_first(span, ("events",)))
    bodies = [body for body in listed if isinstance(body, dict)] if isinstance(listed, list) else []
    events: list[tuple[str, Mapping[str, Any]]] = [
        (str(body.get("event.name")), body) for body in bodies
    ]
    events += [(event.name, _get_attributes(event)) for event in span.events]
    for name, body in events:
        if name in _OLD_ROLES:
            yield name, _convert_old_message(_OLD_ROLES[name], body)
        elif name in _OLDEST:
            role, key = _OLDEST[name]
            yield (
                ("gen_ai.choice" if role == "assistant" else name),
                _convert_old_message(role, {"content": body.get(key)}),
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


def _convert_old_message(role: str, body: Mapping[str, Any]) -> Message:
    inner = parse_attribute(body.get("message"))
    texts: Mapping[str, Any] = inner if isinstance(inner, dict) else body
    content = texts.get("content")
    if role == "tool":
        return {
            "role": role,
            "parts": [{"type": "tool_call_response", "id": texts.get("id"), "response": content}],
        }
    parts: list[Message] = []
    if content is not None:
        text = content if isinstance(content, str) else json.dumps(to_jsonable(content))
        parts.append({"type": "text", "content": text})
    calls = parse_attribute(texts.get("tool_calls"))
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            parts.append({"type": "tool_call", "id": call.get("id"), **function})
    return {"role": role, "parts": parts}


def _get_attributes(event: Any) -> Mapping[str, Any]:
    return event.attributes or {}


def _get_first(span: SpanLike, names: Sequence[str]) -> Any:
    given = span.attributes or {}
    return next((given[name] for name in names if given.get(name) is not None), None)


def _get_count(span: SpanLike, names: Sequence[str]) -> Count | None:
    found = _get_first(span, names)
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= 2**53
    return found if is_count else None
