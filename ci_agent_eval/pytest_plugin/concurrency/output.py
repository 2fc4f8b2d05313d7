"""Output, logs and warnings of an episode before its turn: held, and replayed at its turn.

Output of a child process to our file descriptors cannot be attributed, nor that of a thread while
pytest goes from one item to the next: it goes to the current item.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from threading import RLock, get_ident
from typing import Any, Literal
from weakref import WeakKeyDictionary

import pytest

Phase = Literal["setup", "call"]

_sink: ContextVar[OutputSink | None] = ContextVar("ci_agent_eval_output", default=None)

_HANDLERS = ("caplog_handler", "report_handler", "log_cli_handler", "log_file_handler")
"""Attributes of pytest's logging plugin that are log handlers."""


@dataclass(slots=True)
class OutputSink:
    """The output of one episode, by phase, until its turn comes."""

    phase: Phase = "setup"
    live: bool = False
    """Whether it is the episode's turn: output goes directly to pytest."""
    _held: dict[Phase, list[Callable[[], object]]] = field(default_factory=dict)
    """Functions that emit the output, in its order."""
    _lock: RLock = field(default_factory=RLock)
    """Reentrant: the handler of a signal may print, too."""

    def hold(self, emit: Callable[[], object]) -> bool:
        """Keep a function for the replay; False at its turn: emit it now."""
        with self._lock:
            if self.live:
                return False
            self._held.setdefault(self.phase, []).append(emit)
            return True

    def replay(self, phase: Phase) -> None:
        """Emit the held output of a phase; after the call phase output is no longer held."""
        self._emit_held(phase)
        with self._lock:  # a thread that prints without pause waits for the rest
            self._emit_held(phase)
            self.live = phase == "call"

    def _emit_held(self, phase: Phase) -> None:
        with self._lock:
            held = self._held.pop(phase, ())
        for emit in held:
            emit()


def is_holding() -> bool:
    """Return whether output of this context is held for later."""
    sink = _sink.get()
    return sink is not None and not sink.live


def hold_output(emit: Callable[[], object]) -> bool:
    """Keep output of this context for its episode's turn; False at its turn."""
    sink = _sink.get()
    return sink is not None and sink.hold(emit)


def set_sink(sink: OutputSink) -> None:
    """Send all output of this context to the sink from now on."""
    _sink.set(sink)


@contextmanager
def use_sink(sink: OutputSink) -> Iterator[None]:
    """Send the output of this context to the sink within the `with` block."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


class RoutedStream:
    """Replaces a standard stream, and routes each text to its episode."""

    def __init__(self, name: str, target: Any = None) -> None:
        self.name_in_sys = name
        self.target: Any = target

    def write(self, text: str) -> int:
        """Write a text to the episode's sink, or to the stream."""
        if hold_output(lambda: getattr(sys, self.name_in_sys).write(text)):
            return len(text)
        written: int = self.target.write(text)
        return written

    def writelines(self, lines: Any) -> None:
        """Write texts one after the other."""
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> RoutedBytes:
        """The binary stream below."""
        return RoutedBytes(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)


class RoutedBytes:
    """Replaces a stream's buffer."""

    def __init__(self, text: RoutedStream) -> None:
        self._text = text

    def write(self, data: bytes) -> int:
        """Write bytes to the episode's sink, or to the stream's buffer."""
        copy = bytes(data)
        if hold_output(lambda: self._emit(copy)):
            return len(copy)
        written: int = self._text.target.buffer.write(data)
        return written

    def _emit(self, data: bytes) -> None:
        stream = getattr(sys, self._text.name_in_sys)
        stream.flush()  # keep the order of text and bytes
        stream.buffer.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._text.target.buffer, name)


class LogRecordFilter(logging.Filter):
    """Passes the current item's records to pytest's handlers; holds each other record once."""

    def __init__(self, handlers: Sequence[logging.Handler]) -> None:
        super().__init__()
        self._handlers = handlers
        self._held: WeakKeyDictionary[logging.LogRecord, int | None] = WeakKeyDictionary()
        """The thread that emits each record which is or was held; None: no thread does."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Hold a record for its episode's turn; its text is formatted now."""
        if record in self._held:
            return self._held[record] == get_ident()
        if not is_holding():
            return True
        record.msg, record.args = record.getMessage(), None
        self._held[record] = None
        reached = [handler for handler in self._handlers if record.levelno >= handler.level]
        if hold_output(partial(self._emit, record, reached)):
            return False
        del self._held[record]
        return True

    def _emit(self, record: logging.LogRecord, handlers: Sequence[logging.Handler]) -> None:
        self._held[record] = get_ident()
        for handler in handlers:
            handler.handle(record)
        self._held[record] = None


def route_logs(config: pytest.Config) -> None:
    """Hold the records for every handler of pytest's logging plugin."""
    plugin = config.pluginmanager.get_plugin("logging-plugin")
    found = [getattr(plugin, name, None) for name in _HANDLERS]
    handlers = [handler for handler in found if isinstance(handler, logging.Handler)]
    record_filter = LogRecordFilter(handlers)
    for handler in handlers:
        handler.addFilter(record_filter)


class OutputRouting:
    """Redirects the process's streams and warnings while episodes may run."""

    def __init__(self) -> None:
        self._streams = {name: RoutedStream(name) for name in ("stdout", "stderr")}
        self._depth = 0

    @contextmanager
    def enable(self) -> Iterator[None]:
        """Redirect them within the `with` block, which may be nested."""
        self._depth += 1
        if self._depth > 1:
            try:
                yield
            finally:
                self._depth -= 1
            return
        replaced = {n: getattr(sys, n) for n in self._streams}
        for name, stream in self._streams.items():
            # A fixture such as capsys has replaced a stream that is routed already.
            if type(replaced[name]) is not RoutedStream:
                stream.target = replaced[name]
                setattr(sys, name, stream)
        try:
            with route_warnings():
                yield
        finally:
            self._depth -= 1
            for name, before in replaced.items():
                setattr(sys, name, before)


@contextmanager
def route_warnings() -> Iterator[None]:
    """Route each warning to its episode within the `with` block, which may be nested."""
    original = getattr(warnings, "_showwarnmsg_impl", None)
    if original is None:
        yield
        return

    def show(message: Any) -> None:
        if not hold_output(partial(show_warning, message)):
            original(message)

    warnings._showwarnmsg_impl = show  # type: ignore[attr-defined]  # noqa: SLF001 - as `catch_warnings(record=True)` does
    try:
        yield
    finally:
        warnings._showwarnmsg_impl = original  # type: ignore[attr-defined]  # noqa: SLF001 - as above


def show_warning(message: Any) -> None:
    """Pass a warning to the current recorder; the filters have accepted it before."""
    warnings._showwarnmsg_impl(message)  # type: ignore[attr-defined]  # noqa: SLF001 - see above
