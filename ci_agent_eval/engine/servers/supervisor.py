"""Supervise a child process: kill its process tree when the parent dies.

Run as a script, by its path, with only the standard library:

    supervisor.py PARENT_PID inherit|null NAME,NAME,... PROGRAM ARGUMENT...

The program gets this process's stdin (or none), stdout, stderr and the named environment
variables. It ends with this process, which ends when its stdin is closed, on SIGTERM, SIGINT
or SIGHUP, or when the process `PARENT_PID` is gone, even by SIGKILL. The exit code is the
program's, 128 + n after signal n, or 127 if it could not be started.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

EXIT_GRACE_S = 1.0
"""Seconds for a program to exit after its stdin is closed, as the MCP requires."""

TERM_S = 1.0
"""Seconds between SIGTERM and SIGKILL."""

POLL_S = 0.5
"""Interval of the check for the parent, in case the kernel does not signal its death."""

EXIT_NOT_STARTED = 127

_SET_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
_END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _call_prctl(option: int, value: int) -> None:
    """Call prctl on Linux; elsewhere the parent is polled."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_supervisor() -> None:
    _call_prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def _open_signal_pipe() -> int:
    """Return a descriptor that receives a byte for each handled signal."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (*_END_SIGNALS, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reader


def _start_program(stdin: str, names: str, command: list[str]) -> subprocess.Popen[bytes]:
    kept = {name: os.environ[name] for name in names.split(",") if name in os.environ}
    return subprocess.Popen(
        command,
        env=kept,
        stdin=subprocess.DEVNULL if stdin == "null" else None,
        process_group=0,
        preexec_fn=_die_with_supervisor,  # noqa: PLW1509 - this process has a single thread
    )


def _release_stdout() -> None:
    """Close our stdout, so that the reader notices the program's end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


class ProgramSupervisor:
    """Waits for a program's end and kills it when it must end."""

    def __init__(self, child: int, parent: int, signals: int) -> None:
        self.child = child
        self.parent = parent
        self.signals = signals
        self.code: int | None = None
        self.term_at: float | None = None
        self.kill_at: float | None = None
        self.poller = select.poll()
        self.poller.register(signals, select.POLLIN)
        self.poller.register(0, 0)

    def run(self) -> int:
        """Wait for the program's end; return its exit code."""
        while self.code is None:
            self._handle_events()
            self._reap_children()
            self._signal_if_due()
        return self.code

    def _handle_events(self) -> None:
        for descriptor, _ in self.poller.poll(int(self._compute_timeout_s() * 1000)):
            if descriptor == self.signals:
                with suppress(BlockingIOError):
                    if set(os.read(self.signals, 64)) & set(_END_SIGNALS):
                        self._schedule_end(0)
            else:
                self.poller.unregister(0)
                self._schedule_end(EXIT_GRACE_S)
        if os.getppid() != self.parent:
            self._schedule_end(0)

    def _compute_timeout_s(self) -> float:
        times = [at for at in (self.term_at, self.kill_at) if at is not None]
        return max(0.001, min([POLL_S, *(at - time.monotonic() for at in times)]))

    def _schedule_end(self, seconds: float) -> None:
        if self.kill_at is None:
            at = time.monotonic() + seconds
            self.term_at = at if self.term_at is None else min(at, self.term_at)

    def _signal_if_due(self) -> None:
        now = time.monotonic()
        if self.term_at is not None and now >= self.term_at:
            self.term_at, self.kill_at = None, now + TERM_S
            _signal_group(self.child, signal.SIGTERM)
        elif self.kill_at is not None and now >= self.kill_at:
            _signal_group(self.child, signal.SIGKILL)

    def _reap_children(self) -> None:
        """Collect ended children: the program and adopted orphans."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                if ended[0] == self.child:
                    self.code = os.waitstatus_to_exitcode(ended[1])


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _list_children() -> list[int]:
    """Return our children, including adopted orphans; empty on other systems than Linux."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as listing:  # noqa: PTH123 - pathlib costs every start
            return [int(child) for child in listing.read().split()]
    except OSError:
        return []


def _kill_remaining(group: int) -> None:
    """Kill the remaining processes: the program's group and adopted orphans."""
    _signal_group(group, signal.SIGKILL)
    while left := _list_children():
        for child in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)


def main(arguments: list[str]) -> int:
    """Run the program to its end; return its exit code."""
    parent, stdin, names, *command = arguments
    _call_prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)
    _call_prctl(_SET_CHILD_SUBREAPER, 1)
    signals = _open_signal_pipe()
    try:
        child = _start_program(stdin, names, command)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cannot start {command[0]}: {error}\n")
        return EXIT_NOT_STARTED
    _release_stdout()
    child.returncode = ProgramSupervisor(child.pid, int(parent), signals).run()
    _kill_remaining(child.pid)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
