"""Server-sent events as bytes: splitting, parsing and rendering.

Format: https://html.spec.whatwg.org/multipage/server-sent-events.html. Parsers of libraries
return events without their original bytes, which a proxy must forward.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    parse_object,
    render_compact_json,
)

# A line ending followed by an empty line. After \n, a \r needs a following byte to match, because
# it is usually the first half of \r\n. If all lines end with \r, no further byte is needed.
_END = re.compile(rb"\n(?:\r\n|\n|\r(?=[^\n]))|\r\r\n?")
_LOOK_BACK = 3
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Splitter:
    """Splits a stream of bytes into events without losing any byte."""

    _buffer: bytearray = field(default_factory=bytearray)
    _searched_bytes: int = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the events completed by `chunk`, including their empty lines."""
        self._buffer += chunk
        events: list[bytes] = []
        start = 0
        for end in _END.finditer(self._buffer, max(0, self._searched_bytes - _LOOK_BACK)):
            events.append(bytes(self._buffer[start : end.end()]))
            start = end.end()
        del self._buffer[:start]
        self._searched_bytes = len(self._buffer)
        return events

    def take_rest(self) -> bytes:
        """Remove and return the bytes after the last event."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._searched_bytes = 0
        return rest

    @property
    def rest(self) -> bytes:
        """The bytes after the last event."""
        return bytes(self._buffer)


def get_data(raw: bytes) -> bytes:
    """Return an event's data; empty if it has none."""
    lines = (line for line in raw.removeprefix(_BOM).splitlines() if line.startswith(b"data:"))
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines)


def get_name(raw: bytes) -> str | None:
    """Return an event's name; None if it has none."""
    lines = (line for line in raw.removeprefix(_BOM).splitlines() if line.startswith(b"event:"))
    names = [line[6:].removeprefix(b" ").decode("utf-8", "replace") for line in lines]
    return names[-1] if names else None


def parse_data(raw: bytes) -> Json | None:
    """Parse an event's data as a JSON object; None for other data."""
    data = get_data(raw)
    return parse_object(data) if data.lstrip().startswith(b"{") else None


def replace_data(raw: bytes, data: Mapping[str, object]) -> bytes:
    """Return an event with replaced data and otherwise unchanged lines."""
    end = _find_newline(raw)
    lines = raw.splitlines()
    first = next(at for at, line in enumerate(lines) if _is_data(line))
    kept = [line for at, line in enumerate(lines) if at == first or not _is_data(line)]
    kept[first] = b"data: " + render_compact_json(data)
    whole = end.join(kept) + end
    # The final empty line is missing if the stream was cut off.
    return whole if not kept[-1] else whole + end


def _is_data(line: bytes) -> bool:
    return line.removeprefix(_BOM).startswith(b"data:")


def _find_newline(raw: bytes) -> bytes:
    found = re.search(rb"\r\n|\n|\r", raw.lstrip(b"\r\n"))
    return found.group() if found else b"\n"
