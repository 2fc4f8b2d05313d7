"""Anthropic's Messages: https://docs.anthropic.com/en/api/messages."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from ci_agent_eval.model_traffic.formats.anthropic_messages import MESSAGES_READER, parse_tool_use
from ci_agent_eval.model_traffic.formats.json_values import Json, get_object, get_objects, get_text
from ci_agent_eval.steering.proxy.api import Api, ClientCall, Joiner, Part


def _is_call(block: Json) -> bool:
    return block.get("type") == "tool_use"


def _list_calls(body: Json) -> list[ClientCall]:
    return [_read_call(block) for block in get_objects(body, "content") if _is_call(block)]


def _read_call(block: Json) -> ClientCall:
    """Read a call; code at the provider may have made it and wait for its result."""
    call_id, caller, call = get_text(block, "id") or "", block.get("caller"), parse_tool_use(block)
    is_direct = not isinstance(caller, dict) or caller.get("type") == "direct"
    if call is None or not is_direct or not isinstance(call[1], dict):
        return ClientCall(call_id, None)
    return ClientCall(call_id, *call)


def _find_obstacle(_request: Json, body: Json) -> str | None:
    return None if body.get("stop_reason") == "tool_use" else "the answer is incomplete"


def _extend_request(request: Json, body: Json, results: Mapping[str, str]) -> Json:
    # The API returns empty texts and refuses them in requests.
    blocks = [block for block in get_objects(body, "content") if block.get("text") != ""]
    told = [
        {"type": "tool_result", "tool_use_id": call_id, "content": text}
        for call_id, text in results.items()
    ]
    more = [{"role": "assistant", "content": blocks}, {"role": "user", "content": told}]
    return {**request, "messages": [*get_objects(request, "messages"), *more]}


def _join_answers(earlier: Json, body: Json) -> Json:
    """Return one message with the blocks of both; its usage is the last one's."""
    shown = takewhile(lambda block: not _is_call(block), get_objects(earlier, "content"))
    return {**body, "content": [*shown, *get_objects(body, "content")]}


def _find_part(data: Json) -> Part | None:
    """Return the part that the start of a block begins; thinking may stand alone."""
    if data.get("type") != "content_block_start":
        return None
    return "call" if _is_call(get_object(data, "content_block")) else "text"


def _is_last(_raw: bytes, data: Json | None) -> bool:
    return data is not None and data.get("type") == "message_stop"


class _MessagesJoiner(Joiner):
    """Joins the events of several messages into one; blocks get consecutive indexes."""

    def __init__(self) -> None:
        self._block_count = 0
        self._offset = 0
        """The number of blocks of earlier messages."""
        self._usage: Json = {}
        """The usage at the start of a later message, which the client does not see."""

    def start_answer(self) -> None:
        """Continue with the events of the next message."""
        super().start_answer()
        self._offset = self._block_count

    def change(self, data: Json) -> Json | None:
        """Return an event with the index after the blocks of earlier messages."""
        self._block_count += data.get("type") == "content_block_start"
        if data.get("type") == "message_start":
            self._usage = get_object(data, "message", "usage")
            return None
        if data.get("type") == "message_delta":
            return {**data, "usage": {**self._usage, **get_object(data, "usage")}}
        index = data.get("index")
        return {**data, "index": index + self._offset} if isinstance(index, int) else data


MESSAGES = Api(
    MESSAGES_READER,
    {"type": "none"},
    _list_calls,
    _find_obstacle,
    _extend_request,
    _join_answers,
    _find_part,
    _is_last,
    _MessagesJoiner,
)
