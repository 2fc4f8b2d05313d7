"""Rewriting of a streamed response: holds the events of items that may be steered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import Json
from ci_agent_eval.model_traffic.formats.sse import parse_data, render_event, replace_data
from ci_agent_eval.steering.proxy.responses import ResponseOutput, build_text_part, identify_item

_ENDS = ("response.completed", "response.incomplete", "response.failed")


@dataclass(slots=True)
class _HeldItem:
    """The held events of one item until it is complete."""

    item: Json
    events: list[tuple[bytes, Json]]


@dataclass(slots=True)
class ResponsesStream:
    """A rewriter of one streamed response.

    Holds only the events of items that may be steered. Items keep their indexes; events keep
    their sequence numbers while these increase, and otherwise get the next ones.
    """

    output: ResponseOutput
    on_response_id: Callable[[str], None] = lambda _response_id: None
    """Called with the response's id as soon as it is known."""
    _held_items: dict[int, _HeldItem] = field(default_factory=dict)
    _last_number: int = -1

    def feed(self, raw: bytes) -> list[bytes]:
        """Process an event; return the events to send now."""
        data = parse_data(raw)
        if data is None:
            return [raw]
        kind, at = data.get("type"), data.get("output_index")
        item = data.get("item")
        if kind == "response.output_item.added" and isinstance(item, dict):
            return self._start_item(raw, data, item)
        if kind in _ENDS:
            return [*self.finish(data.get("response")), self._end_response(raw, data)]
        if kind == "response.created":
            self._report_response_id(data.get("response"))
        if not isinstance(at, int) or at not in self._held_items:
            return [self._renumber(raw, data)]
        self._held_items[at].events.append((raw, data))
        if kind != "response.output_item.done":
            return []
        return self._decide_item(at, item if isinstance(item, dict) else None)

    def finish(self, response: object = None) -> list[bytes]:
        """Return the held events, decided with the complete items of `response` if given."""
        output = response.get("output") if isinstance(response, dict) else None
        items = [i for i in output if isinstance(i, dict)] if isinstance(output, list) else []
        complete = {identify_item(item): item for item in items}
        return [
            event
            for at, held_item in list(self._held_items.items())
            for event in self._decide_item(at, complete.get(identify_item(held_item.item)))
        ]

    @property
    def held_events(self) -> list[bytes]:
        """The unchanged events that are not sent yet."""
        return [raw for held_item in self._held_items.values() for raw, _ in held_item.events]

    def release(self) -> list[bytes]:
        """Return the held events unchanged and let their calls through."""
        return [event for at in list(self._held_items) for event in self._release_item(at)]

    def _report_response_id(self, response: object) -> None:
        if isinstance(response, dict) and isinstance(response.get("id"), str):
            self.on_response_id(response["id"])

    def _start_item(self, raw: bytes, data: Json, item: Json) -> list[bytes]:
        at = data.get("output_index")
        if (
            not isinstance(at, int)
            or at in self._held_items
            or not self.output.may_be_steered(item)
        ):
            return [self._renumber(raw, data)]
        self._held_items[at] = _HeldItem(item, [(raw, data)])
        return []

    def _end_response(self, raw: bytes, data: Json) -> bytes:
        response = data.get("response")
        self._report_response_id(response)
        if isinstance(response, dict) and self.output.rewrite(response):
            raw = replace_data(raw, data)
        return self._renumber(raw, data)

    def _decide_item(self, at: int, item: Json | None) -> list[bytes]:
        """Return the events of an item, or of the message that replaces it."""
        complete = self._assemble_item(at) if item is None else item
        message = self.output.get_replacement(complete)
        if message is None:
            return self._release_item(at)
        del self._held_items[at]
        return [self._render_new(event) for event in _build_message_events(at, message)]

    def _assemble_item(self, at: int) -> Json:
        """Assemble an item without a final event from its parts."""
        held_item = self._held_items[at]
        complete = dict(held_item.item)
        for _, data in held_item.events:
            for key in ("arguments", "input"):
                if isinstance(data.get(key), str):
                    complete[key] = data[key]
        return complete

    def _release_item(self, at: int) -> list[bytes]:
        held_item = self._held_items.pop(at)
        self.output.pass_item(held_item.item)
        return [self._renumber(raw, data) for raw, data in held_item.events]

    def _renumber(self, raw: bytes, data: Json) -> bytes:
        """Return an event with a sequence number above the last one."""
        number = data.get("sequence_number")
        if not isinstance(number, int):
            return raw
        if number > self._last_number:
            self._last_number = number
            return raw
        return replace_data(raw, {**data, "sequence_number": self._take_number()})

    def _take_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def _render_new(self, data: Json) -> bytes:
        return render_event(
            {**data, "sequence_number": self._take_number()}, name=str(data["type"])
        )


def _build_message_events(at: int, message: Json) -> list[Json]:
    """Build the events of a message, without sequence numbers."""
    name = str(message["id"])
    content = message["content"]
    part = content[0] if isinstance(content, list) else {}
    text = part["text"]
    position: Mapping[str, object] = {"item_id": name, "output_index": at, "content_index": 0}
    in_progress = {**message, "status": "in_progress", "content": []}
    return [
        {"type": "response.output_item.added", "output_index": at, "item": in_progress},
        {"type": "response.content_part.added", **position, "part": build_text_part("")},
        {"type": "response.output_text.delta", **position, "delta": text, "logprobs": []},
        {"type": "response.output_text.done", **position, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **position, "part": part},
        {"type": "response.output_item.done", "output_index": at, "item": message},
    ]
