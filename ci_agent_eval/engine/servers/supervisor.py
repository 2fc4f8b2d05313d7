"""Supervise a child process: end it, and what it started, when the parent dies.

Run as a script, by its path, with only the standard library:

    supervisor.py PARENT_PID NAME,NAME,... PROGRAM ARGUMENT...

The program gets this process's standard streams and the named environment variables. It is ended
on SIGTERM, SIGINT or SIGHUP, and when the process `PARENT_PID` is gone, even by SIGKILL. What it
has started ends with it; the MCP SDK's own termination does not reach processes that left the
group. The exit code is the program's, 128 + n after signal n, or 127 if it could not be started.
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

TERM_S = 1.0
"""Seconds between SIGTERM and SIGKILL."""

POLL_S = 0.5
"""Interval of the check for the parent."""

EXIT_NOT_STARTED = 127

_SET_CHILD_SUBREAPER = 36
_END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _adopt_orphans() -> None:
    """Become the parent of the program's orphans, on Linux."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _open_signal_pipe() -> int:
    """Return a descriptor that receives the number of each handled signal."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (*_END_SIGNALS, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reader


def _wait_for_end(child: subprocess.Popen[bytes], parent: int, signals: int) -> None:
    """Wait for the program's end, and end it if the parent is gone or a signal asks for it."""
    kill_at = None
    while child.poll() is None:
        wait_s = POLL_S if kill_at is None else kill_at - time.monotonic()
        select.select([signals], [], [], min(POLL_S, max(0.0, wait_s)))
        numbers = b""
        with suppress(BlockingIOError):
            numbers = os.read(signals, 64)
        if kill_at is None and (set(numbers) & set(_END_SIGNALS) or os.getppid() != parent):
            kill_at = time.monotonic() + TERM_S
            _signal_group(child.pid, signal.SIGTERM)
        elif kill_at is not None and time.monotonic() >= kill_at:
            kill_at = float("inf")
            _signal_group(child.pid, signal.SIGKILL)


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
    while children := _list_children():
        for child in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)


def main(arguments: list[str]) -> int:
    """Run the program to its end; return its exit code."""
    parent, names, *command = arguments
    _adopt_orphans()
    signals = _open_signal_pipe()
    environment = {name: os.environ[name] for name in names.split(",") if name in os.environ}
    try:
        child = subprocess.Popen(command, env=environment, process_group=0)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cannot start {command[0]}: {error}\n")
        return EXIT_NOT_STARTED
    _wait_for_end(child, int(parent), signals)
    _kill_remaining(child.pid)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
