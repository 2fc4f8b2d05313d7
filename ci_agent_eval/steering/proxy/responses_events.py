"""Events of OpenAI's Responses: …/docs/api-reference/responses-streaming."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import Json, get_object, get_text
from ci_agent_eval.model_traffic.formats.openai_responses import RESPONSES_READER
from ci_agent_eval.model_traffic.formats.response_items import parse_named_call, parse_shell_call
from ci_agent_eval.model_traffic.formats.sse import replace_data
from ci_agent_eval.steering.proxy.dialect import Event

_STARTS = ("response.created", "response.in_progress", "response.queued")
_ADDED, _DONE = "response.output_item.added", "response.output_item.done"


def parse_client_call(item: Json) -> tuple[str, object] | None:
    """Return tool and arguments of a call for the client; None for other items.

    Calls from code at the provider, which waits for results, and calls that ran in the
    provider's container are not reviewed.
    """
    caller, environment = item.get("caller"), item.get("environment")
    if isinstance(caller, dict) and caller.get("type") != "direct":
        return None
    if isinstance(environment, dict) and environment.get("type") == "container_reference":
        return None
    return parse_named_call(item) or parse_shell_call(item)


@dataclass(slots=True)
class ResponsesEditor:
    """Joins the events of several responses into one.

    Items get consecutive indexes. Events keep their sequence numbers while these increase, and
    otherwise get the next ones.
    """

    _is_continued: bool = False
    _item_count: int = 0
    _indexes: dict[object, int] = field(default_factory=dict)
    _last_number: int = -1
    _id: object = None
    """The id of the first response: clients refuse a stream whose id changes."""
    _merged: Json | None = None

    def start_answer(self) -> None:
        """Continue with the events of the next response."""
        self._is_continued = True
        self._indexes.clear()

    def find_started(self, data: Json) -> Iterator[tuple[object, str]]:
        """Yield the index and the tool of a call that an event starts."""
        call = parse_client_call(get_object(data, "item"))
        if data.get("type") == _ADDED and call is not None:
            yield _get_index(data), call[0]

    def find_ended(self, data: Json) -> Iterator[object]:
        """Yield the index of the item that an event completes."""
        if data.get("type") == _DONE:
            yield _get_index(data)

    def ends_calls(self, data: Json) -> bool:
        """Return whether all items of the response are complete."""
        return RESPONSES_READER.is_end(data)

    def is_last(self, event: Event) -> bool:
        """Return whether this is the last event of the response."""
        return event[1] is not None and RESPONSES_READER.is_end(event[1])

    def remove_calls(
        self, events: Sequence[Event], ids: Collection[str], *, is_continued: bool
    ) -> list[Event]:
        """Return the events without these items; if continued, without the response's end."""
        removed: set[object] = set()
        kept: list[Event] = []
        for raw, data in events:
            if data is not None and get_text(get_object(data, "item"), "call_id") in ids:
                removed.add(_get_index(data))
            is_removed = data is not None and _get_index(data) in removed
            is_end = data is not None and RESPONSES_READER.is_end(data)
            if not is_removed and not (is_end and is_continued):
                kept.append((raw, data))
        return kept

    def set_merged(self, body: Json) -> None:
        """Set the body of the last event."""
        self._merged = body

    def render(self, event: Event) -> bytes:
        """Return the bytes of an event with the index in the client's response."""
        raw, data = event
        if data is None:
            return raw
        if data.get("type") in _STARTS and self._is_continued:
            return b""
        response = get_object(data, "response")
        self._id = self._id or response.get("id")
        changed = self._renumber(data)
        if RESPONSES_READER.is_end(data) and self._merged is not None:
            output = self._merged.get("output")
            changed["response"] = {
                **response,
                "id": self._id or response.get("id"),
                "output": output,
            }
        return raw if changed == data else replace_data(raw, changed)

    def _renumber(self, data: Json) -> Json:
        changed = dict(data)
        old, number = _get_index(data), data.get("sequence_number")
        if data.get("type") == _ADDED:
            self._indexes[old] = self._item_count
            self._item_count += 1
        if old in self._indexes and old is not None:
            changed["output_index"] = self._indexes[old]
        if isinstance(number, int):
            self._last_number = max(self._last_number + 1, number)
            changed["sequence_number"] = self._last_number
        return changed


def _get_index(data: Json) -> int | None:
    index = data.get("output_index")
    return index if isinstance(index, int) else None
