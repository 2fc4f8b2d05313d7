"""Reading of GenAI spans in all versions of the conventions, and of OpenInference spans. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from pydantic import JsonValue

from ci_agent_eval.contract.base import Count
from ci_agent_eval.contract.jsonable import clean_optional_text, clean_text, to_jsonable
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall
from ci_agent_eval.engine.traces.indexed_messages import (
    Message,
    read_indexed_input,
    read_indexed_output,
)

CHAT_OPERATIONS = frozenset({"chat", "generate_content", "text_completion"})
"""Operations that call a model."""
TOOL_OPERATION = "execute_tool"
AGENT_OPERATION = "invoke_agent"

_KINDS = {
    "LLM": "chat",
    "chat": "chat",
    "completion": "text_completion",
    "TOOL": TOOL_OPERATION,
    "tool": TOOL_OPERATION,
    "AGENT": AGENT_OPERATION,
    "agent": AGENT_OPERATION,
}
"""Operations of the kinds of OpenInference, OpenLLMetry and its older requests."""

_INPUT = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
)
_OUTPUT = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
)
_CACHED = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "llm.token_count.prompt_details.cache_read",
)
_REASONING = (
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.reasoning_tokens",
    "llm.token_count.completion_details.reasoning",
)
_TOOL = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
_CALL_ID = ("gen_ai.tool.call.id", "tool_call.id", "tool.id")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.arguments",
    "tool_arguments",
    "traceloop.entity.input",
    "input.value",
)
_RESULT = (
    "gen_ai.tool.call.result",
    "gen_ai.tool.result",
    "tool_response",
    "traceloop.entity.output",
    "output.value",
)
_FINISH = (
    "gen_ai.response.finish_reasons",
    "gen_ai.completion.0.finish_reason",
    "llm.finish_reason",
)
_AGENT = ("gen_ai.agent.name", "agent.name", "traceloop.entity.name")
_MODEL = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
)
_COST = ("operation.cost", "gen_ai.usage.cost", "llm.cost.total")
_DETAILS = "gen_ai.client.inference.operation.details"


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
    """Return the operation's name; empty for other spans.

    OpenInference has tools without a name for handoffs, which are no tools.
    """
    named = _get_first(span, ("gen_ai.operation.name",))
    if named is not None:
        return str(named)
    kinds = ("openinference.span.kind", "traceloop.span.kind", "llm.request.type")
    found = _KINDS.get(str(_get_first(span, kinds)), "")
    return "" if found == TOOL_OPERATION and _get_first(span, _TOOL) is None else found


def get_agent_name(span: SpanLike) -> str | None:
    """Return the name of an agent's span; None if unknown."""
    return _get_text(span, _AGENT)


def get_model(span: SpanLike) -> str | None:
    """Return the model of a model call; None if unknown."""
    return _get_text(span, _MODEL)


def get_response_id(span: SpanLike) -> str | None:
    """Return the provider's id of the answer; None if unknown."""
    return _get_text(span, ("gen_ai.response.id",))


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
        input=input_tokens,
        output=output_tokens,
        cached=_get_count(span, _CACHED) or 0,
        reasoning=_get_count(span, _REASONING),
    )


def get_cost_usd(span: SpanLike) -> float | None:
    """Return the cost in US dollars, if the instrumentation reports it."""
    found = _get_first(span, _COST)
    is_cost = isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < 1e15
    return float(found) if is_cost else None


def get_finish_reason(span: SpanLike) -> str | None:
    """Return the finish reason of the first choice; None if unknown."""
    found = _get_first(span, _FINISH)
    reasons = [found] if isinstance(found, str) else found
    if not isinstance(reasons, list | tuple):
        return None
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


def build_span_tool_call(span: SpanLike) -> ToolCall:
    """Build the tool call of a tool's span."""
    failed, result = get_error(span), parse_attribute(_get_first(span, _RESULT))
    message = _find_tool_message(result)
    if message is not None:
        result = message.get("content")
    call_id = _get_text(span, _CALL_ID)
    return ToolCall(
        id=_get_message_call_id(message) if call_id is None else call_id,
        name=_get_text(span, _TOOL) or "unnamed",
        arguments=parse_attribute(_get_first(span, _ARGUMENTS)),
        result=None if failed else result,
        error=failed,
        duration_ms=compute_latency_ms(span),
    )


def _find_tool_message(result: JsonValue) -> Mapping[str, JsonValue] | None:
    """Return the fields of the LangChain message that is a tool's result."""
    found = result.get("output", result) if isinstance(result, dict) else None
    if not isinstance(found, dict):
        return None
    fields = found.get("kwargs") if "lc" in found else found.get("data")
    return fields if isinstance(fields, dict) and "tool_call_id" in fields else None


def _get_message_call_id(message: Mapping[str, JsonValue] | None) -> str | None:
    found = None if message is None else message["tool_call_id"]
    return clean_text(found) if isinstance(found, str) else None


def get_input_messages(span: SpanLike) -> list[Message]:
    """Return the messages to the model."""
    found = _parse_messages(_get_message_attribute(span, "gen_ai.input.messages"))
    found = found or read_indexed_input(span.attributes or {})
    return found or [message for name, message in _read_old_events(span) if name != "gen_ai.choice"]


def get_output_messages(span: SpanLike) -> list[Message]:
    """Return the messages from the model."""
    found = _parse_messages(_get_message_attribute(span, "gen_ai.output.messages"))
    found = found or read_indexed_output(span.attributes or {})
    return found or [message for name, message in _read_old_events(span) if name == "gen_ai.choice"]


def get_message_text(message: Message) -> str:
    """Return the text of a message, without thoughts and files."""
    texts = [part.get("content") for part in message["parts"] if part.get("type") == "text"]
    return clean_text("\n".join(text for text in texts if isinstance(text, str)))


def iterate_calls(message: Message) -> Iterator[ToolCall]:
    """Yield the tool calls in a message."""
    for part in message["parts"]:
        if part.get("type") == "tool_call":
            given = part.get("id")
            yield ToolCall(
                id=clean_optional_text(given),
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


def _get_text(span: SpanLike, names: Sequence[str]) -> str | None:
    found = _get_first(span, names)
    return clean_optional_text(found)


def _get_count(span: SpanLike, names: Sequence[str]) -> Count | None:
    found = _get_first(span, names)
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= 2**53
    return found if is_count else None
