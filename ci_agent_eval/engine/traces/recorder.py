"""A span processor that keeps spans in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from opentelemetry import trace
from opentelemetry.context import Context

from ci_agent_eval.errors import InputError

try:
    from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
except ImportError as missing:
    raise InputError(
        "recording spans needs OpenTelemetry's SDK; run: pip install opentelemetry-sdk"
    ) from missing

RecordedSpans = list[ReadableSpan]

_active: ContextVar[RecordedSpans | None] = ContextVar("ci_agent_eval_spans", default=None)


class SpanRecorder(SpanProcessor):
    """Adds each ended span to the recording it began in; one recorder per provider.

    A span begins in the recording of its task, or in a thread without one, of its trace.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_span: dict[int, RecordedSpans] = {}
        self._by_trace: dict[int, RecordedSpans] = {}

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Assign a span to the active recording."""
        del parent_context
        context = span.get_span_context()
        if context is None:
            return
        with self._lock:
            found = _active.get()
            if found is None:
                found = self._by_trace.get(context.trace_id)
            if found is not None:
                self._by_span[context.span_id] = found
                self._by_trace[context.trace_id] = found

    def on_end(self, span: ReadableSpan) -> None:
        """Add a span to its recording."""
        context = span.get_span_context()
        if context is None:
            return
        with self._lock:
            found = self._by_span.pop(context.span_id, None)
            if found is not None:
                found.append(span)

    def forget(self, recording: RecordedSpans) -> None:
        """Stop adding spans to a recording."""
        with self._lock:
            for known in (self._by_span, self._by_trace):
                for key in [key for key, value in known.items() if value is recording]:
                    del known[key]


_recorders: WeakKeyDictionary[TracerProvider, SpanRecorder] = WeakKeyDictionary()
_recorders_lock = threading.Lock()


@contextmanager
def record_sdk_spans(provider: Any = None) -> Iterator[Sequence[ReadableSpan]]:
    """Record the spans of this task and its children. Raises InputError."""
    recorder = _get_recorder(_get_sdk_provider(provider))
    spans: RecordedSpans = []
    token = _active.set(spans)
    try:
        yield spans
    finally:
        _active.reset(token)
        recorder.forget(spans)


def _get_recorder(provider: TracerProvider) -> SpanRecorder:
    with _recorders_lock:
        if provider not in _recorders:
            _recorders[provider] = SpanRecorder()
            provider.add_span_processor(_recorders[provider])
        return _recorders[provider]


def _get_sdk_provider(provider: Any) -> TracerProvider:
    given = trace.get_tracer_provider() if provider is None else provider
    if provider is None and isinstance(given, trace.ProxyTracerProvider):
        trace.set_tracer_provider(TracerProvider())
        given = trace.get_tracer_provider()
    if not isinstance(given, TracerProvider):
        raise InputError(
            f"{type(given).__name__} is no tracer provider of OpenTelemetry's SDK; "
            "give record_spans one that is, or set it as the global one"
        )
    return given
