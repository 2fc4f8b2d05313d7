"""OpenAI's Chat Completions, which many other providers and servers offer too.

Shapes: https://platform.openai.com/docs/api-reference/chat and …/chat-streaming.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
from ci_agent_eval.model_traffic.messages import (
    ModelAnswer,
    RequestMessage,
    ToolDefinition,
    ToolResult,
)

_ROLES: Mapping[str | None, Role] = {
    "assistant": "assistant",
    "developer": "system",
    "function": "tool",
    "system": "system",
    "tool": "tool",
}
_DEPLOYMENT = re.compile(r"/deployments/([^/]+)/chat/completions$")
FUNCTION_CALL = "function_call"
"""The position of the only call of older models, which has no index."""


def build_openai_error(
    message: str, kind: str = "invalid_request_error", code: str = "budget_exceeded"
) -> Json:
    """Build the error body of OpenAI's formats."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


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


def parse_call_entry(entry: Json) -> tuple[str, object] | None:
    """Return tool and arguments of an entry of `tool_calls`, a function or a custom tool."""
    custom = entry.get("custom")
    if isinstance(custom, dict):
        name = custom.get("name")
        return (name, custom.get("input")) if isinstance(name, str) else None
    return parse_function_call(get_object(entry, "function"))


def parse_function_call(function: Json) -> tuple[str, object] | None:
    """Return tool and arguments of a function's call; None without a name."""
    name = function.get("name")
    return (name, parse_arguments(function.get("arguments"))) if isinstance(name, str) else None


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
            yield ToolDefinition(kind)
        else:
            yield _read_function(definition)
    yield from map(_read_function, get_objects(request, "functions"))


def _read_function(function: Json) -> ToolDefinition:
    return ToolDefinition(
        get_text(function, "name") or "",
        to_jsonable(function.get("parameters")),
        get_text(function, "description") or "",
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
        self._calls: list[_AssembledCall] = []
        self._by_position: dict[object, _AssembledCall] = {}
        self._finish_reason: object = None

    def add(self, choice: Json) -> None:
        """Add a delta."""
        delta = get_object(choice, "delta")
        for key, value in delta.items():
            self._add_value(key, value)
        self._transcript.append(get_text(get_object(delta, "audio"), "transcript") or "")
        for position, fragment in iterate_fragments(choice):
            self._get_or_add_call(position, fragment).add(fragment)
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

    def _get_or_add_call(self, position: object, fragment: Json) -> _AssembledCall:
        """Return the call of a fragment.

        Some providers give all calls of a response the same index, with different ids.
        """
        call_id = fragment.get("id")
        call = self._by_position.get(position)
        if call is None or (call_id and call.id and call.id != call_id):
            call = self._by_position[position] = _AssembledCall(call_id)
            self._calls.append(call)
        return call

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


@dataclass(slots=True)
class _AssembledCall:
    """One call, assembled from its fragments."""

    id: object
    _name: str = ""
    _text: list[str] = field(default_factory=list)
    _is_custom: bool = False
    _others: Json = field(default_factory=dict)
    """Further keys, such as the signature that Gemini wants back."""

    def add(self, fragment: Json) -> None:
        """Append the next fragment."""
        self._is_custom = self._is_custom or isinstance(fragment.get("custom"), dict)
        piece = get_object(fragment, "custom" if self._is_custom else "function")
        name, text = piece.get("name"), piece.get("input" if self._is_custom else "arguments")
        self._name += name if isinstance(name, str) else ""
        self._text.append(text if isinstance(text, str) else "")
        own = ("index", "id", "type", "function", "custom")
        self._others |= {k: v for k, v in fragment.items() if v is not None and k not in own}

    def build_entry(self) -> Json:
        """Build the entry of `tool_calls` as a complete answer has it."""
        kind, key = ("custom", "input") if self._is_custom else ("function", "arguments")
        call = {"name": self._name, key: "".join(self._text)}
        return {"id": self.id, "type": kind, **self._others, kind: call}


def iterate_fragments(choice: Json) -> Iterator[tuple[object, Json]]:
    """Yield the fragments of calls in a choice with their positions."""
    delta = get_object(choice, "delta")
    for entry in get_objects(delta, "tool_calls"):
        yield entry.get("index") if isinstance(entry.get("index"), int) else None, entry
    if isinstance(delta.get(FUNCTION_CALL), dict):
        yield FUNCTION_CALL, {"function": delta[FUNCTION_CALL]}


CHAT_READER = AnswerReader(_assemble_completion, _read_completion)

OPENAI_CHAT = Format(
    name="openai-chat",
    path=re.compile(r"/chat/completions$"),
    get_model=_get_model,
    settings="temperature top_p max_tokens max_completion_tokens frequency_penalty"
    " presence_penalty logit_bias n parallel_tool_calls reasoning_effort seed service_tier stop"
    " tool_choice verbosity",
    get_schema=lambda request: get_object(request, "response_format", "json_schema").get("schema"),
    read_messages=lambda request: map(_read_message, get_objects(request, "messages")),
    read_tools=_read_tools,
    reader=CHAT_READER,
    key_rules=KeyRules(
        dropped="metadata prompt_cache_key prompt_cache_retention safety_identifier store stream"
        " stream_options user",
        ids="messages.*.tool_calls.*.id messages.*.tool_call_id messages.*.audio.id",
        results=("messages", "tool_call_id"),
        # The first three: OpenRouter's and LiteLLM's reasoning of other vendors' models
        blobs="messages.*.reasoning_details.*.data messages.*.reasoning_details.*.signature"
        " messages.*.thinking_blocks.*.signature"
        " messages.*.tool_calls.*.extra_content.google.thought_signature",
    ),
    build_error=build_openai_error,
)
