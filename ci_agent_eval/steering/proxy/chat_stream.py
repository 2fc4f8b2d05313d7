"""Rewriting of a streamed chat completion: holds the chunks of calls until they are complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.chat_calls import iterate_fragments
from ci_agent_eval.model_traffic.formats.json_values import Json
from ci_agent_eval.model_traffic.formats.sse import parse_data, replace_data
from ci_agent_eval.steering.proxy.chat import CALL_FINISH_REASONS, end_turn
from ci_agent_eval.steering.proxy.chat_state import StreamedCall, StreamedChoice
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls

_Fragment = tuple[StreamedChoice, StreamedCall, Json]


@dataclass(slots=True, eq=False)
class _ChatEvent:
    """One event with its fragments of calls."""

    raw: bytes
    data: Json
    fragments: list[_Fragment]

    @property
    def is_pending(self) -> bool:
        return any(call.is_pending for _, call, _ in self.fragments)


@dataclass(slots=True)
class ChatStream:
    """A rewriter of one streamed completion.

    Holds complete events, and sends them unchanged if they contain no steered call. Other events
    pass immediately, except after a held event with text.
    """

    calls: ReviewedCalls
    _choices: dict[object, StreamedChoice] = field(default_factory=dict)
    _held: list[_ChatEvent] = field(default_factory=list)

    def feed(self, raw: bytes) -> list[bytes]:
        """Process an event; return the events to send now."""
        data = parse_data(raw)
        if data is None:
            return [*(self.finish() if b"[DONE]" in raw else []), raw]
        event = _ChatEvent(
            raw, data, [f for c in _get_choices(data) for f in self._absorb_fragments(c)]
        )
        out = self._take_decided()
        if event.is_pending or (self._held and self._has_to_wait(event)):
            self._held.append(event)
            return out
        return [*out, *self._render_event(event)]

    def finish(self) -> list[bytes]:
        """Decide on all calls at the end of the stream; return the held events."""
        for choice in self._choices.values():
            self._decide(choice.calls)
        return self._take_decided()

    @property
    def held_events(self) -> list[bytes]:
        """The unchanged events that are not sent yet."""
        return [event.raw for event in self._held]

    def release(self) -> list[bytes]:
        """Return the held events and let their undecided calls through."""
        for choice in self._choices.values():
            for call in choice.calls:
                call.replacement = None if call.is_pending else call.replacement
        return self._take_decided()

    def _absorb_fragments(self, choice: Json) -> Iterator[_Fragment]:
        """Yield the fragments of calls in a choice, and decide on complete calls."""
        state = self._get_state(choice)
        for position, fragment in iterate_fragments(choice):
            call, is_new = state.calls.get_or_add(position, fragment)
            if is_new:
                self._decide(
                    [
                        earlier
                        for earlier in state.calls
                        if earlier.is_pending and earlier.is_complete
                    ]
                )
            call.add_fragment(fragment)
            if call.is_pending and call.name and not self.calls.is_steerable(call.name):
                call.replacement = None
            yield state, call, fragment
        if choice.get("finish_reason") is not None:
            self._decide(state.calls)

    def _get_state(self, choice: Json) -> StreamedChoice:
        at = choice.get("index")
        return self._choices.setdefault(at if isinstance(at, int) else 0, StreamedChoice())

    def _decide(self, calls: Iterable[StreamedCall]) -> None:
        for call in calls:
            if call.is_pending:
                call.replacement = self.calls.get_message(call.name, call.arguments())

    def _has_to_wait(self, event: _ChatEvent) -> bool:
        ends = any(c.get("finish_reason") is not None for c in _get_choices(event.data))
        return bool(event.fragments) or ends or any(_has_text(held) for held in self._held)

    def _take_decided(self) -> list[bytes]:
        out: list[bytes] = []
        while self._held and not self._held[0].is_pending:
            out += self._render_event(self._held.pop(0))
        return out

    def _render_event(self, event: _ChatEvent) -> list[bytes]:
        """Return an event without its steered calls; empty if nothing remains."""
        changed = [self._rewrite_choice(choice, event) for choice in _get_choices(event.data)]
        if not any(changed):
            return [event.raw]
        if all(_is_empty(choice) for choice in _get_choices(event.data)) and not event.data.get(
            "usage"
        ):
            return []
        return [replace_data(event.raw, event.data)]

    def _rewrite_choice(self, choice: Json, event: _ChatEvent) -> bool:
        state, delta = self._get_state(choice), choice.get("delta")
        fragments = [(call, piece) for owner, call, piece in event.fragments if owner is state]
        changed = isinstance(delta, dict) and state.rewrite_delta(delta, fragments)
        if (
            choice.get("finish_reason") not in CALL_FINISH_REASONS
            or not state.steered_count
            or state.passed_count
        ):
            return changed
        end_turn(choice)
        return True


def _get_choices(data: Json) -> list[Json]:
    choices = data.get("choices")
    return [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []


def _get_other_keys(choice: Json) -> set[str]:
    """Return the keys of a delta except calls."""
    delta = choice.get("delta")
    items = delta.items() if isinstance(delta, dict) else ()
    return {key for key, value in items if value} - {"tool_calls", "function_call"}


def _has_text(event: _ChatEvent) -> bool:
    return any(_get_other_keys(choice) - {"role"} for choice in _get_choices(event.data))


def _is_empty(choice: Json) -> bool:
    delta = choice.get("delta")
    calls = isinstance(delta, dict) and (delta.get("tool_calls") or delta.get("function_call"))
    return not calls and not _get_other_keys(choice) and choice.get("finish_reason") is None
