"""Anthropic's Messages: replaces steered `tool_use` blocks with text blocks.

Shapes: https://docs.anthropic.com/en/api/messages and …/messages-streaming.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.anthropic_messages import parse_tool_use
from ci_agent_eval.model_traffic.formats.json_values import Json, list_objects, parse_arguments
from ci_agent_eval.model_traffic.formats.sse import parse_data, render_event, replace_data
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls


def rewrite_message(body: Json, calls: ReviewedCalls) -> bool:
    """Replace the steered calls of a message; return whether there were any."""
    content = body.get("content")
    if not isinstance(content, list):
        return False
    replacements = [
        calls.get_message(*call) if (call := _parse_call(block)) else None for block in content
    ]
    body["content"] = [
        block if message is None else {"type": "text", "text": message}
        for block, message in zip(content, replacements, strict=True)
    ]
    steered = any(message is not None for message in replacements)
    if steered and not any(_is_tool_use(block) for block in list_objects(body["content"])):
        _end_turn(body)
    return steered


def _is_tool_use(block: Json) -> bool:
    return block.get("type") == "tool_use"


def _parse_call(block: object) -> tuple[str, object] | None:
    """Return tool and arguments of a call for the client; None for other blocks."""
    is_client_call = isinstance(block, dict) and not _is_programmatic(block)
    return parse_tool_use(block) if is_client_call else None


def _is_programmatic(block: Json) -> bool:
    """Return whether code at the provider made the call and waits for its result."""
    caller = block.get("caller")
    return isinstance(caller, dict) and caller.get("type") != "direct"


def _end_turn(message: Json) -> None:
    if message.get("stop_reason") == "tool_use":
        message["stop_reason"] = "end_turn"


@dataclass(slots=True)
class _HeldBlock:
    """The held events of one block until it is complete."""

    index: object
    block: Json
    raws: list[bytes]
    arguments_json: str = ""

    def arguments(self) -> object:
        """Return the input from the deltas, or from the block's start if there were none."""
        if not self.arguments_json.strip():
            return self.block.get("input")
        return parse_arguments(self.arguments_json)


@dataclass(slots=True)
class MessagesStream:
    """A rewriter of one streamed message.

    Blocks are sequential and keep their indexes. Only the events of a block that may be steered
    are held, and later blocks with them, because clients rely on the order.
    """

    calls: ReviewedCalls
    _held: _HeldBlock | None = None
    _queued: list[bytes] = field(default_factory=list)
    _passed_calls: int = 0
    _steered_calls: int = 0

    def feed(self, raw: bytes) -> list[bytes]:
        """Process an event; return the events to send now."""
        data = parse_data(raw)
        kind = data.get("type") if data is not None else None
        if data is None:
            return [raw]
        if self._held is not None:
            return self._feed_held(self._held, raw, data)
        if kind == "content_block_start":
            return self._start_block(raw, data)
        return [self._end_message(raw, data)] if kind == "message_delta" else [raw]

    def finish(self) -> list[bytes]:
        """Decide on an incomplete block at the end of the stream; return its events."""
        return [] if self._held is None else self._decide_block(self._held)

    @property
    def held_events(self) -> list[bytes]:
        """The unchanged events that are not sent yet."""
        return [*([] if self._held is None else self._held.raws), *self._queued]

    def release(self) -> list[bytes]:
        """Return the held events unchanged and let their call through."""
        return self.held_events

    def _start_block(self, raw: bytes, data: Json) -> list[bytes]:
        block = data.get("content_block")
        if not isinstance(block, dict):
            return [raw]
        call = _parse_call(block)
        if call is None or not self.calls.is_steerable(call[0]):
            self._passed_calls += _is_tool_use(block)
            return [raw]
        self._held = _HeldBlock(data.get("index"), block, [raw])
        return []

    def _feed_held(self, held_block: _HeldBlock, raw: bytes, data: Json) -> list[bytes]:
        kind = data.get("type")
        if kind in ("message_delta", "message_stop"):
            return [*self._decide_block(held_block), *self.feed(raw)]
        if "index" not in data:
            return [raw]
        if data["index"] != held_block.index:
            self._queued.append(raw)
            return []
        held_block.raws.append(raw)
        delta = data.get("delta")
        if isinstance(delta, dict) and isinstance(part := delta.get("partial_json"), str):
            held_block.arguments_json += part
        return self._decide_block(held_block) if kind == "content_block_stop" else []

    def _decide_block(self, held_block: _HeldBlock) -> list[bytes]:
        message = self.calls.get_message(str(held_block.block["name"]), held_block.arguments())
        queued, self._queued, self._held = self._queued, [], None
        if message is None:
            self._passed_calls += 1
        else:
            self._steered_calls += 1
        events = (
            held_block.raws if message is None else _render_text_block(held_block.index, message)
        )
        return [*events, *(event for raw in queued for event in self.feed(raw))]

    def _end_message(self, raw: bytes, data: Json) -> bytes:
        delta = data.get("delta")
        if not isinstance(delta, dict) or delta.get("stop_reason") != "tool_use":
            return raw
        if not self._steered_calls or self._passed_calls:
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
        render_event({"type": name, "index": index, **fields}, name=name) for name, fields in events
    ]
