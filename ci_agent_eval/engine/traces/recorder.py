"""A span processor that keeps spans in memory."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
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


@dataclass(eq=False)
class SpanRecording:
    """The spans that begin in a `with` block, in the order in which they end."""

    count_calls: Callable[[], int] = lambda: 0
    """Returns the number of model calls recorded so far."""
    outer: SpanRecording | None = None
    """The recording around it, which gets the spans, too."""
    spans: list[ReadableSpan] = field(default_factory=list)
    calls: dict[int, range] = field(default_factory=dict)
    """Numbers of the model calls that began while a span was open, by the id of the span."""

    def note_start(self, span_id: int) -> None:
        """Note that a span begins."""
        self.calls[span_id] = range(self.count_calls() + 1, sys.maxsize)
        if self.outer is not None:
            self.outer.note_start(span_id)

    def add(self, span: ReadableSpan, span_id: int) -> None:
        """Add a span that has ended."""
        self.spans.append(span)
        self.calls[span_id] = range(self.calls[span_id].start, self.count_calls() + 1)
        if self.outer is not None:
            self.outer.add(span, span_id)


_active: ContextVar[SpanRecording | None] = ContextVar("ci_agent_eval_spans", default=None)


class SpanRecorder(SpanProcessor):
    """Adds each ended span to the recording it began in; one recorder per provider.

    A span begins in the recording of its task, or in a thread without one, of its trace.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_span: dict[int, SpanRecording] = {}
        self._by_trace: dict[int, SpanRecording] = {}

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
                found.note_start(context.span_id)

    def on_end(self, span: ReadableSpan) -> None:
        """Add a span to its recording."""
        context = span.get_span_context()
        if context is None:
            return
        with self._lock:
            found = self._by_span.pop(context.span_id, None)
            if found is not None:
                found.add(span, context.span_id)

    def forget(self, recording: SpanRecording) -> None:
        """Stop adding spans to a recording; its open spans still belong to the outer one."""
        with self._lock:
            for known in (self._by_span, self._by_trace):
                for key in [key for key, value in known.items() if value is recording]:
                    if recording.outer is None:
                        del known[key]
                    else:
                        known[key] = recording.outer


_recorders: WeakKeyDictionary[TracerProvider, SpanRecorder] = WeakKeyDictionary()
_recorders_lock = threading.Lock()


@contextmanager
def record_sdk_spans(provider: Any = None) -> Iterator[Sequence[ReadableSpan]]:
    """Record the spans of this task and its children. Raises InputError."""
    with _record(_get_sdk_provider(provider), SpanRecording()) as recording:
        yield recording.spans


@contextmanager
def record_run_spans(count_calls: Callable[[], int]) -> Iterator[SpanRecording | None]:
    """Record the spans of a run if the global provider is of the SDK, else yield None."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        yield None
        return
    with _record(provider, SpanRecording(count_calls, _active.get())) as recording:
        yield recording


@contextmanager
def _record(provider: TracerProvider, recording: SpanRecording) -> Iterator[SpanRecording]:
    recorder = _get_recorder(provider)
    token = _active.set(recording)
    try:
        yield recording
    finally:
        _active.reset(token)
        recorder.forget(recording)


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
