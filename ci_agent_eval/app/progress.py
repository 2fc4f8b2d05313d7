"""A run's progress: lines that are rewritten on a terminal, and a few plain ones elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.render.escape import cut_middle, escape_terminal
from ci_agent_eval.render.numbers import format_count, format_money
from ci_agent_eval.render.terminal import DIM, RED, TerminalStyle

if TYPE_CHECKING:
    from ci_agent_eval.runner.progress import EpisodeInProgress, FirstFailure, RunProgress

PLAIN_SECONDS = 30.0
"""Time between plain lines, so that a job's log stays short; the report follows a short run."""
MOST_RUNNING = 5
"""Running episodes that are shown, the longest running first."""
MOST_CAUSES = 50
"""Causes that get a plain line."""
NAME_LIMIT = 60
RUNNING_WIDTH = 68
"""Columns of a running episode without its time, which 80 columns have room for."""
CAUSE_LIMIT = 160

_UP = "\x1b[1A\r\x1b[2K"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
"""A terminal cuts lines that are wider than itself, so that the number of lines is known."""


def is_live(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether lines of a stream can be rewritten: it is a terminal, and not CI's."""
    is_ci = environ.get("CI", "").lower() not in {"", "0", "false"}
    return stream.isatty() and not is_ci and environ.get("TERM") != "dumb"


class ProgressLine:
    """Shows progress below the suite's output; `clock` returns seconds."""

    def __init__(
        self,
        out: TextIO,
        stream: TextIO,
        *,
        live: bool = False,
        color: bool = False,
        max_cost_usd: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Show progress on `stream` and the suite's output on `out`.

        `live`: rewrite the lines; otherwise print plain ones. `max_cost_usd` is the suite's budget.
        """
        self._out = out
        self._stream = stream
        self._clock = clock
        self._live = live
        self._style = TerminalStyle(0, color)
        self._max_cost_usd = max_cost_usd
        self._drawn: Sequence[str] = ()
        self._started = clock()
        self._next = self._started + PLAIN_SECONDS
        self._causes = 0

    def echo(self, line: str) -> None:
        """Print a line of the suite's output above the progress."""
        self._erase()
        self._out.write(line if line.endswith("\n") else f"{line}\n")
        self._out.flush()
        self._draw()

    def show(self, progress: RunProgress) -> None:
        """Show the current progress."""
        elapsed_s = self._clock() - self._started
        line = format_progress(progress, elapsed_s, self._max_cost_usd)
        if self._live:
            self._erase()
            code = RED if progress.failed or progress.errors else DIM
            self._drawn = (self._style.paint(line, code), *self._list_running(progress.running))
            self._draw()
            return
        if self._clock() >= self._next:
            self._next = self._clock() + PLAIN_SECONDS
            self._print_causes(progress.causes)
            self._print(f"agent-eval: {line}")

    def end(self) -> None:
        """Remove the lines."""
        self._erase()
        self._drawn = ()

    def _list_running(self, running: Sequence[EpisodeInProgress]) -> Iterator[str]:
        for episode in running[:MOST_RUNNING]:
            yield self._style.paint(format_running(episode), DIM)
        if (rest := len(running) - MOST_RUNNING) > 0:
            yield self._style.paint(f"  and {format_count(rest)} more", DIM)

    def _print_causes(self, causes: Sequence[FirstFailure]) -> None:
        """Print the causes that are new since the last call."""
        for first in causes[self._causes : MOST_CAUSES]:
            self._print(self._style.paint(format_first_failure(first), RED))
        if self._causes <= MOST_CAUSES < len(causes):
            self._print("agent-eval: there are more causes; the report names them")
        self._causes = len(causes)

    def _print(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def _draw(self) -> None:
        if self._drawn:
            self._stream.write(_NO_WRAP + "".join(f"{line}\n" for line in self._drawn) + _WRAP)
            self._stream.flush()

    def _erase(self) -> None:
        if self._drawn:
            self._stream.write(_UP * len(self._drawn))
            self._stream.flush()


def format_progress(
    progress: RunProgress, elapsed_s: float, max_cost_usd: float | None = None
) -> str:
    """Return the line of counts: episodes, failures, errors, cost, running episodes, time."""
    # Adaptive iterations may be more than were selected.
    is_known = progress.selected is not None and progress.finished <= progress.selected
    of = f"/{format_count(progress.selected or 0)}" if is_known else ""
    parts = [f"{format_count(progress.finished)}{of} episodes"]
    if progress.failed:
        scenarios = pluralize(progress.failed_scenarios, "scenario")
        parts.append(f"{format_count(progress.failed)} failed in {scenarios}")
    parts += [pluralize(progress.errors, "error")] if progress.errors else []
    if progress.violations:
        parts.append(pluralize(progress.violations, "budget violation"))
    limit = "" if max_cost_usd is None else f" of {format_money(max_cost_usd, 2)}"
    if progress.cost_usd or limit:
        parts.append(f"{format_money(progress.cost_usd, 2)}{limit}")
    parts += [f"{format_count(len(progress.running))} running"] if progress.running else []
    minutes, seconds = divmod(int(elapsed_s), 60)
    return " · ".join([*parts, f"{minutes}:{seconds:02}"])


def format_running(episode: EpisodeInProgress) -> str:
    """Return the line of a running episode: scenario, iteration, time."""
    of = f" {episode.iteration}/{episode.iterations}" if episode.iterations > 1 else ""
    name = escape_terminal(cut_middle(episode.scenario_id, RUNNING_WIDTH - len(of)))
    return f"  {name + of:<{RUNNING_WIDTH}} {int(episode.elapsed_s):>6} s"


def format_first_failure(first: FirstFailure) -> str:
    """Return the line of a new cause: scenario, cause, place."""
    cause = first.cause
    word = "error" if cause.kind == "error" else "failure"
    place = f" ({escape_terminal(f'{cause.file}:{cause.line or 1}')})" if cause.file else ""
    name = escape_terminal(first.scenario_id, NAME_LIMIT)
    text = escape_terminal(cause.sentence or "no reason given", CAUSE_LIMIT)
    return f"agent-eval: new {word} in {name}: {text}{place}"
