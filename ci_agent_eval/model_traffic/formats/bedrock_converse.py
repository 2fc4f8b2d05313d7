"""Bedrock's Converse and ConverseStream; the model's id is in the path.

Shapes: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
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
    parse_object,
    pick_settings,
    read_base64,
)
from ci_agent_eval.model_traffic.formats.message_format import Format
from ci_agent_eval.model_traffic.messages import (
    ModelAnswer,
    RequestMessage,
    ToolDefinition,
    ToolResult,
)

_PATH = re.compile(r"/model/([^/]+)/converse(?:-stream)?$")
_MEDIA_TYPES = {"image": "image", "video": "video", "audio": "audio", "document": "application"}


def _get_model(path: str, _request: Json) -> str | None:
    found = _PATH.search(path)
    return unquote(found[1]) if found else None


def _get_settings(request: Json) -> Json:
    more = request.get("additionalModelRequestFields")
    choice = get_object(request, "toolConfig").get("toolChoice")
    config = get_object(request, "inferenceConfig")
    return {**config, "additionalModelRequestFields": more, "toolChoice": choice}


def _get_schema(request: Json) -> object:
    """Return the schema of the typed output, which is the text of a JSON object."""
    text_format = get_object(request, "outputConfig", "textFormat", "structure", "jsonSchema")
    schema = get_text(text_format, "schema")
    return None if schema is None else parse_object(schema)


def _read_messages(request: Json) -> Iterator[RequestMessage]:
    system = join_texts(get_objects(request, "system"))
    if system:
        yield RequestMessage("system", system)
    for message in get_objects(request, "messages"):
        role: Role = "assistant" if message.get("role") == "assistant" else "user"
        yield from _read_message(role, get_objects(message, "content"))


def _read_message(role: Role, blocks: Sequence[Json]) -> Iterator[RequestMessage]:
    """Yield a message; the results of tools in a user's message are a message of the tool."""
    results = [get_object(block, "toolResult") for block in blocks if "toolResult" in block]
    others = [block for block in blocks if "toolResult" not in block]
    if results:
        inner = [part for result in results for part in get_objects(result, "content")]
        yield RequestMessage(
            "tool",
            tool_results=tuple(_read_result(result) for result in results),
            attachments=tuple(_read_attachments(inner)),
        )
    if others or not results:
        yield RequestMessage(
            role,
            join_texts(others),
            _read_calls(others),
            attachments=tuple(_read_attachments(others)),
        )


def _read_result(result: Json) -> ToolResult:
    parts = get_objects(result, "content")
    values = [part["json"] for part in parts if "json" in part]
    value = join_texts(parts) or (values[0] if len(values) == 1 else values or "")
    return ToolResult(
        call_id=get_text(result, "toolUseId"),
        name=None,
        value=to_jsonable(value),
        is_error=result.get("status") == "error",
    )


def _read_attachments(blocks: Sequence[Json]) -> Iterator[Attachment]:
    for block in blocks:
        for kind, family in _MEDIA_TYPES.items():
            found = get_object(block, kind)
            if found:
                media_type = f"{family}/{get_text(found, 'format')}"
                yield read_base64(get_object(found, "source").get("bytes"), media_type)


def _read_calls(blocks: Sequence[Json]) -> tuple[ToolCall, ...]:
    uses = [get_object(block, "toolUse") for block in blocks if "toolUse" in block]
    return tuple(
        build_tool_call(use.get("toolUseId"), use.get("name"), use.get("input")) for use in uses
    )


def _read_tools(request: Json) -> Iterator[ToolDefinition]:
    for tool in get_objects(get_object(request, "toolConfig"), "tools"):
        specification = get_object(tool, "toolSpec")
        name = get_text(specification, "name")
        hosted = get_text(get_object(tool, "systemTool"), "name")
        if name is not None:
            schema = get_object(specification, "inputSchema").get("json")
            description = get_text(specification, "description") or ""
            yield ToolDefinition(name, to_jsonable(schema), description)
        elif hosted is not None:
            yield ToolDefinition(hosted)


def _read_answer(body: Json) -> ModelAnswer:
    blocks = get_objects(get_object(body, "output", "message"), "content")
    usage = get_object(body, "usage")
    return ModelAnswer(
        text=join_texts(blocks),
        tool_calls=_read_calls(blocks),
        tokens=_read_tokens(usage),
        usage=usage or None,
        finish_reason=get_text(body, "stopReason"),
    )


def _read_tokens(usage: Json) -> TokenUsage | None:
    """Read the usage; `inputTokens` are without those of the cache."""
    return build_usage_beside_cache(
        get_count(usage, "inputTokens"),
        get_count(usage, "outputTokens"),
        read=get_count(usage, "cacheReadInputTokens"),
        written=get_count(usage, "cacheWriteInputTokens"),
    )


def _assemble_answer(events: Sequence[Json]) -> Json:
    """Merge the events of a stream."""
    body: Json = {}
    blocks: dict[int, _ConverseBlock] = {}
    for event in events:
        body |= {key: event[key] for key in ("error",) if key in event}
        body |= {
            key: value for key, value in get_object(event, "metadata").items() if key == "usage"
        }
        body |= pick_settings(get_object(event, "messageStop"), ("stopReason",))
        for key in ("contentBlockStart", "contentBlockDelta"):
            part = get_object(event, key)
            if part:
                at = get_count(part, "contentBlockIndex") or 0
                blocks.setdefault(at, _ConverseBlock()).add(part)
    content = [blocks[at].build() for at in sorted(blocks)]
    return {**body, "output": {"message": {"content": content}}}


@dataclass(slots=True)
class _ConverseBlock:
    """A content block, assembled from its start and its deltas."""

    _tool_use: Json | None = None
    _texts: list[str] = field(default_factory=list)
    _arguments: list[str] = field(default_factory=list)

    def add(self, part: Json) -> None:
        """Add the start or a delta."""
        self._tool_use = get_object(part, "start", "toolUse") or self._tool_use
        delta = get_object(part, "delta")
        self._texts.append(get_text(delta, "text") or "")
        self._arguments.append(get_text(get_object(delta, "toolUse"), "input") or "")

    def build(self) -> Json:
        """Build the block as a complete answer has it."""
        if self._tool_use is None:
            return {"text": "".join(self._texts)}
        return {"toolUse": {**self._tool_use, "input": "".join(self._arguments)}}


BEDROCK_CONVERSE = Format(
    name="bedrock-converse",
    path=_PATH,
    streamed_path=re.compile(r"/converse-stream$"),
    get_model=_get_model,
    settings="temperature topP maxTokens stopSequences additionalModelRequestFields toolChoice",
    get_settings=_get_settings,
    get_schema=_get_schema,
    read_messages=_read_messages,
    read_tools=_read_tools,
    reader=AnswerReader(
        assemble=_assemble_answer,
        read=_read_answer,
    ),
    key_rules=KeyRules(
        dropped="requestMetadata",
        ids="messages.*.content.*.toolUse.toolUseId messages.*.content.*.toolResult.toolUseId",
        results=("messages.*.content", "toolResult.toolUseId"),
        blobs="messages.*.content.*.reasoningContent.reasoningText.signature"
        " messages.*.content.*.reasoningContent.redactedContent",
    ),
    build_error=lambda message: {"message": message},
    refusal_headers={"x-amzn-errortype": "ValidationException"},
)
