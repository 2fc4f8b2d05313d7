"""AWS's binary event streams, in which Bedrock sends streamed answers.

botocore parses them. It is imported when such a stream is seen: an agent that streams from Bedrock
in this process has it, and the gateway needs it anyway to sign its own requests.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    UnreadableTrafficError,
    get_text,
    parse_object,
)

_MISSING = "streams of Bedrock cannot be read: install `botocore` in this environment"


@dataclass(slots=True)
class AWSEventBody:
    """The events of a binary stream, each as `{name: payload}`."""

    assemble: Callable[[list[Json]], Json]
    """Merges the events into the body that the same answer has without streaming."""
    is_end: Callable[[Json], bool]
    """Returns whether an event is the last one."""
    is_ended: bool = False
    _error: str | None = None
    _buffer: Any = None
    _events: list[Json] = field(default_factory=list)

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes; nothing can be read after bytes that are no event."""
        if self._error is not None:
            return
        try:
            for event in self._split(chunk):
                self._events.append(event)
                self.is_ended = self.is_ended or self.is_end(event)
        except ImportError:
            self._error = _MISSING
        except _get_parser_errors() as error:
            self._error = f"the stream is not an AWS event stream: {error}"

    def load(self) -> Json:
        """Return the body without streaming. Raises UnreadableTrafficError."""
        if self._error is not None and not self._events:
            raise UnreadableTrafficError(self._error)
        body = self.assemble(self._events)
        return body if self._error is None else {**body, "error": {"message": self._error}}

    def _split(self, chunk: bytes) -> Iterator[Json]:
        if self._buffer is None:
            from botocore.eventstream import EventStreamBuffer  # noqa: PLC0415 - optional

            self._buffer = EventStreamBuffer()
        self._buffer.add_data(chunk)
        for message in self._buffer:
            yield _build_event(message.headers, message.payload)


def _get_parser_errors() -> tuple[type[Exception], ...]:
    """Return the errors that botocore raises for other bytes."""
    from botocore.eventstream import ParserError  # noqa: PLC0415 - optional

    return ParserError, ValueError, KeyError, struct.error


def _build_event(headers: Json, payload: bytes) -> Json:
    """Build an event; an exception is an event of the type `error`, as in Anthropic's streams."""
    data = parse_object(payload) or {}
    if headers.get(":message-type") in ("error", "exception"):
        name = headers.get(":exception-type") or headers.get(":error-code") or "exception"
        message = get_text(data, "message") or str(headers.get(":error-message") or name)
        return {"type": "error", "error": {"message": message}}
    if isinstance(data.get("bytes"), str):
        return _decode_event(str(data["bytes"]))
    return {str(headers.get(":event-type")): data}


def _decode_event(text: str) -> Json:
    """Decode an event of `invoke-with-response-stream`, which is the model vendor's event."""
    try:
        return parse_object(base64.b64decode(text)) or {}
    except (binascii.Error, ValueError):
        return {}
