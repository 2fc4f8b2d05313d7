"""Output, logs and warnings of an episode before its turn: held, and replayed at its turn.

The process's streams, log handlers and warnings are redirected here only while the event loop runs,
or an episode is set up ahead; otherwise they are pytest's alone. Output of a child process to our
file descriptors cannot be attributed: it goes to the current item.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

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
    printed: dict[Phase, list[tuple[str, str | bytes]]] = field(default_factory=dict)
    """Names of streams, and the text or bytes written to them."""
    logged: dict[Phase, list[tuple[logging.Handler, logging.LogRecord]]] = field(
        default_factory=dict
    )
    warned: list[Any] = field(default_factory=list)

    def replay(self, phase: Phase) -> None:
        """Replay the held output of a phase; after the call phase output is no longer held."""
        for name, data in self.printed.pop(phase, ()):
            stream = getattr(sys, name)
            if isinstance(data, bytes):
                stream.flush()  # keep the order of text and bytes
                stream.buffer.write(data)
            else:
                stream.write(data)
        for handler, record in self.logged.pop(phase, ()):
            handler.handle(record)
        kept, self.warned = self.warned, []
        for message in kept:
            _show_warning(message)
        self.live = phase == "call"


def get_holding_sink() -> OutputSink | None:
    """Return the sink of this context if it holds output for later."""
    sink = _sink.get()
    return None if sink is None or sink.live else sink


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

    def __init__(self, name: str) -> None:
        self.stands_for = name
        self.target: Any = None

    def write(self, text: str) -> int:
        """Write a text to the episode's sink, or to the stream."""
        sink = get_holding_sink()
        if sink is None:
            written: int = self.target.write(text)
            return written
        sink.printed.setdefault(sink.phase, []).append((self.stands_for, text))
        return len(text)

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
        sink = get_holding_sink()
        if sink is None:
            written: int = self._text.target.buffer.write(data)
            return written
        kept = bytes(data)
        sink.printed.setdefault(sink.phase, []).append((self._text.stands_for, kept))
        return len(kept)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._text.target.buffer, name)


class LogRecordFilter(logging.Filter):
    """Passes the current item's records to a handler of pytest; holds the others."""

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler

    def filter(self, record: logging.LogRecord) -> bool:
        """Hold a record for its episode's turn; its text is formatted now."""
        sink = get_holding_sink()
        if sink is None:
            return True
        record.msg, record.args = record.getMessage(), None
        sink.logged.setdefault(sink.phase, []).append((self._handler, record))
        return False


def route_logs(config: pytest.Config) -> None:
    """Add a filter to every handler of pytest's logging plugin."""
    plugin = config.pluginmanager.get_plugin("logging-plugin")
    for name in _HANDLERS:
        handler = getattr(plugin, name, None)
        if isinstance(handler, logging.Handler):
            handler.addFilter(LogRecordFilter(handler))


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
        original = getattr(warnings, "_showwarnmsg_impl", None)
        for name, stream in self._streams.items():
            if getattr(sys, name) is not stream:
                stream.target = getattr(sys, name)
                setattr(sys, name, stream)
        if original is not None:
            warnings._showwarnmsg_impl = _route_warnings(original)  # type: ignore[attr-defined]  # noqa: SLF001 - as `catch_warnings(record=True)` does
        try:
            yield
        finally:
            self._depth -= 1
            for name, stream in self._streams.items():
                setattr(sys, name, stream.target)
            if original is not None:
                warnings._showwarnmsg_impl = original  # type: ignore[attr-defined]  # noqa: SLF001 - as above


def _route_warnings(original: Any) -> Any:
    def show(message: Any) -> None:
        sink = get_holding_sink()
        if sink is None:
            original(message)
        else:
            sink.warned.append(message)

    return show


def _show_warning(message: Any) -> None:
    """Pass a warning to the current recorder; the filters have accepted it before."""
    warnings._showwarnmsg_impl(message)  # type: ignore[attr-defined]  # noqa: SLF001 - see Routing
