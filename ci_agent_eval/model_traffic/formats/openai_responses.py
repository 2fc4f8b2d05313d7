"""OpenAI's Responses.

Shapes: https://platform.openai.com/docs/api-reference/responses and …/responses-streaming.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from pydantic import JsonValue

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import Attachment, Role, TokenUsage, ToolCall
from ci_agent_eval.model_traffic.formats.assembler import AnswerReader
from ci_agent_eval.model_traffic.formats.canonical_key import KeyRules
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    build_tool_call,
    get_count,
    get_object,
    get_objects,
    get_text,
    join_texts,
    list_objects,
    parse_arguments,
    read_base64,
    read_url,
)
from ci_agent_eval.model_traffic.formats.message_format import Format
from ci_agent_eval.model_traffic.formats.openai_chat import build_openai_error
from ci_agent_eval.model_traffic.messages import (
    ModelAnswer,
    RequestMessage,
    ToolDefinition,
    ToolResult,
)

_ROLES: Mapping[str | None, Role] = {
    "assistant": "assistant",
    "developer": "system",
    "system": "system",
}


@dataclass(frozen=True, slots=True)
class _HostedCall:
    """Where an item of a call that the provider made has its arguments and its result."""

    name: str
    arguments: tuple[str, ...]
    result: str | None = None


_HOSTED_CALLS: Mapping[str | None, _HostedCall] = {
    "code_interpreter_call": _HostedCall("code_interpreter", ("code",), "outputs"),
    "file_search_call": _HostedCall("file_search", ("queries",), "results"),
    "image_generation_call": _HostedCall("image_generation", ("revised_prompt", "size")),
    "web_search_call": _HostedCall("web_search", ("action",)),
}


def _read_messages(request: Json) -> Iterator[RequestMessage]:
    instructions, prompt = get_text(request, "instructions"), get_text(request, "input")
    if instructions:
        yield RequestMessage("system", instructions)
    if prompt is not None:
        yield RequestMessage("user", prompt)
    yield from _read_items(get_objects(request, "input"))


def _read_tools(request: Json) -> Iterator[ToolDefinition]:
    for tool in get_objects(request, "tools"):
        kind = get_text(tool, "type") or "function"
        yield ToolDefinition(
            get_text(tool, "name") or kind,
            to_jsonable(tool.get("parameters")),
            get_text(tool, "description") or "",
        )


def parse_named_call(item: Json) -> tuple[str, object] | None:
    """Return tool and arguments of a function or a custom tool; None for other items."""
    name = item.get("name")
    if not isinstance(name, str):
        return None
    if item.get("type") == "custom_tool_call":
        return name, item.get("input")
    if item.get("type") != "function_call":
        return None
    return name, parse_arguments(item.get("arguments"))


def parse_shell_call(item: Json) -> tuple[str, object] | None:
    """Return a call of the provider's shell tools, with the usual names of shell tools."""
    action = get_object(item, "action")
    if item.get("type") == "local_shell_call":
        return "local_shell", {"command": action.get("command")}
    if item.get("type") == "shell_call":
        return "shell", {"commands": action.get("commands")}
    return None


def _read_call(item: Json) -> ToolCall | None:
    """Return the tool call of an item; None for other items."""
    call = parse_named_call(item) or parse_shell_call(item) or _parse_other_call(item)
    if call is not None:
        return build_tool_call(item.get("call_id") or item.get("id"), *call)
    if item.get("type") == "mcp_call":
        return _read_mcp_call(item)
    hosted = _HOSTED_CALLS.get(get_text(item, "type"))
    return None if hosted is None else _read_hosted_call(item, hosted)


def _parse_other_call(item: Json) -> tuple[str, object] | None:
    """Return a call of another tool that the provider describes and the client runs."""
    if item.get("type") == "computer_call":
        return "computer", item.get("action") or {"actions": item.get("actions")}
    if item.get("type") == "apply_patch_call":
        return "apply_patch", item.get("operation")
    return None


def _read_mcp_call(item: Json) -> ToolCall:
    error = item.get("error")
    return build_tool_call(
        item.get("id"),
        item.get("name"),
        item.get("arguments"),
        result=None if error else item.get("output"),
        error=_describe(error) if error else None,
    )


def _read_hosted_call(item: Json, hosted: _HostedCall) -> ToolCall:
    """Read a call that the provider made; its result is at least its status."""
    status = get_text(item, "status") or "completed"
    result = item.get(hosted.result) if hosted.result else None
    error = status if status in ("failed", "incomplete") else None
    return build_tool_call(
        item.get("id"),
        hosted.name,
        {key: item[key] for key in hosted.arguments if item.get(key) is not None},
        result=(result or {"status": status}) if error is None else None,
        error=error,
    )


