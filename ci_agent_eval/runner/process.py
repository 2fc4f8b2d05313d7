"""A child process in its own process group: output lines, signals and exit."""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import IO

from ci_agent_eval.contract.affected import ChangePlan
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.results import AdaptivePlan

DRAIN_SECONDS = 2.0
"""Time to wait for the output of an exited child, whose descendants may hold it open."""

MAX_LINE = 16 * 1024 * 1024
"""Characters; longer lines are split."""

QUEUED_LINES = 10_000
"""Maximum number of unread lines; then the child blocks."""

_FORWARDED = (signal.SIGINT, signal.SIGTERM)

_SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


@dataclass(slots=True)
class Child:
    """A running child process and the signals sent to it."""

    process: subprocess.Popen[str]
    grace_s: float
    clock: Callable[[], float] = time.monotonic
    interrupted_by: signal.Signals | None = None
    killed: bool = False
    _deadline: float | None = None
    _pump: threading.Thread | None = None
    _events: queue.Queue[str | None] = field(default_factory=lambda: queue.Queue(QUEUED_LINES))

    def interrupt(self, number: int) -> None:
        """Send a signal to the child's process group; a second one kills it."""
        if self.interrupted_by is not None:
            self.kill()
            return
        self.interrupted_by = signal.Signals(number)
        self._deadline = self.clock() + self.grace_s
        self._signal(number)

    def kill(self) -> None:
        """Kill the whole process group immediately."""
        self.killed = True
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Kill the child if it still runs, and close its pipe."""
        if self.process.poll() is None:
            self.kill()
            self.process.wait()
        until = self.clock() + DRAIN_SECONDS
        while self._pump is not None and self._pump.is_alive() and self.clock() < until:
            # The pump may block on the full queue, whose lines are not needed any more.
            with suppress(queue.Empty):
                self._events.get(timeout=0.02)
        if self.process.stdout is not None and (self._pump is None or not self._pump.is_alive()):
            self.process.stdout.close()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def lines(self, interval_s: float) -> Iterator[str | None]:
        """Yield the child's lines until it has ended, and None after each silent `interval_s`."""
        assert self.process.stdout is not None  # noqa: S101 - `start_child` opens it
        self._pump = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._pump.start()
        ended_at: float | None = None
        while True:
            try:
                line = self._events.get(timeout=interval_s)
            except queue.Empty:
                line = ""
            if line is None:
                break
            yield line or None
            if self._deadline is not None and self.clock() > self._deadline:
                self.kill()
            if self.process.poll() is not None:
                ended_at = ended_at or self.clock()
                if not self._is_draining(self.clock() - ended_at):
                    break
        self._wait()

    def _is_draining(self, since_end_s: float) -> bool:
        """Say whether to wait longer for the output of an exited child.

        Remaining processes of its group are killed after a while; others are not waited for.
        """
        if since_end_s > DRAIN_SECONDS:
            self._signal(signal.SIGKILL)
        return since_end_s <= 2 * DRAIN_SECONDS

    def _read(self, stream: IO[str]) -> None:
        while line := stream.readline(MAX_LINE):
            self._events.put(line)
        self._events.put(None)

    def _wait(self) -> None:
        """Wait for the exit of a child that has closed its output, up to the deadline."""
        while True:
            left = None if self._deadline is None else max(self._deadline - self.clock(), 0.0)
            try:
                self.process.wait(timeout=left if not self.killed else None)
            except subprocess.TimeoutExpired:
                self.kill()
                continue
            return


def start_child(
    arguments: Sequence[str], environ: Mapping[str, str], cwd: Path | None, grace_s: float
) -> Child:
    """Start a child without input in a new process group.

    On Linux it ends with this process, even by SIGKILL: a suite that goes on costs money.
    """
    process = subprocess.Popen(
        arguments,
        env=environ,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
        preexec_fn=_build_death_signal(),  # noqa: PLW1509 - it calls only prctl
        encoding="utf-8",
        errors="replace",
    )
    return Child(process, grace_s)


def _build_death_signal() -> Callable[[], None] | None:
    """Return a function by which a new process asks for a signal at its parent's death."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # loaded before the fork
    return lambda: prctl(_SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)


@contextmanager
def forward_signals() -> Iterator[Callable[[Child], None]]:
    """Forward SIGINT and SIGTERM to the child passed to the yielded function.

    Earlier signals are forwarded when the child is passed. Outside the main thread, where Python
    allows no handlers, nothing is forwarded.
    """
    children: list[Child] = []
    pending: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        if children:
            children[0].interrupt(number)
        else:
            pending.append(number)

    def attach(child: Child) -> None:
        children.append(child)
        for number in pending:
            child.interrupt(number)

    if threading.current_thread() is not threading.main_thread():
        yield attach
        return
    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield attach
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class SuiteCommand:
    """A suite to run: paths, arguments, interpreter, and report folder."""

    report_dir: Path
    paths: Sequence[str] = ()
    """Paths of this run; empty: those of the suite."""
    pytest_args: Sequence[str] = ()
    """Arguments of this run, in addition to those of the suite."""
    suite_paths: Sequence[str] = ()
    """Paths that define the suite."""
    suite_args: Sequence[str] = ()
    """Arguments that define the suite; they do not restrict the run."""
    python: str = sys.executable
    shard: str | None = None
    """Shard to run, such as `2/4`; None: the whole suite."""
    suite: str | None = None
    commit: str | None = None
    """The tested commit, a pull request's head; recorded in `session.json`."""
    budgets: SuiteBudgets = field(default_factory=SuiteBudgets)
    """The run stops at the hard ones."""
    adaptive_plan: AdaptivePlan = AdaptivePlan()  # noqa: RUF009 - frozen
    """The rates by which adaptive iterations are decided."""
    changes: ChangePlan | None = None
    """The changed files, to leave out what they cannot have affected; None: everything runs."""
    again: Path | None = None
    """File of the scenarios to run again, for a confirmation; None: an ordinary run."""
    color: bool = False
    """Whether pytest writes in colour, although its output is no terminal."""
    cwd: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables set for the suite in addition to the inherited ones."""

    @property
    def all_args(self) -> Sequence[str]:
        """The arguments for pytest, in order."""
        return (*self.suite_args, *self.pytest_args)


@contextmanager
def provide_suite_files(command: SuiteCommand) -> Iterator[Sequence[str]]:
    """Write the adaptive plan and the changes, if there are any, and yield the options for them.

    The temporary files are removed at the end.
    """
    plans: dict[str, AdaptivePlan | ChangePlan] = {}
    if command.adaptive_plan != AdaptivePlan():
        plans["adaptive-plan"] = command.adaptive_plan
    if command.changes is not None:
        plans["changes"] = command.changes
    with TemporaryDirectory(prefix="agent-eval-") as folder:
        for name, plan in plans.items():
            Path(folder, name).write_text(canonical_json(plan), encoding="ascii")
        yield [f"--episode-{name}={Path(folder, name)}" for name in plans]
