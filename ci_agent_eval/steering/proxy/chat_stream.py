"""The chunks of a streamed chat completion: those of calls are held until these are complete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ci_agent_eval.steering.proxy.chat import CALL_FINISH_REASONS, end_turn
from ci_agent_eval.steering.proxy.chat_state import StreamedCall, StreamedChoice, iterate_fragments
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls
from ci_agent_eval.steering.proxy.sse import Json, parse_data, replace_data

_Fragment = tuple[StreamedChoice, StreamedCall, Json]


@dataclass(slots=True, eq=False)
class _ChatEvent:
    """One event with what it carries of calls."""

    raw: bytes
    data: Json
    fragments: list[_Fragment]

    @property
    def pending(self) -> bool:
        return any(call.pending for _, call, _ in self.fragments)


@dataclass(slots=True)
class ChatStream:
    """The events of one streamed completion.

    Whole events are held, and handed on as they came if nothing in them is steered. What is
    no part of a call passes at once, except behind a held event that has text of its own.
    """

    calls: ReviewedCalls
    _choices: dict[object, StreamedChoice] = field(default_factory=dict)
    _held: list[_ChatEvent] = field(default_factory=list)

    def feed(self, raw: bytes) -> list[bytes]:
        """Return what the client gets now that this event is here."""
        data = parse_data(raw)
        if data is None:
            return [*(self.finish() if b"[DONE]" in raw else []), raw]
        event = _ChatEvent(raw, data, [f for c in _get_choices(data) for f in self._absorbed(c)])
        out = self._drained()
        if event.pending or (self._held and self._has_to_wait(event)):
            self._held.append(event)
            return out
        return [*out, *self._written(event)]

    def finish(self) -> list[bytes]:
        """Return what is still held: nothing more comes."""
        for choice in self._choices.values():
            self._decide(choice.calls)
        return self._drained()

    @property
    def held(self) -> list[bytes]:
        """The events that wait, as they came."""
        return [event.raw for event in self._held]

    def release(self) -> list[bytes]:
        """Return all that is held, and let these calls through."""
        for choice in self._choices.values():
            for call in choice.calls:
                call.verdict = None if call.pending else call.verdict
        return self._drained()

    def _absorbed(self, choice: Json) -> Iterator[_Fragment]:
        """Take over the pieces of calls in one choice, and decide about calls that are complete."""
        state = self._state(choice)
        for place, fragment in iterate_fragments(choice):
            call, begins = state.call_at(place, fragment)
            if begins:
                self._decide(
                    [earlier for earlier in state.calls if earlier.pending and earlier.whole]
                )
            call.add(fragment)
            if call.pending and call.name and not self.calls.concerns(call.name):
                call.verdict = None
            yield state, call, fragment
        if choice.get("finish_reason") is not None:
            self._decide(state.calls)

    def _state(self, choice: Json) -> StreamedChoice:
        at = choice.get("index")
        return self._choices.setdefault(at if isinstance(at, int) else 0, StreamedChoice())

    def _decide(self, calls: list[StreamedCall]) -> None:
        for call in calls:
            if call.pending:
                call.verdict = self.calls.message(call.name, call.arguments())

    def _has_to_wait(self, event: _ChatEvent) -> bool:
        ends = any(c.get("finish_reason") is not None for c in _get_choices(event.data))
        return bool(event.fragments) or ends or any(_has_text(held) for held in self._held)

    def _drained(self) -> list[bytes]:
        out: list[bytes] = []
        while self._held and not self._held[0].pending:
            out += self._written(self._held.pop(0))
        return out

    def _written(self, event: _ChatEvent) -> list[bytes]:
        """Return an event without what was steered; nothing where no more is left."""
        changed = [self._rewritten(choice, event) for choice in _get_choices(event.data)]
        if not any(changed):
            return [event.raw]
        if all(_is_empty(choice) for choice in _get_choices(event.data)) and not event.data.get(
            "usage"
        ):
            return []
        return [replace_data(event.raw, event.data)]

    def _rewritten(self, choice: Json, event: _ChatEvent) -> bool:
        state, delta = self._state(choice), choice.get("delta")
        mine = [(call, piece) for owner, call, piece in event.fragments if owner is state]
        changed = isinstance(delta, dict) and state.write(delta, mine)
        if (
            choice.get("finish_reason") not in CALL_FINISH_REASONS
            or not state.steered
            or state.passed
        ):
            return changed
        end_turn(choice)
        return True


def _get_choices(data: Json) -> list[Json]:
    choices = data.get("choices")
    return [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []


def _get_other_keys(choice: Json) -> set[str]:
    """Return what a delta brings apart from calls."""
    delta = choice.get("delta")
    items = delta.items() if isinstance(delta, dict) else ()
    return {key for key, value in items if value} - {"tool_calls", "function_call"}


def _has_text(event: _ChatEvent) -> bool:
    return any(_get_other_keys(choice) - {"role"} for choice in _get_choices(event.data))


def _is_empty(choice: Json) -> bool:
    delta = choice.get("delta")
    calls = isinstance(delta, dict) and (delta.get("tool_calls") or delta.get("function_call"))
    return not calls and not _get_other_keys(choice) and choice.get("finish_reason") is None
