"""Anthropic's Messages: https://docs.anthropic.com/en/api/messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from ci_agent_eval.model_traffic.formats.anthropic_messages import MESSAGES_READER, parse_tool_use
from ci_agent_eval.model_traffic.formats.json_values import Json, get_object, get_objects, get_text
from ci_agent_eval.model_traffic.formats.sse import replace_data
from ci_agent_eval.steering.proxy.api import ClientCall, Part


class MessagesApi:
    """Anthropic's Messages."""

    reader = MESSAGES_READER
    no_calls: object = {"type": "none"}

    def list_calls(self, body: Json) -> list[ClientCall]:
        """Return the calls of a message that the client is to run."""
        return [_read_call(block) for block in get_objects(body, "content") if _is_call(block)]

    def find_obstacle(self, _request: Json, body: Json) -> str | None:
        """Return why a message cannot be continued."""
        return None if body.get("stop_reason") == "tool_use" else "the answer is incomplete"

    def extend_request(self, request: Json, body: Json, results: Mapping[str, str]) -> Json:
        """Return the request with the message and the results of its calls."""
        # The API returns empty texts and refuses them in requests.
        blocks = [block for block in get_objects(body, "content") if block.get("text") != ""]
        told = [
            {"type": "tool_result", "tool_use_id": call_id, "content": text}
            for call_id, text in results.items()
        ]
        more = [{"role": "assistant", "content": blocks}, {"role": "user", "content": told}]
        return {**request, "messages": [*get_objects(request, "messages"), *more]}

    def join_answers(self, earlier: Json, body: Json) -> Json:
        """Return one message with the blocks of both; its usage is the last one's."""
        shown = takewhile(lambda block: not _is_call(block), get_objects(earlier, "content"))
        return {**body, "content": [*shown, *get_objects(body, "content")]}

    def find_part(self, data: Json) -> Part | None:
        """Return the part that the start of a block begins; thinking may stand alone."""
        if data.get("type") != "content_block_start":
            return None
        return "call" if _is_call(get_object(data, "content_block")) else "text"

    def is_last(self, _raw: bytes, data: Json | None) -> bool:
        """Return whether this is the last event of a message."""
        return data is not None and data.get("type") == "message_stop"

    def create_joiner(self) -> MessagesJoiner:
        """Return what joins the events of messages."""
        return MessagesJoiner()


@dataclass(slots=True)
class MessagesJoiner:
    """Joins the events of several messages into one; blocks get consecutive indexes."""

    _is_continued: bool = False
    _block_count: int = 0
    _offset: int = 0
    """The number of blocks of earlier messages."""
    _usage: Json = field(default_factory=dict)
    """The usage at the start of a later message, which the client does not see."""

    def start_answer(self) -> None:
        """Continue with the events of the next message."""
        self._is_continued = True
        self._offset = self._block_count

    def render(self, raw: bytes, data: Json | None) -> bytes:
        """Return the bytes of an event for the client."""
        if data is None:
            return raw
        self._block_count += data.get("type") == "content_block_start"
        if not self._is_continued:
            return raw
        if data.get("type") == "message_start":
            self._usage = get_object(data, "message", "usage")
            return b""
        if data.get("type") == "message_delta":
            usage = {**self._usage, **get_object(data, "usage")}
            return replace_data(raw, {**data, "usage": usage})
        index = data.get("index")
        if not isinstance(index, int):
            return raw
        return replace_data(raw, {**data, "index": index + self._offset})


def _is_call(block: Json) -> bool:
    return block.get("type") == "tool_use"


def _read_call(block: Json) -> ClientCall:
    """Read a call; code at the provider may have made it and wait for its result."""
    caller = block.get("caller")
    is_direct = not isinstance(caller, dict) or caller.get("type") == "direct"
    call = parse_tool_use(block)
    is_readable = is_direct and call is not None and isinstance(call[1], dict)
    return ClientCall(
        get_text(block, "id") or "", *(call if call and is_readable else (None, None))
    )
