"""What the proxy needs to know of each API to answer a model's calls in the client's place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ci_agent_eval.model_traffic.formats.anthropic_messages import MESSAGES_READER, parse_tool_use
from ci_agent_eval.model_traffic.formats.assembler import AnswerReader
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    get_object,
    get_objects,
    get_text,
    render_compact_json,
)
from ci_agent_eval.model_traffic.formats.openai_chat import (
    CHAT_READER,
    FUNCTION_CALL,
    iterate_fragments,
    parse_call_entry,
)
from ci_agent_eval.model_traffic.formats.openai_responses import (
    RESPONSES_READER,
    parse_named_call,
    parse_shell_call,
)
from ci_agent_eval.model_traffic.formats.sse import replace_data

ApiName = Literal["chat", "responses", "messages"]

Part = Literal["call", "reasoning", "text"]
"""A part of an answer; `reasoning`: the API refuses it in a history without the part after it."""


@dataclass(frozen=True, slots=True)
class ClientCall:
    """A call in an answer that the client is to run."""

    id: str
    """The id that the call's result refers to; empty if it has none."""
    tool: str | None
    """None: a call that the proxy cannot answer."""
    arguments: object = None


@dataclass(frozen=True, slots=True)
class Api:
    """How one API writes calls and takes their results."""

    reader: AnswerReader
    no_calls: object
    """The `tool_choice` that lets the model answer with text only."""
    list_calls: Callable[[Json], list[ClientCall]]
    """Returns the calls of an answer that the client is to run."""
    find_obstacle: Callable[[Json, Json], str | None]
    """Returns why the answer to a request cannot be continued; None if it can."""
    extend_request: Callable[[Json, Json, Mapping[str, str]], Json]
    """Returns the request with its answer and the results of the answer's calls, by their ids."""
    find_part: Callable[[Json], Part | None]
    """Returns the part of the answer that an event of a stream begins; None for others."""


def _read_call(call_id: str, item: Json, call: tuple[str, object] | None) -> ClientCall:
    """Build a call; code at the provider may have made it and wait for its result."""
    caller = item.get("caller")
    is_direct = not isinstance(caller, dict) or caller.get("type") == "direct"
    tool, arguments = call if call is not None and is_direct else (None, None)
    return ClientCall(call_id, tool, arguments)


# OpenAI's Chat Completions: https://platform.openai.com/docs/api-reference/chat


def _get_chat_message(body: Json) -> Json:
    return get_object(next(iter(get_objects(body, "choices")), {}), "message")


def _list_chat_calls(body: Json) -> list[ClientCall]:
    message = _get_chat_message(body)
    calls = [
        _read_call(get_text(entry, "id") or "", entry, parse_call_entry(entry))
        for entry in get_objects(message, "tool_calls")
    ]
    # The call of older models has no id.
    return [*calls, ClientCall("", None)] if message.get(FUNCTION_CALL) else calls


def _find_chat_obstacle(request: Json, body: Json) -> str | None:
    if request.get("n") not in (None, 1):
        return "the request asks for several choices"
    reasons = [choice.get("finish_reason") for choice in get_objects(body, "choices")]
    return None if reasons in (["tool_calls"], ["stop"]) else "the answer is incomplete"


def _extend_chat(request: Json, body: Json, results: Mapping[str, str]) -> Json:
    # A server may return empty values and refuse them in a request.
    message = {k: v for k, v in _get_chat_message(body).items() if v not in (None, [], {})}
    told = [{"role": "tool", "tool_call_id": i, "content": text} for i, text in results.items()]
    answer = {"role": "assistant", "content": None, **message}
    return {**request, "messages": [*get_objects(request, "messages"), answer, *told]}


def _find_chat_part(data: Json) -> Part | None:
    choices = get_objects(data, "choices")
    return "call" if any(any(iterate_fragments(choice)) for choice in choices) else None


# Anthropic's Messages: https://docs.anthropic.com/en/api/messages


