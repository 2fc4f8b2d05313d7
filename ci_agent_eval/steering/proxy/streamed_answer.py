"""Review of one streamed answer: events pass at once until a call that may be held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import Json
from ci_agent_eval.model_traffic.formats.sse import Splitter, get_data, parse_data
from ci_agent_eval.steering.proxy.dialect import ClientCall, Dialect, Event, EventEditor
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls


def review_calls(calls: ReviewedCalls, listed: list[ClientCall]) -> dict[str, str]:
    """Return the messages of the calls to hold by their ids; a call needs a unique id."""
    ids = [call.id for call in listed]
    return {
        call.id: message
        for call in listed
        if call.tool is not None
        and call.id
        and ids.count(call.id) == 1
        and (message := calls.get_message(call.tool, call.arguments)) is not None
    }


@dataclass(slots=True)
class StreamedAnswer:
    """Passes on the events of an answer, and holds them from a call that may be held.

    The events leave again as soon as all such calls are complete and none of them is held.
    Otherwise they wait for the end of the answer, and `is_held` is set. After more bytes than
    `max_bytes` or an unexpected error the rest passes without review, with `bypass_reason` set.
    """

    dialect: Dialect
    editor: EventEditor
    calls: ReviewedCalls | None
    """None: all calls pass."""
    max_bytes: int
    complete: Callable[[Json], Json] | None
    """Called with the complete answer before its end is sent; returns the client's answer."""
    messages: Mapping[str, str] = field(default_factory=dict)
    bypass_reason: str | None = None
    _splitter: Splitter = field(default_factory=Splitter)
    _raws: list[bytes] = field(default_factory=list)
    _size: int = 0
    _held: list[Event] = field(default_factory=list)
    _open: set[object] = field(default_factory=set)
    _is_ended: bool = False
    _are_calls_complete: bool = False

    @property
    def is_held(self) -> bool:
        """Whether the answer is complete and calls of it are held."""
        return self._is_ended and bool(self.messages)

    def feed(self, chunk: bytes) -> bytes:
        """Process the next bytes; return those to send now."""
        out = [self._feed_event(raw) for raw in self._splitter.feed(chunk)]
        if self._size + self._splitter.pending_bytes > self.max_bytes:
            out += [self._start_bypass(self._too_large), self._splitter.take_rest()]
        return b"".join(out)

    def finish(self) -> bytes:
        """Return the remaining bytes at the end of the stream, some of which have no last event."""
        rest = self._splitter.take_rest()
        out = self._feed_event(rest) if rest else b""
        if self._are_calls_complete:
            self._is_ended = True
        return out if self.is_held else out + self.release()

    def release(self) -> bytes:
        """Return the held events, with all calls."""
        held, self._held, self.messages = self._held, [], {}
        return self._render(held)

    def release_others(self, *, is_continued: bool) -> bytes:
        """Return the held events without the held calls; if continued, without the end."""
        ids = set(self.messages)
        return self._render(self.editor.remove_calls(self._held, ids, is_continued=is_continued))

    def assemble(self) -> Json:
        """Return the answer, of the events so far."""
        parsed = [data for raw in self._raws if (data := parse_data(raw)) is not None]
        return self.dialect.reader.assemble(parsed)

    @property
    def _too_large(self) -> str:
        return f"it is larger than {self.max_bytes} bytes"

    def _render(self, events: Sequence[Event]) -> bytes:
        return b"".join(map(self.editor.render, events))

    def _feed_event(self, raw: bytes) -> bytes:
        event = raw, parse_data(raw)
        if self.bypass_reason is not None or self._is_ended:
            return self.editor.render(event)
        self._raws.append(raw)
        self._size += len(raw)
        self._held.append(event)
        try:
            return self._process(event)
        except Exception as error:  # noqa: BLE001 - an error of steering must not lose an answer
            return self._start_bypass(f"unexpected {type(error).__name__}")

    def _process(self, event: Event) -> bytes:
        """Decide on the event, which is the last held one."""
        data = event[1]
        had_open = self._track_calls(data)
        if had_open and not self._open and self.calls is not None:
            self.messages = review_calls(self.calls, self.dialect.list_calls(self.assemble()))
        if not self.messages:
            self._complete(data)
        self._is_ended = self.editor.is_last(event)
        if not self._open and not self.messages:
            return self.release()
        return self._release_keep_alive(event)

    def _complete(self, data: Json | None) -> None:
        if data is not None and self.editor.ends_calls(data):
            self.complete_answer()

    def complete_answer(self) -> None:
        """Remember the answer, and send with its end what the client has of earlier ones."""
        if self.complete is None:
            return
        body = self.assemble()
        merged = self.complete(body)
        if merged is not body:
            self.editor.set_merged(merged)

    def _track_calls(self, data: Json | None) -> bool:
        """Update the incomplete calls that may be held; return whether there were any before."""
        if data is None:
            return bool(self._open)
        for key, tool in self.editor.find_started(data):
            if self.calls is not None and (not tool or self.calls.is_steerable(tool)):
                self._open.add(key)
        had_open = bool(self._open)
        self._open.difference_update(self.editor.find_ended(data))
        if self.editor.ends_calls(data):
            self._are_calls_complete = True
            self._open.clear()
        return had_open

    def _release_keep_alive(self, event: Event) -> bytes:
        """Return an event that only keeps the connection open, which does not wait for others."""
        raw, data = event
        is_ping = data is not None and data.get("type") == "ping"
        if is_ping or (data is None and not get_data(raw).strip()):
            return self._held.pop()[0]
        return b""

    def _start_bypass(self, reason: str) -> bytes:
        if self.bypass_reason is None:
            self.bypass_reason = reason
        self._raws.clear()
        return self.release()
