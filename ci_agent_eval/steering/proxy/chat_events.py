"""Chunks of OpenAI's Chat Completions: …/docs/api-reference/chat-streaming."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.chat_calls import (
    AssembledCall,
    ChoiceCalls,
    iterate_fragments,
)
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    get_object,
    get_objects,
    get_text,
    parse_object,
)
from ci_agent_eval.model_traffic.formats.sse import get_data, replace_data
from ci_agent_eval.steering.proxy.dialect import Event

SEPARATOR = "\n\n"
"""Between the texts of two answers, which a completion has as one text."""

_TEXTS = ("content", "reasoning_content", "reasoning")


@dataclass(slots=True)
class ChatEditor:
    """Joins the chunks of several completions into one."""

    _is_continued: bool = False
    _id: object = None
    _calls: ChoiceCalls[AssembledCall] = field(default_factory=lambda: ChoiceCalls(AssembledCall))
    _texts: set[str] = field(default_factory=set)
    """Keys of texts that the client has, and that need a separator before the next answer's."""
    _new_texts: set[str] = field(default_factory=set)

    def start_answer(self) -> None:
        """Continue with the chunks of the next completion."""
        self._is_continued = True
        self._calls = ChoiceCalls(AssembledCall)
        self._texts |= self._new_texts
        self._new_texts = set()

    def find_started(self, data: Json) -> Iterator[tuple[object, str]]:
        """Yield the calls that a chunk starts, with their tools."""
        for choice in get_objects(data, "choices"):
            for position, fragment in iterate_fragments(choice):
                call, is_new = self._calls.get_or_add(position, fragment)
                call.add_fragment(fragment)
                if is_new:
                    yield id(call), call.name

    def find_ended(self, _data: Json) -> Iterator[object]:
        """Return nothing: only the end of a completion tells that its calls are complete."""
        return iter(())

    def ends_calls(self, data: Json) -> bool:
        """Return whether all calls of the completion are complete."""
        return any(c.get("finish_reason") is not None for c in get_objects(data, "choices"))

    def is_last(self, event: Event) -> bool:
        """Return whether this is the last event of the completion."""
        return event[1] is None and get_data(event[0]).strip() == b"[DONE]"

    def remove_calls(
        self, events: Sequence[Event], ids: Collection[str], *, is_continued: bool
    ) -> list[Event]:
        """Return the chunks without these calls; if continued, without the completion's end."""
        calls = ChoiceCalls(AssembledCall)
        removed: set[int] = set()
        kept: list[Event] = []
        for raw, original in events:
            data = None if original is None else parse_object(get_data(raw))
            if data is None:
                kept += [] if is_continued else [(raw, data)]
                continue
            for choice in get_objects(data, "choices"):
                _remove_fragments(choice, calls, ids, removed)
                if is_continued:
                    choice["finish_reason"] = None
            if data == original:
                kept.append((raw, data))
            elif not all(map(_is_empty, get_objects(data, "choices"))):
                kept.append((replace_data(raw, data), data))
        return [event for event in kept if not (is_continued and _is_usage(event))]

    def set_merged(self, body: Json) -> None:
        """Ignore the body: the last chunk does not repeat it."""

    def render(self, event: Event) -> bytes:
        """Return the bytes of a chunk with the id of the client's completion."""
        raw, data = event
        if data is None:
            return raw
        self._id = self._id or data.get("id")
        for key in _TEXTS:
            if any(get_text(get_object(c, "delta"), key) for c in get_objects(data, "choices")):
                self._new_texts.add(key)
        if not self._is_continued:
            return raw
        choices = [self._separate(choice) for choice in get_objects(data, "choices")]
        return replace_data(raw, {**data, "id": self._id, "choices": choices})

    def _separate(self, choice: Json) -> Json:
        """Add a separator to the first text of a later completion."""
        delta = dict(get_object(choice, "delta"))
        for key in list(self._texts):
            text = delta.get(key)
            if isinstance(text, str) and text:
                delta[key] = SEPARATOR + text
                self._texts.discard(key)
        return {**choice, "delta": delta}


def _remove_fragments(
    choice: Json, calls: ChoiceCalls[AssembledCall], ids: Collection[str], removed: set[int]
) -> None:
    """Remove the fragments of calls, and renumber later ones: clients fill a list by index."""
    kept = []
    for position, fragment in iterate_fragments(choice):
        call, _ = calls.get_or_add(position, fragment)
        index = fragment.get("index")
        if isinstance(call.id, str) and call.id in ids:
            removed |= {index} if isinstance(index, int) else set()
            continue
        if isinstance(index, int):
            fragment["index"] = index - sum(other < index for other in removed)
        kept.append(fragment)
    delta = get_object(choice, "delta")
    if delta.get("tool_calls"):
        delta["tool_calls"] = kept
        if not kept:
            del delta["tool_calls"]


def _is_empty(choice: Json) -> bool:
    delta = get_object(choice, "delta")
    return not any(value for key, value in delta.items() if key != "role") and (
        choice.get("finish_reason") is None
    )


def _is_usage(event: Event) -> bool:
    return event[1] is not None and not event[1].get("choices") and "usage" in event[1]
