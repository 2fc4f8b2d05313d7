"""One streamed answer: its events pass at once until its first call, and then wait for its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import Json
from ci_agent_eval.model_traffic.formats.sse import Splitter, get_data, parse_data
from ci_agent_eval.steering.proxy.api import Api, Joiner


@dataclass(slots=True)
class StreamedAnswer:
    """Passes on the events of an answer, and holds them from its first call.

    At the answer's end `is_waiting` is set. After `release` everything passes.
    """

    api: Api
    joiner: Joiner
    note: Callable[[Json], None]
    """Called with each event before it is sent."""
    _splitter: Splitter = field(default_factory=Splitter)
    _events: list[Json] = field(default_factory=list)
    _size: int = 0
    _held: list[bytes] = field(default_factory=list)
    _holds: bool = False
    _has_calls: bool = False
    _is_ended: bool = False
    _is_released: bool = False

    @property
    def size(self) -> int:
        """The number of bytes kept for the review."""
        return 0 if self._is_released else self._size

    @property
    def is_waiting(self) -> bool:
        """Whether the answer has ended and its calls wait for the review."""
        return self._is_ended and self._has_calls and not self._is_released

    def feed(self, chunk: bytes) -> bytes:
        """Process the next bytes; return those to send now."""
        self._size += len(chunk)
        return b"".join(map(self._feed_event, self._splitter.feed(chunk)))

    def finish(self) -> bytes:
        """Process the end of the stream; return the bytes to send now."""
        last = self._splitter.take_rest()
        out = self._feed_event(last) if last else b""
        self._is_ended = True
        return out if self.is_waiting else out + self.release()

    def release(self) -> bytes:
        """Return the held events; all later ones pass."""
        self._is_released = True
        self._events.clear()
        return self._take_held()

    def release_all(self) -> bytes:
        """Return all held bytes, also those of an incomplete event."""
        return self.release() + self._splitter.take_rest()

    def assemble(self) -> Json:
        """Return the answer, of the events so far."""
        return self.api.reader.assemble(self._events)

    def _take_held(self) -> bytes:
        held, self._held = self._held, []
        return b"".join(self.joiner.render(raw, parse_data(raw)) for raw in held)

    def _feed_event(self, raw: bytes) -> bytes:
        data = parse_data(raw)
        if data is not None:
            self.note(data)
        if self._is_released:
            return self.joiner.render(raw, data)
        before = b""
        if data is not None:
            before = self._hold_or_pass(data)
            self._events.append(data)
        passes = not self._holds or (not self._is_ended and _is_keep_alive(raw, data))
        self._is_ended = self._is_ended or self.api.is_last(raw, data)
        if passes:
            return before + self.joiner.render(raw, data)
        self._held.append(raw)
        return b""

    def _hold_or_pass(self, data: Json) -> bytes:
        """Decide whether events are held from this one on; return those that no longer are."""
        part = self.api.find_part(data)
        if self._has_calls or part is None:
            return b""
        self._has_calls = part == "call"
        self._holds = part != "text"
        return b"" if self._holds else self._take_held()


def _is_keep_alive(raw: bytes, data: Json | None) -> bool:
    """Return whether an event only keeps the connection open, so that it passes others."""
    return not get_data(raw).strip() if data is None else data.get("type") == "ping"
