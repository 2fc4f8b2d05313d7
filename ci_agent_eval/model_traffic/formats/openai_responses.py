"""OpenAI's Responses.

Shapes: https://platform.openai.com/docs/api-reference/responses and …/responses-streaming.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import TokenUsage
from ci_agent_eval.model_traffic.formats.assembler import AnswerAssembler, AnswerReader
from ci_agent_eval.model_traffic.formats.canonical_key import KeyRules, build_canonical_key
from ci_agent_eval.model_traffic.formats.error_answers import build_openai_refusal
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    get_count,
    get_object,
    get_objects,
    get_text,
    parse_request_body,
    pick_settings,
)
from ci_agent_eval.model_traffic.formats.protocol import HTTPAnswer, UnreadableTrafficError
from ci_agent_eval.model_traffic.formats.response_items import (
    has_refusal,
    read_call,
    read_messages,
    read_text,
)
from ci_agent_eval.model_traffic.messages import (
    FormatName,
    ModelAnswer,
    ModelRequest,
    RequestHead,
    RequestMessage,
    ToolDefinition,
)

_SETTINGS = (
    "temperature",
    "top_p",
    "max_output_tokens",
    "max_tool_calls",
    "parallel_tool_calls",
    "reasoning",
    "service_tier",
    "tool_choice",
    "truncation",
)
_KEY_RULES = KeyRules(
    dropped=(
        # Codex: ids and times of the session
        "client_metadata",
        "input.*.internal_chat_message_metadata_passthrough",
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "stream",
        "stream_options",
        "user",
    ),
    ids=(
        "previous_response_id",
        "conversation",
        "conversation.id",
        "input.*.call_id",
        "input.*.id",
        "input.*.approval_request_id",
        "input.*.caller.caller_id",
        "input.*.acknowledged_safety_checks.*.id",
        "input.*.container_id",
    ),
    results=("input", "call_id", "output"),
    blobs=("input.*.encrypted_content", "input.*.fingerprint"),
)
_CLIENT_TOOLS = frozenset(
    {"apply_patch", "computer", "computer_use_preview", "custom", "function", "local_shell"}
)
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class OpenAIResponses:
    """OpenAI's Responses."""

    name: FormatName = "openai-responses"
    path = re.compile(r"/responses$")
    conversation = "input"

    def parse_head(self, _path: str, body: bytes) -> RequestHead:
        """Parse a request without its messages and tools. Raises UnreadableTrafficError."""
        return _read_head(_parse_request(body))

    def parse_request(self, _path: str, body: bytes) -> ModelRequest:
        """Parse a request. Raises UnreadableTrafficError."""
        request = _parse_request(body)
        conversation = get_object(request, "conversation") or {"id": request.get("conversation")}
        head = _read_head(request)
        return ModelRequest(
            format=self.name,
            model=head.model,
            settings=head.settings,
            output_schema=head.output_schema,
            messages=tuple(_read_messages(request)),
            tools=tuple(_read_tools(request)),
            is_streamed=request.get("stream") is True,
            previous_response_id=get_text(request, "previous_response_id")
            or get_text(conversation, "id"),
        )

    def create_assembler(self, status: int, headers: Mapping[str, str]) -> AnswerAssembler:
        """Create the assembler of an answer."""
        return AnswerAssembler(status, headers, RESPONSES_READER)

    def build_refusal(self, message: str) -> HTTPAnswer:
        """Build the refusal, which OpenAI's client raises as BadRequestError."""
        return build_openai_refusal(message)

    def build_key(self, _path: str, body: bytes) -> str:
        """Return the canonical JSON of a request for replay. Raises UnreadableTrafficError."""
        request = _parse_request(body)
        return build_canonical_key(self.name, get_text(request, "model"), request, _KEY_RULES)


def _parse_request(body: bytes) -> Json:
    request = parse_request_body(body)
    if not isinstance(request.get("input", ""), str | list):
        raise UnreadableTrafficError("`input` is neither a text nor a list")
    return request


def _read_head(request: Json) -> RequestHead:
    return RequestHead(
        model=get_text(request, "model"),
        settings=pick_settings(request, _SETTINGS),
        output_schema=to_jsonable(get_object(request, "text", "format").get("schema")),
    )


def _read_messages(request: Json) -> Iterator[RequestMessage]:
    instructions, prompt = get_text(request, "instructions"), get_text(request, "input")
    if instructions:
        yield RequestMessage("system", instructions)
    if prompt is not None:
        yield RequestMessage("user", prompt)
    yield from read_messages(get_objects(request, "input"))