def _list_message_calls(body: Json) -> list[ClientCall]:
    calls = [(block, parse_tool_use(block)) for block in get_objects(body, "content")]
    return [
        _read_call(get_text(block, "id") or "", block, call if isinstance(call[1], dict) else None)
        for block, call in calls
        if call is not None
    ]


def _find_message_obstacle(_request: Json, body: Json) -> str | None:
    return None if body.get("stop_reason") == "tool_use" else "the answer is incomplete"


def _extend_messages(request: Json, body: Json, results: Mapping[str, str]) -> Json:
    # The API returns empty texts and refuses them in requests.
    blocks = [block for block in get_objects(body, "content") if block.get("text") != ""]
    told = [
        {"type": "tool_result", "tool_use_id": call_id, "content": text}
        for call_id, text in results.items()
    ]
    more = [{"role": "assistant", "content": blocks}, {"role": "user", "content": told}]
    return {**request, "messages": [*get_objects(request, "messages"), *more]}


def _find_message_part(data: Json) -> Part | None:
    """Return the part that the start of a block begins; thinking may stand alone."""
    if data.get("type") != "content_block_start":
        return None
    return "call" if get_object(data, "content_block").get("type") == "tool_use" else "text"


# OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses

_REASONING = "reasoning"
_CLIENT_CALLS = (
    "apply_patch_call",
    "computer_call",
    "custom_tool_call",
    "function_call",
    "local_shell_call",
    "mcp_approval_request",
    "shell_call",
)
_ADDED, _DONE = "response.output_item.added", "response.output_item.done"


def _is_response_call(item: Json) -> bool:
    """Return whether an item is a call for the client, and did not run at the provider."""
    is_remote = get_object(item, "environment").get("type") == "container_reference"
    return item.get("type") in _CLIENT_CALLS and not is_remote


def _list_response_calls(body: Json) -> list[ClientCall]:
    return [
        _read_call(get_text(item, "call_id") or "", item, _parse_response_call(item))
        for item in get_objects(body, "output")
        if _is_response_call(item)
    ]


def _parse_response_call(item: Json) -> tuple[str, object] | None:
    if item.get("type") == "apply_patch_call":
        return "apply_patch", item.get("operation")
    return parse_named_call(item) or parse_shell_call(item)


def _find_response_obstacle(request: Json, body: Json) -> str | None:
    if request.get("background"):  # the client may fetch the answer by its id
        return "the response runs in the background"
    return None if body.get("status") == "completed" else "the answer is incomplete"


def _extend_responses(request: Json, body: Json, results: Mapping[str, str]) -> Json:
    """Return the request with the response's items and the outputs of its calls.

    The provider adds the items of a response to its conversation; `previous_response_id` stays,
    so that the last response has the whole history, also where nothing is stored.
    """
    items = get_objects(body, "output")
    told = [_build_output(item, results) for item in items if _is_response_call(item)]
    if request.get("conversation"):
        return {**request, "input": told}
    first = request.get("input")
    if isinstance(first, str):
        first = [{"type": "message", "role": "user", "content": first}]
    before = first if isinstance(first, list) else []
    return {**request, "input": [*before, *(i for i in items if _can_send(i, request)), *told]}


def _can_send(item: Json, request: Json) -> bool:
    """Return whether the provider takes an item: it does not store the reasoning of all."""
    is_stored = request.get("store") is not False
    return is_stored or item.get("type") != _REASONING or bool(item.get("encrypted_content"))


def _build_output(item: Json, results: Mapping[str, str]) -> Json:
    """Build the output item of a call, which fails if its format can say that."""
    call_id, kind = str(item["call_id"]), f"{item['type']}_output"
    message = results[call_id]
    output: object = message
    if kind == "local_shell_call_output":
        told = {"output": message, "metadata": {"exit_code": 1}}
        return {"type": kind, "id": call_id, "output": render_compact_json(told).decode()}
    if kind == "shell_call_output":
        outcome = {"type": "exit", "exit_code": 1}
        output = [{"stdout": "", "stderr": message, "outcome": outcome}]
    result: Json = {"type": kind, "call_id": call_id, "output": output}
    return {**result, "status": "failed"} if kind == "apply_patch_call_output" else result


