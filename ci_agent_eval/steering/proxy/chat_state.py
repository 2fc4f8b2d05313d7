"""What is known of the choices and calls of a streamed chat completion, as far as it is here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ci_agent_eval.steering.proxy.reviewed_calls import append_message
from ci_agent_eval.steering.proxy.sse import Json, parse_object

_PENDING = object()
FUNCTION_CALL = "function_call"
"""The place of the only call that older models make, which has no number."""


@dataclass(slots=True, eq=False)
class StreamedCall:
    """One call, as far as it is here."""

    id: object
    name: str = ""
    text: str = ""
    custom: bool = False
    verdict: object = _PENDING
    """The message in its place; None: it goes through."""
    shift: int | None = None
    """How many calls before it the client does not see, once it was written."""

    @property
    def pending(self) -> bool:
        """Whether nothing is decided about this call."""
        return self.verdict is _PENDING

    def add(self, fragment: Json) -> None:
        """Take over the next piece."""
        self.custom = self.custom or isinstance(fragment.get("custom"), dict)
        piece = fragment.get("custom" if self.custom else "function")
        piece = piece if isinstance(piece, dict) else {}
        name, text = piece.get("name"), piece.get("input" if self.custom else "arguments")
        self.name += name if isinstance(name, str) else ""
        self.text += text if isinstance(text, str) else ""

    def arguments(self) -> object:
        """Return what the tool would get."""
        if self.custom:
            return self.text
        parsed = parse_object(self.text)
        return self.text if parsed is None else parsed

    @property
    def whole(self) -> bool:
        """Whether the arguments are complete, whatever comes. Those of a custom tool may go on."""
        return not self.custom and parse_object(self.text) is not None


@dataclass(slots=True)
class StreamedChoice:
    """One choice: its calls in order, and what of it the client has seen."""

    calls: list[StreamedCall] = field(default_factory=list)
    steered: int = 0
    passed: int = 0
    _by_place: dict[object, StreamedCall] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)
    _has_text: bool = False

    def call_at(self, place: object, fragment: Json) -> tuple[StreamedCall, bool]:
        """Return the call that a fragment belongs to, and whether it begins here.

        Some providers give every call of a response the same place: their ids differ.
        """
        given = fragment.get("id")
        call = self._by_place.get(place)
        if call is not None and (not given or not call.id or call.id == given):
            return call, False
        call = self._by_place[place] = StreamedCall(given)
        self.calls.append(call)
        return call, True

    def write(self, delta: Json, mine: list[tuple[StreamedCall, Json]]) -> bool:
        """Make of a delta what the client gets; return whether anything changed."""
        told = [text for call, _ in mine if (text := self._begun(call)) is not None]
        gone = [fragment for call, fragment in mine if call.verdict is not None]
        _remove_fragments(delta, gone)
        moved = [
            _renumber_fragment(call, fragment) for call, fragment in mine if call.verdict is None
        ]
        for text in told:
            delta["content"] = append_message(delta.get("content"), self._apart(delta, text))
        self._has_text = self._has_text or bool(delta.get("content"))
        return bool(gone) or any(moved)

    def _begun(self, call: StreamedCall) -> str | None:
        """Take note of a call's first fragment; return what the client has to be told."""
        if call.shift is not None:
            return None
        call.shift = self.steered
        text = call.verdict
        if not isinstance(text, str):
            self.passed += 1
            return None
        self.steered += 1
        new = text not in self._told
        self._told.add(text)
        return text if new else None

    def _apart(self, delta: Json, text: str) -> str:
        return f"\n\n{text}" if self._has_text and not delta.get("content") else text


def iterate_fragments(choice: Json) -> Iterator[tuple[object, Json]]:
    """Return the pieces of calls in a choice, each with the place of its call."""
    delta = choice.get("delta")
    delta = delta if isinstance(delta, dict) else {}
    entries = delta.get("tool_calls")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            yield entry.get("index") if isinstance(entry.get("index"), int) else None, entry
    if isinstance(delta.get(FUNCTION_CALL), dict):
        yield FUNCTION_CALL, {"function": delta[FUNCTION_CALL]}


def _remove_fragments(delta: Json, gone: list[Json]) -> None:
    """Take pieces of calls out of a delta, and what is empty then."""
    entries = delta.get("tool_calls")
    if isinstance(entries, list):
        left = [entry for entry in entries if not any(entry is piece for piece in gone)]
        delta["tool_calls"] = left
        if entries and not left:
            del delta["tool_calls"]
    if any(piece.get("function") is delta.get(FUNCTION_CALL) for piece in gone):
        delta.pop(FUNCTION_CALL, None)


def _renumber_fragment(call: StreamedCall, fragment: Json) -> bool:
    """Give a piece the number that its call has among those the client sees."""
    at = fragment.get("index")
    if not isinstance(at, int) or not call.shift or not at:
        return False
    fragment["index"] = max(0, at - call.shift)
    return True
