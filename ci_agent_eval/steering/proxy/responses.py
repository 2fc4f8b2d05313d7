"""OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    get_object,
    get_objects,
    get_text,
    render_compact_json,
)
from ci_agent_eval.model_traffic.formats.openai_responses import (
    RESPONSES_READER,
    parse_named_call,
    parse_shell_call,
)
from ci_agent_eval.model_traffic.formats.sse import replace_data
from ci_agent_eval.steering.proxy.api import ClientCall, Part

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
_STARTS = ("response.created", "response.in_progress", "response.queued")
_ADDED, _DONE = "response.output_item.added", "response.output_item.done"


class ResponsesApi:
    """OpenAI's Responses."""

    reader = RESPONSES_READER
    no_calls = "none"

    def list_calls(self, body: Json) -> list[ClientCall]:
        """Return the calls of a response that the client is to run."""
        return [_read_call(item) for item in get_objects(body, "output") if _is_call(item)]

    def find_obstacle(self, request: Json, body: Json) -> str | None:
        """Return why a response cannot be continued: the client may fetch it by its id."""
        if request.get("background"):
            return "the response runs in the background"
        return None if body.get("status") == "completed" else "the answer is incomplete"

    def extend_request(self, request: Json, body: Json, results: Mapping[str, str]) -> Json:
        """Return the request with the response's items and the outputs of its calls.

        The provider adds the items of a response to its conversation; `previous_response_id`
        stays, so that the last response has the whole history, also where nothing is stored.
        """
        items = get_objects(body, "output")
        told = [_build_result(item, results) for item in items if _is_call(item)]
        if request.get("conversation"):
            return {**request, "input": told}
        sent = [item for item in items if _can_be_sent(item, request)]
        return {**request, "input": [*_list_input(request), *sent, *told]}

    def join_answers(self, earlier: Json, body: Json) -> Json:
        """Return one response with the items of both; its usage is the last one's."""
        output = get_objects(earlier, "output")
        end = next((at for at, item in enumerate(output) if _is_call(item)), len(output))
        while end and output[end - 1].get("type") == _REASONING:
            end -= 1
        return {**body, "output": [*output[:end], *get_objects(body, "output")]}

    def find_part(self, data: Json) -> Part | None:
        """Return the part that an added item begins."""
        if data.get("type") != _ADDED:
            return None
        item = get_object(data, "item")
        if item.get("type") == _REASONING:
            return "reasoning"
        return "call" if _is_call(item) else "text"

    def is_last(self, _raw: bytes, data: Json | None) -> bool:
        """Return whether this is the last event of a response."""
        return data is not None and RESPONSES_READER.is_end(data)

    def create_joiner(self) -> ResponsesJoiner:
        """Return what joins the events of responses."""
        return ResponsesJoiner()


@dataclass(slots=True)
class ResponsesJoiner:
    """Joins the events of several responses into one, with consecutive indexes and numbers."""

    _is_continued: bool = False
    _id: object = None
    """The id of the first response: clients refuse a stream whose id changes."""
    _item_count: int = 0
    _offset: int = 0
    """The number of items of earlier responses."""
    _done: list[Json] = field(default_factory=list)
    _shown: list[Json] = field(default_factory=list)
    """The complete items of earlier responses."""
    _last_number: int = -1

    def start_answer(self) -> None:
        """Continue with the events of the next response."""
        self._is_continued = True
        self._offset = self._item_count
        self._shown = list(self._done)

    def render(self, raw: bytes, data: Json | None) -> bytes:
        """Return the bytes of an event for the client."""
        if data is None:
            return raw
        self._id = self._id or get_object(data, "response").get("id")
        if self._is_continued and data.get("type") in _STARTS:
            return b""
        self._item_count += data.get("type") == _ADDED
        self._done += [get_object(data, "item")] if data.get("type") == _DONE else []
        changed = self._change(data) if self._is_continued else data
        number = changed.get("sequence_number")
        self._last_number = number if isinstance(number, int) else self._last_number
        return replace_data(raw, changed) if self._is_continued else raw

    def _change(self, data: Json) -> Json:
        changed = dict(data)
        index, number = data.get("output_index"), data.get("sequence_number")
        if isinstance(index, int):
            changed["output_index"] = index + self._offset
        if isinstance(number, int):
            changed["sequence_number"] = max(self._last_number + 1, number)
        if response := get_object(data, "response"):
            output = get_objects(response, "output")
            # Codex's own backend leaves the output out.
            joined = [*self._shown, *output] if output else output
            changed["response"] = {**response, "id": self._id, "output": joined}
        return changed


def _is_call(item: Json) -> bool:
    """Return whether an item is a call for the client, and did not run at the provider."""
    is_remote = get_object(item, "environment").get("type") == "container_reference"
    return item.get("type") in _CLIENT_CALLS and not is_remote


def _read_call(item: Json) -> ClientCall:
    """Read a call for the client; code at the provider may have made it and wait for its result."""
    call_id, caller = get_text(item, "call_id") or "", item.get("caller")
    if isinstance(caller, dict) and caller.get("type") != "direct":
        return ClientCall(call_id, None)
    if item.get("type") == "apply_patch_call":
        return ClientCall(call_id, "apply_patch", item.get("operation"))
    return ClientCall(call_id, *(parse_named_call(item) or parse_shell_call(item) or (None, None)))


def _list_input(request: Json) -> list[object]:
    items = request.get("input")
    if isinstance(items, str):
        return [{"type": "message", "role": "user", "content": items}]
    return list(items) if isinstance(items, list) else []


def _can_be_sent(item: Json, request: Json) -> bool:
    """Return whether the provider takes an item: it does not store the reasoning of all."""
    is_stored = request.get("store") is not False
    return is_stored or item.get("type") != _REASONING or bool(item.get("encrypted_content"))


def _build_result(item: Json, results: Mapping[str, str]) -> Json:
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