def _find_response_part(data: Json) -> Part | None:
    if data.get("type") != _ADDED:
        return None
    item = get_object(data, "item")
    if item.get("type") == _REASONING:
        return "reasoning"
    return "call" if _is_response_call(item) else "text"


APIS: Mapping[ApiName, Api] = {
    "chat": Api(
        CHAT_READER,
        "none",
        _list_chat_calls,
        _find_chat_obstacle,
        _extend_chat,
        _find_chat_part,
    ),
    "responses": Api(
        RESPONSES_READER,
        "none",
        _list_response_calls,
        _find_response_obstacle,
        _extend_responses,
        _find_response_part,
    ),
    "messages": Api(
        MESSAGES_READER,
        {"type": "none"},
        _list_message_calls,
        _find_message_obstacle,
        _extend_messages,
        _find_message_part,
    ),
}

# Streams

_STARTS = ("message_start", "response.created", "response.in_progress", "response.queued")


@dataclass(slots=True)
class StreamJoiner:
    """Joins the events of several answers of any API into one answer with the first one's id."""

    _is_continued: bool = False
    _id: object = None
    """Clients refuse a stream whose id changes."""
    _part_count: int = 0
    _offset: int = 0
    """The number of blocks or items of earlier answers."""
    _done: list[Json] = field(default_factory=list)
    _shown: list[Json] = field(default_factory=list)
    """The complete items of earlier responses."""
    _last_number: int = -1
    _usage: Json = field(default_factory=dict)
    """The usage at the start of a later message, which the client does not see."""
    _has_text: bool = False
    _separator: str = ""
    """Stands before the next text of a completion, which has all texts as one."""

    def start_answer(self) -> None:
        """Continue with the events of the next answer."""
        self._is_continued = True
        self._offset, self._shown = self._part_count, list(self._done)
        self._separator = "\n\n" if self._has_text else ""

    def render(self, raw: bytes, data: Json | None) -> bytes:
        """Return the bytes of an event for the client; those of the first answer are unchanged."""
        if data is None:
            return raw
        kind = data.get("type")
        self._id = self._id or data.get("id") or get_object(data, "response").get("id")
        if self._is_continued and kind in _STARTS:
            self._usage = get_object(data, "message", "usage")
            return b""
        self._part_count += kind in ("content_block_start", _ADDED)
        self._done += [get_object(data, "item")] if kind == _DONE else []
        changed = self._change(data)
        return replace_data(raw, changed) if self._is_continued else raw

    def _change(self, data: Json) -> Json:
        changed = dict(data)
        for key in ("index", "output_index"):
            if isinstance(index := data.get(key), int):
                changed[key] = index + self._offset
        if isinstance(number := data.get("sequence_number"), int):
            changed["sequence_number"] = self._last_number = max(self._last_number + 1, number)
        if data.get("type") == "message_delta":
            changed["usage"] = {**self._usage, **get_object(data, "usage")}
        if "choices" in data:
            choices = [self._separate(choice) for choice in get_objects(data, "choices")]
            changed |= {"id": self._id, "choices": choices}
        if response := get_object(data, "response"):
            output = get_objects(response, "output")
            # Codex's own backend leaves the output out.
            joined = [*self._shown, *output] if output else output
            changed["response"] = {**response, "id": self._id, "output": joined}
        return changed

    def _separate(self, choice: Json) -> Json:
        delta = get_object(choice, "delta")
        text = get_text(delta, "content")
        if not text:
            return choice
        self._has_text, separator, self._separator = True, self._separator, ""
        return {**choice, "delta": {**delta, "content": separator + text}}
