"""Items of OpenAI's Responses: messages, tool calls and their results.

Shapes: https://platform.openai.com/docs/api-reference/responses/object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from pydantic import JsonValue

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import Attachment, Role, ToolCall
from ci_agent_eval.model_traffic.formats.attachments import read_base64, read_url
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    build_tool_call,
    get_object,
    get_objects,
    get_text,
    join_texts,
    list_objects,
    parse_arguments,
)
from ci_agent_eval.model_traffic.messages import RequestMessage, ToolResult

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


def read_call(item: Json) -> ToolCall | None:
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


def read_text(item: Json) -> str:
    """Return the text of a message, or of its refusal."""
    parts = get_objects(item, "content")
    return get_text(item, "content") or join_texts(parts) or join_texts(parts, "refusal")


def has_refusal(items: Sequence[Json]) -> bool:
    """Return whether a message has a refusal instead of a text."""
    return any(
        part.get("type") == "refusal" for item in items for part in get_objects(item, "content")
    )


def read_messages(items: Sequence[Json]) -> Iterator[RequestMessage]:
    """Yield the messages of a conversation; the items of one answer are one message."""
    for role, group in groupby(items, key=get_item_role):
        if role == "assistant":
            yield _merge_answer(list(group))
        else:
            yield from (_read_message(role, item) for item in group)


def get_item_role(item: Json) -> Role:
    """Return the role of an item: calls and reasoning are of the assistant, outputs of the tool."""
    kind = item.get("type")
    if kind is None or kind == "message":
        return _ROLES.get(get_text(item, "role"), "user")
    return "tool" if isinstance(kind, str) and kind.endswith("_call_output") else "assistant"


def _merge_answer(items: list[Json]) -> RequestMessage:
    calls = [call for item in items if (call := read_call(item)) is not None]
    texts = [text for item in items if "role" in item and (text := read_text(item))]
    return RequestMessage("assistant", "\n\n".join(texts), tuple(calls))


def _read_message(role: Role, item: Json) -> RequestMessage:
    if role != "tool":
        attachments = tuple(_read_attachments(get_objects(item, "content")))
        return RequestMessage(role, read_text(item), attachments=attachments)
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
