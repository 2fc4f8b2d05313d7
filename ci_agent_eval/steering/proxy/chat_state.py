"""State of the choices and calls of a streamed chat completion."""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.chat_calls import (
    FUNCTION_CALL,
    AssembledCall,
    ChoiceCalls,
)
from ci_agent_eval.model_traffic.formats.json_values import Json
from ci_agent_eval.steering.proxy.reviewed_calls import append_message

_PENDING = object()


@dataclass(slots=True, eq=False)
class StreamedCall(AssembledCall):
    """One call with the decision on it."""

    replacement: object = _PENDING
    """The message that replaces the call; None if the call goes through."""
    shift: int | None = None
    """The number of removed calls before this one, once it was sent."""

    @property
    def is_pending(self) -> bool:
        """Whether the call is not reviewed yet."""
        return self.replacement is _PENDING


@dataclass(slots=True)
class StreamedChoice:
    """One choice: its calls, and the state of the sent events."""

    calls: ChoiceCalls[StreamedCall] = field(default_factory=lambda: ChoiceCalls(StreamedCall))
    steered_count: int = 0
    passed_count: int = 0
    _sent_messages: set[str] = field(default_factory=set)
    _has_text: bool = False

    def rewrite_delta(self, delta: Json, fragments: list[tuple[StreamedCall, Json]]) -> bool:
        """Replace the steered calls in a delta; return whether it changed."""
        messages = [text for call, _ in fragments if (text := self._start_call(call)) is not None]
        removed = [fragment for call, fragment in fragments if call.replacement is not None]
        _remove_fragments(delta, removed)
        renumbered = [
            _renumber_fragment(call, fragment)
            for call, fragment in fragments
            if call.replacement is None
        ]
        for text in messages:
            delta["content"] = append_message(
                delta.get("content"), self._add_blank_line(delta, text)
            )
        self._has_text = self._has_text or bool(delta.get("content"))
        return bool(removed) or any(renumbered)

    def _start_call(self, call: StreamedCall) -> str | None:
        """Count a call at its first fragment; return the message to send, if any."""
        if call.shift is not None:
            return None
        call.shift = self.steered_count
        text = call.replacement
        if not isinstance(text, str):
            self.passed_count += 1
            return None
        self.steered_count += 1
        is_new = text not in self._sent_messages
        self._sent_messages.add(text)
        return text if is_new else None

    def _add_blank_line(self, delta: Json, text: str) -> str:
        return f"\n\n{text}" if self._has_text and not delta.get("content") else text


def _remove_fragments(delta: Json, removed: list[Json]) -> None:
    """Remove fragments of calls from a delta, and containers left empty."""
    entries = delta.get("tool_calls")
    if isinstance(entries, list):
        kept = [entry for entry in entries if not any(entry is piece for piece in removed)]
        delta["tool_calls"] = kept
        if entries and not kept:
            del delta["tool_calls"]
    if any(piece.get("function") is delta.get(FUNCTION_CALL) for piece in removed):
        delta.pop(FUNCTION_CALL, None)


def _renumber_fragment(call: StreamedCall, fragment: Json) -> bool:
    """Renumber a fragment for the removed calls before it; return whether it changed."""
    at = fragment.get("index")
    if not isinstance(at, int) or not call.shift or not at:
        return False
    fragment["index"] = max(0, at - call.shift)
    return True
