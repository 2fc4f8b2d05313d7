"""Anthropic's Messages, also on Vertex AI and, by `invoke`, on Bedrock.

Shapes: https://docs.anthropic.com/en/api/messages and …/messages-streaming.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import Attachment, Role, TokenUsage, ToolCall
from ci_agent_eval.model_traffic.formats.assembler import AnswerReader
from ci_agent_eval.model_traffic.formats.canonical_key import KeyRules
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    build_tool_call,
    build_usage_beside_cache,
    get_count,
    get_object,
    get_objects,
    get_text,
    join_texts,
    list_objects,
    parse_arguments,
    read_base64,
)
from ci_agent_eval.model_traffic.formats.message_format import Format
from ci_agent_eval.model_traffic.messages import (
    ModelAnswer,
    RequestMessage,
    ToolDefinition,
    ToolResult,
)

# `/messages` alone would also match the paths of chat services that a tool may call.
# On Bedrock the model's id has to name Anthropic: `invoke` serves any vendor's format.
_PATH = re.compile(
    r"/(?:v1|anthropic)/messages$"
    r"|/publishers/anthropic/models/(?P<vertex>[^/:]+):(?:stream)?[rR]awPredict$"
    r"|/model/(?P<bedrock>[^/]*anthropic[^/]*)/invoke(?:-with-response-stream)?$"
)
_STREAMED_PATH = re.compile(r":streamRawPredict$|/invoke-with-response-stream$")


def build_anthropic_error(message: str, kind: str = "invalid_request_error") -> Json:
    """Build the error body of Anthropic's format."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def _get_model(path: str, request: Json) -> str | None:
    """Return the model, which Vertex AI and Bedrock have in the path."""
    found = _PATH.search(path)
    in_path = found and (found["vertex"] or found["bedrock"])
    return unquote(in_path) if in_path else get_text(request, "model")


def _get_schema(request: Json) -> object:
    form = get_object(request, "output_config", "format") or get_object(request, "output_format")
    return form.get("schema")


def _read_messages(request: Json) -> Iterator[RequestMessage]:
    system = get_text(request, "system") or join_texts(get_objects(request, "system"))
    if system:
        yield RequestMessage("system", system)
    for message in get_objects(request, "messages"):
        yield from _read_message(message)


def _read_message(message: Json) -> Iterator[RequestMessage]:
    """Yield a message; the results of tools in a user's message are a message of the tool."""
    blocks, text = get_objects(message, "content"), get_text(message, "content") or ""
    if message.get("role") == "assistant":
        yield RequestMessage("assistant", text or join_texts(blocks), _read_calls(blocks))
        return
    results = [block for block in blocks if block.get("type") == "tool_result"]
    others = [block for block in blocks if block.get("type") != "tool_result"]
    if results:
        inner = [part for block in results for part in get_objects(block, "content")]
        yield RequestMessage(
            "tool",
            tool_results=tuple(_read_result(block) for block in results),
            attachments=tuple(_read_attachments(inner)),
        )
    if others or not results:
        role: Role = "system" if message.get("role") == "system" else "user"
        yield RequestMessage(
            role, text or join_texts(others), attachments=tuple(_read_attachments(others))
        )


def _read_result(block: Json) -> ToolResult:
    parts = get_objects(block, "content")
    return ToolResult(
        call_id=get_text(block, "tool_use_id"),
        name=None,
        value=get_text(block, "content") or join_texts(parts),
        is_error=block.get("is_error") is True,
    )


def _read_attachments(blocks: Sequence[Json]) -> Iterator[Attachment]:
    for block in blocks:
        source = get_object(block, "source")
        if block.get("type") in ("image", "document") and source.get("type") != "text":
            yield read_base64(source.get("data"), source.get("media_type"))


def parse_tool_use(block: object) -> tuple[str, object] | None:
    """Return tool and arguments of a call for the client; None for other blocks."""
    if not isinstance(block, dict) or block.get("type") != "tool_use":
        return None
    name = block.get("name")
    return (name, block.get("input")) if isinstance(name, str) else None


def _read_calls(blocks: Sequence[Json]) -> tuple[ToolCall, ...]:
    """Read the calls, with the results of those that the provider made."""
    results = {
        str(block["tool_use_id"]): block
        for block in blocks
        if str(block.get("type")).endswith("_tool_result") and "tool_use_id" in block
    }
    calls = []
    for block in blocks:
        call = parse_tool_use(block)
        if call is not None:
            calls.append(build_tool_call(block.get("id"), *call))
        elif block.get("type") in ("server_tool_use", "mcp_tool_use"):
            calls.append(_read_hosted_call(block, results.get(str(block.get("id")), {})))
    return tuple(calls)


def _read_hosted_call(block: Json, result: Json) -> ToolCall:
    content = result.get("content")
    failed = result.get("is_error") is True
    error = join_texts(list_objects(content)) or "no reason given" if failed else None
    if isinstance(content, dict) and str(content.get("type")).endswith("_error"):
        error = get_text(content, "error_code") or "no reason given"
    return build_tool_call(
        block.get("id"),
        block.get("name"),
        block.get("input"),
        result=_remove_encrypted(content) if error is None else None,
        error=error,
    )