def _describe(error: object) -> str:
    """Return the text of an error, which is a text or an object."""
    if isinstance(error, str):
        return error
    found = get_text(error, "message") if isinstance(error, dict) else None
    return found or json.dumps(to_jsonable(error))


def _read_text(item: Json) -> str:
    """Return the text of a message, or of its refusal."""
    parts = get_objects(item, "content")
    return get_text(item, "content") or join_texts(parts) or join_texts(parts, "refusal")


def _has_refusal(items: Sequence[Json]) -> bool:
    """Return whether a message has a refusal instead of a text."""
    return any(
        part.get("type") == "refusal" for item in items for part in get_objects(item, "content")
    )


def _read_items(items: Sequence[Json]) -> Iterator[RequestMessage]:
    """Yield the messages of a conversation; the items of one answer are one message."""
    for role, group in groupby(items, key=_get_item_role):
        if role == "assistant":
            yield _merge_answer(list(group))
        else:
            yield from (_read_message(role, item) for item in group)


def _get_item_role(item: Json) -> Role:
    """Return the role of an item: calls and reasoning are of the assistant, outputs of the tool."""
    kind = item.get("type")
    if kind is None or kind == "message":
        return _ROLES.get(get_text(item, "role"), "user")
    return "tool" if isinstance(kind, str) and kind.endswith("_call_output") else "assistant"


def _merge_answer(items: list[Json]) -> RequestMessage:
    calls = [call for item in items if (call := _read_call(item)) is not None]
    texts = [text for item in items if "role" in item and (text := _read_text(item))]
    return RequestMessage("assistant", "\n\n".join(texts), tuple(calls))


def _read_message(role: Role, item: Json) -> RequestMessage:
    if role != "tool":
        attachments = tuple(_read_attachments(get_objects(item, "content")))
        return RequestMessage(role, _read_text(item), attachments=attachments)
    output = item.get("output")
    # The result of a computer call is one screenshot.
    output = [output] if isinstance(output, dict) else output
    result = ToolResult(
        call_id=get_text(item, "call_id") or get_text(item, "id"),
        name=get_text(item, "name"),
        value=_read_output(output),
        is_error=item.get("status") in ("failed", "incomplete"),
    )
    return RequestMessage(
        "tool", tool_results=(result,), attachments=tuple(_read_attachments(list_objects(output)))
    )


def _read_output(output: object) -> JsonValue:
    """Return the text of an output that consists of texts and files; others unchanged."""
    parts = list_objects(output)
    if parts and all(str(part.get("type")).startswith(_CONTENT) for part in parts):
        return join_texts(parts)
    return to_jsonable(output)


_CONTENT = ("input_", "computer_screenshot")


def _read_attachments(parts: Sequence[Json]) -> Iterable[Attachment]:
    for part in parts:
        match part.get("type"):
            case "input_image" | "computer_screenshot":
                yield read_url(part.get("image_url"))
            case "input_file":
                yield read_url(part.get("file_data"))
            case "input_audio":
                sound = get_object(part, "input_audio")
                yield read_base64(sound.get("data"), f"audio/{get_text(sound, 'format')}")


def _read_response(body: Json) -> ModelAnswer:
    items = get_objects(body, "output")
    calls = [call for item in items if (call := _read_call(item)) is not None]
    texts = [text for item in items if item.get("type") == "message" and (text := _read_text(item))]
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
    if status == "completed" and _has_refusal(items):
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
    end_mark=re.compile(rb'"type": ?"response\.(?:completed|incomplete|failed)"'),
)

OPENAI_RESPONSES = Format(
    name="openai-responses",
    path=re.compile(r"/responses$"),
    conversation="input",
    get_model=lambda _, request: get_text(request, "model"),
    settings="temperature top_p max_output_tokens max_tool_calls parallel_tool_calls reasoning"
    " service_tier tool_choice truncation",
    get_schema=lambda request: get_object(request, "text", "format").get("schema"),
    read_messages=_read_messages,
    read_tools=_read_tools,
    reader=RESPONSES_READER,
    key_rules=KeyRules(
        # Of Codex: ids and times of the session
        dropped="client_metadata input.*.internal_chat_message_metadata_passthrough metadata"
        " prompt_cache_key prompt_cache_retention safety_identifier stream stream_options user",
        ids="previous_response_id conversation conversation.id input.*.call_id input.*.id"
        " input.*.approval_request_id input.*.caller.caller_id"
        " input.*.acknowledged_safety_checks.*.id input.*.container_id",
        results=("input", "call_id", "output"),
        blobs="input.*.encrypted_content input.*.fingerprint",
    ),
    build_error=build_openai_error,
)
