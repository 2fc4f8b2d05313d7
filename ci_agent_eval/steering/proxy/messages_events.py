"""Events of Anthropic's Messages: https://docs.anthropic.com/en/api/messages-streaming."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import Json, get_object, get_text
from ci_agent_eval.model_traffic.formats.sse import replace_data
from ci_agent_eval.steering.proxy.dialect import Event


def is_programmatic(block: Json) -> bool:
    """Return whether code at the provider made the call and waits for its result."""
    caller = block.get("caller")
    return isinstance(caller, dict) and caller.get("type") != "direct"


@dataclass(slots=True)
class MessagesEditor:
    """Joins the events of several messages into one; blocks get consecutive indexes."""

    _is_continued: bool = False
    _block_count: int = 0
    _indexes: dict[object, int] = field(default_factory=dict)
    _usage: Json = field(default_factory=dict)
    """The usage at the start of a later message, which the client does not see."""

    def start_answer(self) -> None:
        """Continue with the events of the next message."""
        self._is_continued = True
        self._indexes.clear()

    def find_started(self, data: Json) -> Iterator[tuple[object, str]]:
        """Yield the index and the tool of a call that an event starts."""
        block = get_object(data, "content_block")
        if block.get("type") == "tool_use" and not is_programmatic(block):
            yield _get_index(data), get_text(block, "name") or ""

    def find_ended(self, data: Json) -> Iterator[object]:
        """Yield the index of the block that an event completes."""
        if data.get("type") == "content_block_stop":
            yield _get_index(data)

    def ends_calls(self, data: Json) -> bool:
        """Return whether all blocks of the message are complete."""
        return data.get("type") == "message_delta"

    def is_last(self, event: Event) -> bool:
        """Return whether this is the last event of the message."""
        return event[1] is not None and event[1].get("type") == "message_stop"

    def remove_calls(
        self, events: Sequence[Event], ids: Collection[str], *, is_continued: bool
    ) -> list[Event]:
        """Return the events without these blocks; if continued, without the message's end."""
        removed: set[object] = set()
        kept: list[Event] = []
        for raw, data in events:
            if data is not None and get_text(get_object(data, "content_block"), "id") in ids:
                removed.add(_get_index(data))
            is_removed = data is not None and "index" in data and _get_index(data) in removed
            is_end = data is not None and data.get("type") in ("message_delta", "message_stop")
            if not is_removed and not (is_end and is_continued):
                kept.append((raw, data))
        return kept

    def set_merged(self, body: Json) -> None:
        """Ignore the body: the last event does not repeat it."""

    def render(self, event: Event) -> bytes:
        """Return the bytes of an event with the index in the client's message."""
        raw, data = event
        if data is None:
            return raw
        if data.get("type") == "message_start" and self._is_continued:
            self._usage = get_object(data, "message", "usage")
            return b""
        if data.get("type") == "message_delta" and self._is_continued:
            usage = {**self._usage, **get_object(data, "usage")}
            return replace_data(raw, {**data, "usage": usage})
        return self._renumber(raw, data)

    def _renumber(self, raw: bytes, data: Json) -> bytes:
        old = _get_index(data)
        if data.get("type") == "content_block_start":
            self._indexes[old] = self._block_count
            self._block_count += 1
        new = self._indexes.get(old, old)
        return (
            raw if new == old or "index" not in data else replace_data(raw, {**data, "index": new})
        )


def _get_index(data: Json) -> int | None:
    index = data.get("index")
    return index if isinstance(index, int) else None
