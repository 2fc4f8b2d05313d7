"""Anthropic's Messages: a steered `tool_use` block becomes a text block in its place.

Shapes: https://docs.anthropic.com/en/api/messages and …/messages-streaming.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls
from ci_agent_eval.steering.proxy.sse import (
    Json,
    parse_data,
    parse_object,
    render_event,
    replace_data,
)


def rewrite_message(body: Json, calls: ReviewedCalls) -> bool:
    """Put messages in place of the steered calls of a message; return whether there were any."""
    content = body.get("content")
    if not isinstance(content, list):
        return False
    told = [calls.message(*call) if (call := _parse_call(block)) else None for block in content]
    body["content"] = [
        block if message is None else {"type": "text", "text": message}
        for block, message in zip(content, told, strict=True)
    ]
    steered = any(message is not None for message in told)
    if steered and not any(_is_tool_use(block) for block in _keep_objects(body["content"])):
        _end_turn(body)
    return steered


def _keep_objects(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _is_tool_use(block: Json) -> bool:
    return block.get("type") == "tool_use"


def _parse_call(block: object) -> tuple[str, object] | None:
    """Return tool and arguments of a call that the client would run."""
    if not isinstance(block, dict) or not _is_tool_use(block) or _is_programmatic(block):
        return None
    name = block.get("name")
    return (name, block.get("input")) if isinstance(name, str) else None


def _is_programmatic(block: Json) -> bool:
    """Say whether code that runs at the provider made the call: it waits for a result."""
    caller = block.get("caller")
    return isinstance(caller, dict) and caller.get("type") != "direct"


def _end_turn(message: Json) -> None:
    if message.get("stop_reason") == "tool_use":
        message["stop_reason"] = "end_turn"


@dataclass(slots=True)
class _HeldBlock:
    """The events of one block, until it is complete."""

    index: object
    block: Json
    raws: list[bytes]
    json: str = ""

    def arguments(self) -> object:
        """Return the input: from the deltas, or as the block began if there were none."""
        if not self.json.strip():
            return self.block.get("input")
        parsed = parse_object(self.json)
        return self.json if parsed is None else parsed


@dataclass(slots=True)
class MessagesStream:
    """The events of one streamed message.

    Blocks come one after the other, and keep their numbers: only the events of a block that
    may be steered are held, and those of later blocks with them, since clients go by order.
    """

    calls: ReviewedCalls
    _held: _HeldBlock | None = None
    _behind: list[bytes] = field(default_factory=list)
    _tools_left: int = 0
    _steered: int = 0

    def feed(self, raw: bytes) -> list[bytes]:
        """Return what the client gets now that this event is here."""
        data = parse_data(raw)
        kind = data.get("type") if data is not None else None
        if data is None:
            return [raw]
        if self._held is not None:
            return self._while_held(self._held, raw, data)
        if kind == "content_block_start":
            return self._started(raw, data)
        return [self._ended(raw, data)] if kind == "message_delta" else [raw]

    def finish(self) -> list[bytes]:
        """Return what is still held: the stream ended where a block was not complete."""
        return [] if self._held is None else self._decided(self._held)

    @property
    def held(self) -> list[bytes]:
        """The events that wait, as they came."""
        return [*([] if self._held is None else self._held.raws), *self._behind]

    def release(self) -> list[bytes]:
        """Return all that is held, as it came, and hold no more of it."""
        raws = self.held
        self._tools_left += self._held is not None
        self._held, self._behind = None, []
        return raws

    def _started(self, raw: bytes, data: Json) -> list[bytes]:
        block = data.get("content_block")
        if not isinstance(block, dict):
            return [raw]
        call = _parse_call(block)
        if call is None or not self.calls.concerns(call[0]):
            self._tools_left += _is_tool_use(block)
            return [raw]
        self._held = _HeldBlock(data.get("index"), block, [raw])
        return []

    def _while_held(self, held: _HeldBlock, raw: bytes, data: Json) -> list[bytes]:
        kind = data.get("type")
        if kind in ("message_delta", "message_stop"):
            return [*self._decided(held), *self.feed(raw)]
        if "index" not in data:
            return [raw]
        if data["index"] != held.index:
            self._behind.append(raw)
            return []
        held.raws.append(raw)
        delta = data.get("delta")
        if isinstance(delta, dict) and isinstance(part := delta.get("partial_json"), str):
            held.json += part
        return self._decided(held) if kind == "content_block_stop" else []

    def _decided(self, held: _HeldBlock) -> list[bytes]:
        message = self.calls.message(str(held.block["name"]), held.arguments())
        behind, self._behind, self._held = self._behind, [], None
        if message is None:
            self._tools_left += 1
        else:
            self._steered += 1
        events = held.raws if message is None else _render_text_block(held.index, message)
        return [*events, *(event for raw in behind for event in self.feed(raw))]

    def _ended(self, raw: bytes, data: Json) -> bytes:
        delta = data.get("delta")
        if not isinstance(delta, dict) or delta.get("stop_reason") != "tool_use":
            return raw
        if not self._steered or self._tools_left:
            return raw
        _end_turn(delta)
        return replace_data(raw, data)


def _render_text_block(index: object, message: str) -> list[bytes]:
    start = {"content_block": {"type": "text", "text": ""}}
    delta = {"delta": {"type": "text_delta", "text": message}}
    events: list[tuple[str, dict[str, object]]] = [
        ("content_block_start", dict(start)),
        ("content_block_delta", dict(delta)),
        ("content_block_stop", {}),
    ]
    return [
        render_event({"type": name, "index": index, **more}, name=name) for name, more in events
    ]
