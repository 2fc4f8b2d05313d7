"""What an episode prints, logs and warns of before its turn: kept, and told when it comes.

Only while the event loop runs, or an episode is set up ahead, do the streams, the log handlers
and the warnings of the process lead here; else they are pytest's alone. What a child process
writes to a file descriptor of ours cannot be told apart: it goes to the item whose turn it is.
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
"""Attributes of pytest's logging plugin: whoever of them takes a record."""


@dataclass(slots=True)
class OutputSink:
    """The output of one episode, by phase, until its turn comes."""

    phase: Phase = "setup"
    live: bool = False
    """It is its turn: what comes goes where pytest looks for it."""
    printed: dict[Phase, list[tuple[str, str | bytes]]] = field(default_factory=dict)
    """Names of streams, and what was written to them, or to their buffers."""
    logged: dict[Phase, list[tuple[logging.Handler, logging.LogRecord]]] = field(
        default_factory=dict
    )
    warned: list[Any] = field(default_factory=list)

    def tell(self, phase: Phase) -> None:
        """Print, log and warn what was kept of a phase; afterwards, if it is the call, at once."""
        for name, said in self.printed.pop(phase, ()):
            stream = getattr(sys, name)
            if isinstance(said, bytes):
                stream.flush()  # what was written before stays before
                stream.buffer.write(said)
            else:
                stream.write(said)
        for handler, record in self.logged.pop(phase, ()):
            handler.handle(record)
        kept, self.warned = self.warned, []
        for message in kept:
            _show_warning(message)
        self.live = phase == "call"


def get_holding_sink() -> OutputSink | None:
    """Return the sink of this context, if what it says is to be kept for later."""
    sink = _sink.get()
    return None if sink is None or sink.live else sink


def set_sink(sink: OutputSink) -> None:
    """Let all that is said in this context from now on be the sink's."""
    _sink.set(sink)


@contextmanager
def use_sink(sink: OutputSink) -> Iterator[None]:
    """Let what is said meanwhile in this context be the sink's."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


class RoutedStream:
    """Stands in the place of a stream, and asks whose text it is that is written."""

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
        """The stream of bytes below."""
        return RoutedBytes(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)


class RoutedBytes:
    """Stands in the place of a stream's buffer."""

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
    """Lets a handler of pytest have the records of the item whose turn it is; keeps the others."""

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep a record for its episode's turn; its text is made now, as it is meant."""
        sink = get_holding_sink()
        if sink is None:
            return True
        record.msg, record.args = record.getMessage(), None
        sink.logged.setdefault(sink.phase, []).append((self._handler, record))
        return False


def route_logs(config: pytest.Config) -> None:
    """Ask every handler of pytest's logging plugin whose records it is given."""
    plugin = config.pluginmanager.get_plugin("logging-plugin")
    for name in _HANDLERS:
        handler = getattr(plugin, name, None)
        if isinstance(handler, logging.Handler):
            handler.addFilter(LogRecordFilter(handler))


class OutputRouting:
    """Leads the process's streams and warnings here, for as long as episodes may be at work."""

    def __init__(self) -> None:
        self._streams = {name: RoutedStream(name) for name in ("stdout", "stderr")}
        self._depth = 0

    @contextmanager
    def on(self) -> Iterator[None]:
        """Lead them here; within it, again, is the same."""
        self._depth += 1
        if self._depth > 1:
            try:
                yield
            finally:
                self._depth -= 1
            return
        shown = getattr(warnings, "_showwarnmsg_impl", None)
        for name, stream in self._streams.items():
            if getattr(sys, name) is not stream:
                stream.target = getattr(sys, name)
                setattr(sys, name, stream)
        if shown is not None:
            warnings._showwarnmsg_impl = _route_warnings(shown)  # type: ignore[attr-defined]  # noqa: SLF001 - what `catch_warnings(record=True)` sets, too
        try:
            yield
        finally:
            self._depth -= 1
            for name, stream in self._streams.items():
                setattr(sys, name, stream.target)
            if shown is not None:
                warnings._showwarnmsg_impl = shown  # type: ignore[attr-defined]  # noqa: SLF001 - as above


def _route_warnings(shown: Any) -> Any:
    def show(message: Any) -> None:
        sink = get_holding_sink()
        if sink is None:
            shown(message)
        else:
            sink.warned.append(message)

    return show


def _show_warning(message: Any) -> None:
    """Hand a warning on to whoever records them now; the filters have let it through before."""
    warnings._showwarnmsg_impl(message)  # type: ignore[attr-defined]  # noqa: SLF001 - see Routing
