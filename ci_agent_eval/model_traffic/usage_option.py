"""Usage in streamed chat completions: asked for, and hidden from clients that did not ask. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import parse_object, render_compact_json
from ci_agent_eval.model_traffic.formats.sse import Splitter, parse_data

OPTION_ERRORS = frozenset({400, 422})
"""Statuses of providers that do not know `stream_options`."""


def add_usage_option(body: bytes) -> bytes | None:
    """Return a streamed chat request that asks for usage; None if it asks, or is not streamed."""
    request = parse_object(body)
    if request is None or request.get("stream") is not True:
        return None
    options = request.get("stream_options")
    options = options if isinstance(options, dict) else {}
    if options.get("include_usage") is True:
        return None
    return render_compact_json({**request, "stream_options": {**options, "include_usage": True}})


@dataclass(slots=True)
class UsageEventRemover:
    """Removes the event that only `include_usage` causes: usage without choices."""

    _splitter: Splitter = field(default_factory=Splitter)

    def feed(self, chunk: bytes) -> bytes:
        """Return the events that are complete, without that of the usage."""
        return b"".join(e for e in self._splitter.feed(chunk) if not _is_usage_event(e))

    def finish(self) -> bytes:
        """Return the bytes after the last event."""
        return self._splitter.take_rest()


def _is_usage_event(event: bytes) -> bool:
    data = parse_data(event)
    return data is not None and data.get("choices") == [] and isinstance(data.get("usage"), dict)
