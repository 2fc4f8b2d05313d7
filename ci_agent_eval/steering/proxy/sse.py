"""Server-sent events as bytes: cut apart, read, and written anew, and never changed on the way.

The format is the one of https://html.spec.whatwg.org/multipage/server-sent-events.html. A
library's parser gives events without their bytes; a proxy has to hand on the bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Json = dict[str, object]
"""A JSON object as it came: nothing in it can be trusted."""

# A line's end and an empty line after it. Behind \n a \r waits for what follows it: it is half
# of \r\n nearly always. Where all lines end with \r, nothing is waited for.
_END = re.compile(rb"\n(?:\r\n|\n|\r(?=[^\n]))|\r\r\n?")
_LOOK_BACK = 3
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Splitter:
    """Cuts a stream of bytes into events; together they are the stream, byte for byte."""

    _buffer: bytearray = field(default_factory=bytearray)
    _seen: int = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the events that `chunk` completes, each with the empty line that ends it."""
        self._buffer += chunk
        events: list[bytes] = []
        start = 0
        for end in _END.finditer(self._buffer, max(0, self._seen - _LOOK_BACK)):
            events.append(bytes(self._buffer[start : end.end()]))
            start = end.end()
        del self._buffer[:start]
        self._seen = len(self._buffer)
        return events

    def rest(self) -> bytes:
        """Return what came after the last event, and forget it."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._seen = 0
        return rest

    @property
    def waiting(self) -> int:
        """Bytes of the event that is not complete."""
        return len(self._buffer)


def parse_data(raw: bytes) -> Json | None:
    """Return the JSON object that is an event's data; None where it is something else."""
    lines = (line for line in raw.removeprefix(_BOM).splitlines() if line.startswith(b"data:"))
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines)
    return parse_object(data) if data.lstrip().startswith(b"{") else None


def parse_object(text: bytes | str) -> Json | None:
    """Return the JSON object that a text is; None where it is something else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def render_compact_json(value: object) -> bytes:
    """Return compact JSON in ASCII, which lone surrogates survive."""
    return json.dumps(value, separators=(",", ":")).encode()


def replace_data(raw: bytes, data: Mapping[str, object]) -> bytes:
    """Return an event as it came, with other data."""
    end = _find_newline(raw)
    lines = raw.splitlines()
    first = next(at for at, line in enumerate(lines) if _is_data(line))
    kept = [line for at, line in enumerate(lines) if at == first or not _is_data(line)]
    kept[first] = b"data: " + render_compact_json(data)
    whole = end.join(kept) + end
    # The empty line that ends an event is missing from a last event that was cut short.
    return whole if not kept[-1] else whole + end


def render_event(data: Mapping[str, object], *, name: str | None = None) -> bytes:
    """Return a new event."""
    head = b"" if name is None else b"event: " + name.encode() + b"\n"
    return head + b"data: " + render_compact_json(data) + b"\n\n"


def _is_data(line: bytes) -> bool:
    return line.removeprefix(_BOM).startswith(b"data:")


def _find_newline(raw: bytes) -> bytes:
    found = re.search(rb"\r\n|\n|\r", raw.lstrip(b"\r\n"))
    return found.group() if found else b"\n"