def _read_tools(request: Json) -> Iterator[ToolDefinition]:
    for tool in get_objects(request, "tools"):
        kind = get_text(tool, "type") or "function"
        is_hosted = kind not in _CLIENT_TOOLS and not _is_client_shell(tool)
        name = get_text(tool, "name") or kind
        yield ToolDefinition(
            name,
            to_jsonable(tool.get("parameters")),
            is_hosted=is_hosted,
            description=get_text(tool, "description") or "",
        )


def _is_client_shell(tool: Json) -> bool:
    environment = get_text(get_object(tool, "environment"), "type")
    return tool.get("type") == "shell" and environment in (None, "local")


def _read_response(body: Json) -> ModelAnswer:
    items = get_objects(body, "output")
    calls = [call for item in items if (call := read_call(item)) is not None]
    texts = [text for item in items if item.get("type") == "message" and (text := read_text(item))]
    return ModelAnswer(
        id=get_text(body, "id"),
        model=get_text(body, "model"),
        text="\n\n".join(texts),
        tool_calls=tuple(calls),
        tokens=_read_tokens(get_object(body, "usage")),
        usage=get_object(body, "usage") or None,
        finish_reason=_get_finish_reason(body, items),
    )


def _get_finish_reason(body: Json, items: Sequence[Json]) -> str | None:
    """Return why the response is incomplete, or its status once it has ended without error."""
    status = get_text(body, "status")
    if status == "completed" and has_refusal(items):
        return "refusal"
    if status in ("failed", "in_progress", "queued"):
        return None
    return get_text(get_object(body, "incomplete_details"), "reason") or status


def _read_tokens(usage: Json) -> TokenUsage | None:
    input_tokens, output_tokens = (
        get_count(usage, "input_tokens"),
        get_count(usage, "output_tokens"),
    )
    if input_tokens is None or output_tokens is None:
        return None
    return TokenUsage(
        input=input_tokens,
        output=output_tokens,
        cached=get_count(usage, "input_tokens_details", "cached_tokens") or 0,
        reasoning=get_count(usage, "output_tokens_details", "reasoning_tokens"),
    )


def _assemble_response(events: Sequence[Json]) -> Json:
    """Merge the events of a response; its last event has all of it, unless it was cut off."""
    response: Json = {}
    items = _AssembledItems()
    for event in events:
        response |= get_object(event, "response")
        if event.get("type") == "error":
            response["error"] = {"message": get_text(event, "message") or "no reason given"}
        items.add(event)
    # Some servers leave the output out of the last event.
    return {**response, "output": response.get("output") or items.build()}


@dataclass(slots=True)
class _AssembledItems:
    """The items of a response, assembled from their events."""

    _items: dict[int, Json] = field(default_factory=dict)
    _deltas: dict[int, dict[tuple[str, int], list[str]]] = field(default_factory=dict)
    """The fragments of each item, by key and index of the content part."""

    def add(self, event: Json) -> None:
        """Add the item or the fragment of an event."""
        at, kind = get_count(event, "output_index"), get_text(event, "type")
        if at is None or kind is None:
            return
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._items[at] = get_object(event, "item")
            self._deltas.pop(at, None)
        elif kind in _DELTAS:
            position = (_DELTAS[kind], get_count(event, "content_index") or 0)
            fragments = self._deltas.setdefault(at, {}).setdefault(position, [])
            fragments.append(get_text(event, "delta") or "")

    def build(self) -> list[Json]:
        """Build the items in order."""
        return [self._build_item(at) for at in sorted({*self._items, *self._deltas})]

    def _build_item(self, at: int) -> Json:
        item = {"type": "message", **self._items.get(at, {})}
        for (key, _), fragments in sorted(self._deltas.get(at, {}).items()):
            text = "".join(fragments)
            if key in ("text", "refusal"):
                part = {"type": "refusal" if key == "refusal" else "output_text", key: text}
                item["content"] = [*get_objects(item, "content"), part]
            else:
                item[key] = text
        return item


_DELTAS = {
    "response.custom_tool_call_input.delta": "input",
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
}
"""The key that the fragments of an event belong to."""


RESPONSES_READER = AnswerReader(
    assemble=_assemble_response,
    read=_read_response,
    end_marks=tuple(f'"{end}"'.encode() for end in _ENDS),
    is_end=lambda event: event.get("type") in _ENDS,
)
