"""State of the choices and calls of a streamed chat completion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ci_agent_eval.steering.proxy.reviewed_calls import append_message
from ci_agent_eval.steering.proxy.sse import Json, parse_object

_PENDING = object()
FUNCTION_CALL = "function_call"
"""The position of the only call of older models, which has no index."""


@dataclass(slots=True, eq=False)
class StreamedCall:
    """One call, assembled from the fragments received so far."""

    id: object
    name: str = ""
    text: str = ""
    custom: bool = False
    replacement: object = _PENDING
    """The message that replaces the call; None if the call goes through."""
    shift: int | None = None
    """The number of removed calls before this one, once it was sent."""

    @property
    def is_pending(self) -> bool:
        """Whether the call is not reviewed yet."""
        return self.replacement is _PENDING

    def add_fragment(self, fragment: Json) -> None:
        """Append the next fragment."""
        self.custom = self.custom or isinstance(fragment.get("custom"), dict)
        piece = fragment.get("custom" if self.custom else "function")
        piece = piece if isinstance(piece, dict) else {}
        name, text = piece.get("name"), piece.get("input" if self.custom else "arguments")
        self.name += name if isinstance(name, str) else ""
        self.text += text if isinstance(text, str) else ""

    def arguments(self) -> object:
        """Return the tool's arguments."""
        if self.custom:
            return self.text
        parsed = parse_object(self.text)
        return self.text if parsed is None else parsed

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are complete; unknown, so False, for custom tools."""
        return not self.custom and parse_object(self.text) is not None


@dataclass(slots=True)
class StreamedChoice:
    """One choice: its calls in order, and the state of the sent events."""

    calls: list[StreamedCall] = field(default_factory=list)
    steered_count: int = 0
    passed_count: int = 0
    _by_position: dict[object, StreamedCall] = field(default_factory=dict)
    _sent_messages: set[str] = field(default_factory=set)
    _has_text: bool = False

    def get_or_add_call(self, position: object, fragment: Json) -> tuple[StreamedCall, bool]:
        """Return the call of a fragment, and whether the fragment starts it.

        Some providers give all calls of a response the same index, with different ids.
        """
        call_id = fragment.get("id")
        call = self._by_position.get(position)
        if call is not None and (not call_id or not call.id or call.id == call_id):
            return call, False
        call = self._by_position[position] = StreamedCall(call_id)
        self.calls.append(call)
        return call, True

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


def iterate_fragments(choice: Json) -> Iterator[tuple[object, Json]]:
    """Yield the fragments of calls in a choice with their positions."""
    delta = choice.get("delta")
    delta = delta if isinstance(delta, dict) else {}
    entries = delta.get("tool_calls")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            yield entry.get("index") if isinstance(entry.get("index"), int) else None, entry
    if isinstance(delta.get(FUNCTION_CALL), dict):
        yield FUNCTION_CALL, {"function": delta[FUNCTION_CALL]}


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
