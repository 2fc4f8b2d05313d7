"""A run's progress as one line: updated on a terminal, repeated at intervals elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from ci_agent_eval.runner import RunProgress

PLAIN_SECONDS = 10.0
"""Minimum time between two plain lines, so that a job's log stays short."""

_CLEAR = "\r\x1b[2K"


class ProgressLine:
    """Shows progress below the suite's output; `clock` returns seconds."""

    def __init__(
        self, out: TextIO, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Show progress on `stream` and the suite's output on `out`."""
        self._out = out
        self._stream = stream
        self._clock = clock
        self._live = stream.isatty()
        self._shown = ""
        self._next = clock() + PLAIN_SECONDS

    def echo(self, line: str) -> None:
        """Print a line of the suite's output above the progress line."""
        self._erase()
        self._out.write(line if line.endswith("\n") else f"{line}\n")
        self._out.flush()
        self._draw()

    def show(self, progress: RunProgress) -> None:
        """Show the current progress."""
        self._erase()
        self._shown = format_progress(progress)
        if self._live:
            self._draw()
        elif self._clock() >= self._next:
            self._next = self._clock() + PLAIN_SECONDS
            self._stream.write(f"{self._shown}\n")
            self._stream.flush()

    def end(self) -> None:
        """Remove the line."""
        self._erase()
        self._shown = ""

    def _draw(self) -> None:
        if self._live and self._shown:
            self._stream.write(self._shown)
            self._stream.flush()

    def _erase(self) -> None:
        if self._live and self._shown:
            self._stream.write(_CLEAR)
            self._stream.flush()


def format_progress(progress: RunProgress) -> str:
    """Return the line: episodes, failures, errors, violations, cost."""
    # Adaptive iterations may be more than were selected.
    is_known = progress.selected is not None and progress.finished <= progress.selected
    of = f" of {progress.selected}" if is_known else ""
    return (
        f"agent-eval: {progress.finished}{of} episodes ended, failed: {progress.failed}, "
        f"errors: {progress.errors}, budget violations: {progress.violations}, "
        f"${progress.cost_usd:.4f}"
    )
