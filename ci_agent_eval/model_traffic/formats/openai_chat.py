"""OpenAI's Chat Completions, which many other providers and servers offer too.

Shapes: https://platform.openai.com/docs/api-reference/chat and …/chat-streaming.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import Attachment, Role, TokenUsage, ToolCall
from ci_agent_eval.model_traffic.formats.assembler import AnswerAssembler, AnswerReader
from ci_agent_eval.model_traffic.formats.attachments import read_base64, read_url
from ci_agent_eval.model_traffic.formats.canonical_key import KeyRules, build_canonical_key
from ci_agent_eval.model_traffic.formats.chat_calls import (
    AssembledCall,
    ChoiceCalls,
    iterate_fragments,
    parse_call_entry,
    parse_function_call,
)
from ci_agent_eval.model_traffic.formats.error_answers import build_openai_refusal
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    build_tool_call,
    get_count,
    get_object,
    get_objects,
    get_text,
    join_texts,
    list_objects,
    parse_request_with_list,
    pick_settings,
)
from ci_agent_eval.model_traffic.formats.protocol import HTTPAnswer
from ci_agent_eval.model_traffic.messages import (
    FormatName,
    ModelAnswer,
    ModelRequest,
    RequestHead,
    RequestMessage,
    ToolDefinition,
    ToolResult,
)

_SETTINGS = (
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "n",
    "parallel_tool_calls",
    "reasoning_effort",
    "seed",
    "service_tier",
    "stop",
    "tool_choice",
    "verbosity",
)
_ROLES: Mapping[str | None, Role] = {
    "assistant": "assistant",
    "developer": "system",
    "function": "tool",
    "system": "system",
    "tool": "tool",
}
_KEY_RULES = KeyRules(
    dropped=(
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "store",
        "stream",
        "stream_options",
        "user",
    ),
    ids=(
        "messages.*.tool_calls.*.id",
        "messages.*.tool_call_id",
        "messages.*.audio.id",
    ),
    results=("messages", "tool_call_id"),
    blobs=(
        # OpenRouter's and LiteLLM's reasoning of other vendors' models
        "messages.*.reasoning_details.*.data",
        "messages.*.reasoning_details.*.signature",
        "messages.*.thinking_blocks.*.signature",
        "messages.*.tool_calls.*.extra_content.google.thought_signature",
    ),
)
_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/chat/completions$")


class OpenAIChat:
    """OpenAI's Chat Completions."""

    name: FormatName = "openai-chat"
    path = re.compile(r"/chat/completions$")
    conversation = "messages"

    def parse_head(self, path: str, body: bytes) -> RequestHead:
        """Parse a request without its messages and tools. Raises UnreadableTrafficError."""
        return _read_head(path, parse_request_with_list(body, "messages"))

    def parse_request(self, path: str, body: bytes) -> ModelRequest:
        """Parse a request. Raises UnreadableTrafficError."""
        request = parse_request_with_list(body, "messages")
        head = _read_head(path, request)
        return ModelRequest(
            format=self.name,
            model=head.model,
            settings=head.settings,
            output_schema=head.output_schema,
            messages=tuple(_read_message(item) for item in get_objects(request, "messages")),
            tools=tuple(_read_tools(request)),
            is_streamed=request.get("stream") is True,
        )

    def create_assembler(self, status: int, headers: Mapping[str, str]) -> AnswerAssembler:
        """Create the assembler of an answer."""
        return AnswerAssembler(status, headers, CHAT_READER)

    def build_refusal(self, message: str) -> HTTPAnswer:
        """Build the refusal, which OpenAI's client raises as BadRequestError."""
        return build_openai_refusal(message)

    def build_key(self, path: str, body: bytes) -> str:
        """Return the canonical JSON of a request for replay. Raises UnreadableTrafficError."""
        request = parse_request_with_list(body, "messages")
        return build_canonical_key(self.name, _get_model(path, request), request, _KEY_RULES)


def _read_head(path: str, request: Json) -> RequestHead:
    schema = get_object(request, "response_format", "json_schema").get("schema")
    return RequestHead(
        model=_get_model(path, request),
        settings=pick_settings(request, _SETTINGS),
        output_schema=to_jsonable(schema),
    )


def _get_model(path: str, request: Json) -> str | None:
    """Return the model; of Azure's requests without one its deployment."""
    deployment = _DEPLOYMENT.search(path)
    return get_text(request, "model") or (deployment.group(1) if deployment else None)


def _read_message(message: Json) -> RequestMessage:
    role = _ROLES.get(get_text(message, "role"), "user")
    parts = list_objects(message.get("content"))
    text = _read_text(message)
    if role == "tool":
        call_id, name = get_text(message, "tool_call_id"), get_text(message, "name")
        result = ToolResult(call_id=call_id, name=name, value=text)
        return RequestMessage(
            role, tool_results=(result,), attachments=tuple(_read_attachments(parts))
        )
    return RequestMessage(
        role, text, tuple(_read_calls(message)), attachments=tuple(_read_attachments(parts))
    )


def _read_text(message: Json) -> str:
    """Return the text of a message, or of its refusal or sound."""
    parts = list_objects(message.get("content"))
    return (
        get_text(message, "content")
        or join_texts(parts)
        or get_text(message, "refusal")
        or join_texts(parts, "refusal")
        or get_text(get_object(message, "audio"), "transcript")
        or ""
    )


