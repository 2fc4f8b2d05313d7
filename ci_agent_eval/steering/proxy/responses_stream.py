"""The events of a streamed response: those of an item that may be steered are held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ci_agent_eval.steering.proxy.responses import ResponseOutput, build_text_part, identify_item
from ci_agent_eval.steering.proxy.sse import Json, parse_data, render_event, replace_data

_ENDS = ("response.completed", "response.incomplete", "response.failed")


@dataclass(slots=True)
class _HeldItem:
    """The events of one item, until it is complete."""

    item: Json
    events: list[tuple[bytes, Json]]


@dataclass(slots=True)
class ResponsesStream:
    """The events of one streamed response.

    Only the events of an item that may be steered are held. Items keep their place; events
    keep their numbers as long as these rise, and get the next ones after that.
    """

    output: ResponseOutput
    learn: Callable[[str], None] = lambda _response_id: None
    """Told the response's id, as soon as it is known."""
    _held: dict[int, _HeldItem] = field(default_factory=dict)
    _last: int = -1

    def feed(self, raw: bytes) -> list[bytes]:
        """Return what the client gets now that this event is here."""
        data = parse_data(raw)
        if data is None:
            return [raw]
        kind, at = data.get("type"), data.get("output_index")
        item = data.get("item")
        if kind == "response.output_item.added" and isinstance(item, dict):
            return self._added(raw, data, item)
        if kind in _ENDS:
            return [*self.finish(data.get("response")), self._ended(raw, data)]
        if kind == "response.created":
            self._learn(data.get("response"))
        if not isinstance(at, int) or at not in self._held:
            return [self._numbered(raw, data)]
        self._held[at].events.append((raw, data))
        if kind != "response.output_item.done":
            return []
        return self._decided(at, item if isinstance(item, dict) else None)

    def finish(self, response: object = None) -> list[bytes]:
        """Return what is still held; the whole items may stand in `response`."""
        output = response.get("output") if isinstance(response, dict) else None
        items = [i for i in output if isinstance(i, dict)] if isinstance(output, list) else []
        whole = {identify_item(item): item for item in items}
        return [
            event
            for at, held in list(self._held.items())
            for event in self._decided(at, whole.get(identify_item(held.item)))
        ]

    @property
    def held(self) -> list[bytes]:
        """The events that wait, as they came."""
        return [raw for held in self._held.values() for raw, _ in held.events]

    def release(self) -> list[bytes]:
        """Return all that is held, as it came, and let these calls through."""
        return [event for at in list(self._held) for event in self._let_through(at)]

    def _learn(self, response: object) -> None:
        if isinstance(response, dict) and isinstance(response.get("id"), str):
            self.learn(response["id"])

    def _added(self, raw: bytes, data: Json, item: Json) -> list[bytes]:
        at = data.get("output_index")
        if not isinstance(at, int) or at in self._held or not self.output.may_be_steered(item):
            return [self._numbered(raw, data)]
        self._held[at] = _HeldItem(item, [(raw, data)])
        return []

    def _ended(self, raw: bytes, data: Json) -> bytes:
        response = data.get("response")
        self._learn(response)
        if isinstance(response, dict) and self.output.rewrite(response):
            raw = replace_data(raw, data)
        return self._numbered(raw, data)

    def _decided(self, at: int, item: Json | None) -> list[bytes]:
        """Return the events of an item, or of the message in its place."""
        whole = self._whole(at) if item is None else item
        message = self.output.replaced(whole)
        if message is None:
            return self._let_through(at)
        del self._held[at]
        return [self._new(event) for event in _build_message_events(at, message)]

    def _whole(self, at: int) -> Json:
        """Return an item that never was announced as complete, from its parts."""
        held = self._held[at]
        whole = dict(held.item)
        for _, data in held.events:
            for key in ("arguments", "input"):
                if isinstance(data.get(key), str):
                    whole[key] = data[key]
        return whole

    def _let_through(self, at: int) -> list[bytes]:
        held = self._held.pop(at)
        self.output.leave(held.item)
        return [self._numbered(raw, data) for raw, data in held.events]

    def _numbered(self, raw: bytes, data: Json) -> bytes:
        """Return an event with a number above the last one's."""
        number = data.get("sequence_number")
        if not isinstance(number, int):
            return raw
        if number > self._last:
            self._last = number
            return raw
        return replace_data(raw, {**data, "sequence_number": self._next()})

    def _next(self) -> int:
        self._last += 1
        return self._last

    def _new(self, data: Json) -> bytes:
        return render_event({**data, "sequence_number": self._next()}, name=str(data["type"]))


def _build_message_events(at: int, message: Json) -> list[Json]:
    """Return the events that announce a message, without their numbers."""
    name = str(message["id"])
    content = message["content"]
    part = content[0] if isinstance(content, list) else {}
    text = part["text"]
    place: Mapping[str, object] = {"item_id": name, "output_index": at, "content_index": 0}
    begun = {**message, "status": "in_progress", "content": []}
    return [
        {"type": "response.output_item.added", "output_index": at, "item": begun},
        {"type": "response.content_part.added", **place, "part": build_text_part("")},
        {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": at, "item": message},
    ]
