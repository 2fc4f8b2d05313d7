"""AWS's binary event streams, in which Bedrock sends streamed answers.

botocore parses them. It is imported when such a stream is read: an agent that streams from Bedrock
in this process has it, and the gateway needs it anyway to sign its own requests.
"""

from __future__ import annotations

import base64
import struct

from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    UnreadableTrafficError,
    get_text,
    parse_object,
)


def read_aws_events(stream: bytes) -> list[Json]:
    """Return the events of a binary stream, each as `{name: payload}`, and an error as the last.

    Raises UnreadableTrafficError without botocore, and for bytes that begin no event.
    """
    try:
        from botocore.eventstream import EventStreamBuffer, ParserError  # noqa: PLC0415 - optional
    except ImportError:
        raise UnreadableTrafficError(
            "streams of Bedrock cannot be read: install `botocore` in this environment"
        ) from None
    events: list[Json] = []
    try:
        buffer = EventStreamBuffer()
        buffer.add_data(stream)
        events.extend(_build_event(one.headers, one.payload) for one in buffer)
    except (ParserError, ValueError, KeyError, struct.error) as error:
        message = f"the stream is not an AWS event stream: {error}"
        if not events:
            raise UnreadableTrafficError(message) from error
        events.append({"type": "error", "error": {"message": message}})
    return events


def _build_event(headers: Json, payload: bytes) -> Json:
    """Build an event; an exception is an event of the type `error`, as in Anthropic's streams."""
    data = parse_object(payload) or {}
    if headers.get(":message-type") in ("error", "exception"):
        name = headers.get(":exception-type") or headers.get(":error-code") or "exception"
        message = get_text(data, "message") or str(headers.get(":error-message") or name)
        return {"type": "error", "error": {"message": message}}
    encoded = data.get("bytes")
    if isinstance(encoded, str):
        return _decode_event(encoded)
    return {str(headers.get(":event-type")): data}


def _decode_event(text: str) -> Json:
    """Decode an event of `invoke-with-response-stream`, which is the model vendor's event."""
    try:
        return parse_object(base64.b64decode(text)) or {}
    except ValueError:
        return {}