def _read_attachments(parts: Sequence[Json]) -> Iterable[Attachment]:
    for part in parts:
        match part.get("type"):
            case "image_url":
                image = part.get("image_url")
                # LangChain and others shorten it to a text.
                yield read_url(image.get("url") if isinstance(image, dict) else image)
            case "input_audio":
                sound = get_object(part, "input_audio")
                yield read_base64(sound.get("data"), f"audio/{get_text(sound, 'format')}")
            case "file":
                yield read_url(get_object(part, "file").get("file_data"))


def _read_calls(message: Json) -> Iterable[ToolCall]:
    for entry in get_objects(message, "tool_calls"):
        call = parse_call_entry(entry)
        if call is not None:
            yield build_tool_call(entry.get("id"), *call)
    call = parse_function_call(get_object(message, "function_call"))
    if call is not None:
        yield build_tool_call(None, *call)


def _read_tools(request: Json) -> Iterable[ToolDefinition]:
    for tool in get_objects(request, "tools"):
        kind = get_text(tool, "type") or "function"
        definition = get_object(tool, kind)
        if get_text(definition, "name") is None:
            yield ToolDefinition(kind, is_hosted=True)
        else:
            yield _read_function(definition)
    yield from map(_read_function, get_objects(request, "functions"))


def _read_function(function: Json) -> ToolDefinition:
    return ToolDefinition(
        get_text(function, "name") or "",
        to_jsonable(function.get("parameters")),
        description=get_text(function, "description") or "",
    )


def _read_completion(body: Json) -> ModelAnswer:
    """Read a completion; of several choices the first."""
    choice = next(iter(get_objects(body, "choices")), {})
    message = get_object(choice, "message")
    reason = get_text(choice, "finish_reason")
    has_refused = bool(get_text(message, "refusal")) and reason == "stop"
    return ModelAnswer(
        id=get_text(body, "id"),
        model=get_text(body, "model") or None,
        text=_read_text(message),
        tool_calls=tuple(_read_calls(message)),
        tokens=_read_tokens(get_object(body, "usage")),
        usage=get_object(body, "usage") or None,
        finish_reason="refusal" if has_refused else reason,
    )


def _read_tokens(usage: Json) -> TokenUsage | None:
    prompt, completion = get_count(usage, "prompt_tokens"), get_count(usage, "completion_tokens")
    if prompt is None or completion is None:
        return None
    reasoning = get_count(usage, "completion_tokens_details", "reasoning_tokens")
    # xAI counts reasoning apart from the completion.
    apart = get_count(usage, "total_tokens") == prompt + completion + (reasoning or 0)
    return TokenUsage(
        input=prompt,
        output=completion + (reasoning or 0) if apart else completion,
        cached=get_count(usage, "prompt_tokens_details", "cached_tokens") or 0,
        reasoning=reasoning,
    )


def _assemble_completion(events: Sequence[Json]) -> Json:
    """Merge the chunks of a completion."""
    body: Json = {}
    choices: dict[int, _AssembledChoice] = {}
    for event in events:
        # The first chunk of Azure has an empty id and model.
        body |= {key: event[key] for key in ("id", "model", "usage", "error") if event.get(key)}
        for choice in get_objects(event, "choices"):
            at = get_count(choice, "index") or 0
            choices.setdefault(at, _AssembledChoice()).add(choice)
    return {**body, "choices": [choices[at].build() for at in sorted(choices)]}


class _AssembledChoice:
    """One choice, assembled from its deltas."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._lists: dict[str, list[object]] = {}
        self._transcript: list[str] = []
        self._calls = ChoiceCalls(AssembledCall)
        self._finish_reason: object = None

    def add(self, choice: Json) -> None:
        """Add a delta."""
        delta = get_object(choice, "delta")
        for key, value in delta.items():
            self._add_value(key, value)
        self._transcript.append(get_text(get_object(delta, "audio"), "transcript") or "")
        for position, fragment in iterate_fragments(choice):
            self._calls.get_or_add(position, fragment)[0].add_fragment(fragment)
        self._finish_reason = choice.get("finish_reason") or self._finish_reason

    def _add_value(self, key: str, value: object) -> None:
        """Add text, or a list, such as the reasoning of other vendors' models."""
        if key in ("role", "tool_calls"):
            return
        if key in ("content", "refusal") and isinstance(value, list):
            value = join_texts(list_objects(value))
        if isinstance(value, str):
            self._texts.setdefault(key, []).append(value)
        elif isinstance(value, list):
            self._lists.setdefault(key, []).extend(value)

    def build(self) -> Json:
        """Build the choice as a complete answer has it."""
        entries = [call.build_entry() for call in self._calls]
        transcript = "".join(self._transcript)
        message: Json = {
            "role": "assistant",
            "content": None,
            **{key: "".join(parts) for key, parts in self._texts.items()},
            **self._lists,
            **({"tool_calls": entries} if entries else {}),
            **({"audio": {"transcript": transcript}} if transcript else {}),
        }
        return {"message": message, "finish_reason": self._finish_reason}


CHAT_READER = AnswerReader(
    assemble=_assemble_completion,
    read=_read_completion,
    end_marks=(),
    is_end=lambda _: False,
)