def _remove_encrypted(content: object) -> object:
    """Remove the encrypted pages of a web search, which only the provider can read."""
    if not isinstance(content, list):
        return content
    return [
        {key: value for key, value in item.items() if key != "encrypted_content"}
        for item in list_objects(content)
    ]


def _read_tools(request: Json) -> Iterator[ToolDefinition]:
    for tool in get_objects(request, "tools"):
        kind, schema = get_text(tool, "type") or "custom", to_jsonable(tool.get("input_schema"))
        description = get_text(tool, "description") or ""
        yield ToolDefinition(get_text(tool, "name") or kind, schema, description)


def _read_answer(body: Json) -> ModelAnswer:
    blocks, usage = get_objects(body, "content"), get_object(body, "usage")
    return ModelAnswer(
        id=get_text(body, "id"),
        model=get_text(body, "model"),
        text=join_texts([block for block in blocks if block.get("type") == "text"]),
        tool_calls=_read_calls(blocks),
        tokens=_read_tokens(usage),
        usage=usage or None,
        finish_reason=get_text(body, "stop_reason"),
    )


def _read_tokens(usage: Json) -> TokenUsage | None:
    """Read the usage; Anthropic's `input_tokens` are without those of the cache."""
    return build_usage_beside_cache(
        get_count(usage, "input_tokens"),
        get_count(usage, "output_tokens"),
        read=get_count(usage, "cache_read_input_tokens"),
        written=get_count(usage, "cache_creation_input_tokens"),
        reasoning=get_count(usage, "output_tokens_details", "thinking_tokens"),
    )


def _assemble_answer(events: Sequence[Json]) -> Json:
    """Merge the events of a message."""
    body: Json = {}
    blocks: dict[int, _AssembledBlock] = {}
    for event in events:
        at = get_count(event, "index") or 0
        match event.get("type"):
            case "message_start":
                body |= get_object(event, "message")
            case "content_block_start":
                blocks[at] = _AssembledBlock(get_object(event, "content_block"))
            case "content_block_delta":
                blocks.setdefault(at, _AssembledBlock({})).add(get_object(event, "delta"))
            case "message_delta":
                usage = {**get_object(body, "usage"), **get_object(event, "usage")}
                body |= {**get_object(event, "delta"), "usage": usage}
            case "error":
                body["error"] = event.get("error")
    # Only the last event has the number of output tokens.
    if "stop_reason" not in body or body["stop_reason"] is None:
        body["usage"] = None
    return {**body, "content": [blocks[at].build() for at in sorted(blocks)]}


@dataclass(slots=True)
class _AssembledBlock:
    """A content block, assembled from its deltas; equal to the block without streaming."""

    start: Json
    _texts: dict[str, list[str]] = field(default_factory=dict)
    """The fragments by their key: `text`, `thinking`, `signature`, `partial_json`."""
    _citations: list[object] = field(default_factory=list)

    def add(self, delta: Json) -> None:
        """Add a delta."""
        for key, value in delta.items():
            if key == "citation":
                self._citations.append(value)
            elif key != "type" and isinstance(value, str):
                self._texts.setdefault(key, []).append(value)

    def build(self) -> Json:
        """Build the block as a complete answer has it."""
        texts = {key: "".join(parts) for key, parts in self._texts.items()}
        arguments = texts.pop("partial_json", "")
        block = {"type": "text", **self.start}
        if block["type"] == "text":
            block.setdefault("text", "")
        for key, text in texts.items():
            block[key] = (get_text(block, key) or "") + text
        if self._citations:
            block["citations"] = [*get_objects(block, "citations"), *self._citations]
        return {**block, "input": parse_arguments(arguments)} if arguments.strip() else block


MESSAGES_READER = AnswerReader(
    assemble=_assemble_answer,
    read=_read_answer,
    end_mark=re.compile(rb'"type": ?"message_stop"'),
)

ANTHROPIC_MESSAGES = Format(
    name="anthropic-messages",
    path=_PATH,
    streamed_path=_STREAMED_PATH,
    get_model=_get_model,
    settings="temperature top_p top_k max_tokens output_config service_tier stop_sequences"
    " thinking tool_choice",
    get_schema=_get_schema,
    read_messages=_read_messages,
    read_tools=_read_tools,
    reader=MESSAGES_READER,
    key_rules=KeyRules(
        dropped="metadata stream anthropic_version",
        ids="container container.id messages.*.content.*.id messages.*.content.*.tool_use_id"
        " messages.*.content.*.caller.tool_id",
        results=("messages.*.content", "tool_use_id"),
        blobs="messages.*.content.*.signature messages.*.content.*.data"
        " messages.*.content.*.content.*.encrypted_content"
        " messages.*.content.*.citations.*.encrypted_index",
    ),
    build_error=build_anthropic_error,
)
