"""Processes of tool servers: environment, supervisor and the tail of stderr."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PASSED_VARIABLES = ("PATH", "HOME", "LANG")
"""Inherited environment variables, enough to start; the test names all others."""

TAIL_CHARACTERS = 8_192
"""Characters kept from the end of a server's stderr."""

TAIL_LINES = 20
"""Last lines of stderr in a message."""

_READ_BYTES = 65_536


def build_child_environment(environ: Mapping[str, str], named: Mapping[str, str]) -> dict[str, str]:
    """Build the environment of a server from the named and the inherited variables.

    The current virtual environment counts as activated, so that `python` is the interpreter
    of the tests.
    """
    base = {name: environ[name] for name in PASSED_VARIABLES if name in environ}
    path = base.get("PATH", os.defpath)
    if sys.prefix != sys.base_prefix:
        path = f"{Path(sys.executable).parent}{os.pathsep}{path}"
    return {**base, "PATH": path, **named}


def build_supervised_command(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command that runs `command` supervised, with only these variables."""
    script = [sys.executable, "-I", "-S", __file__]
    return [*script, str(os.getpid()), ",".join(environment), *command]


async def start_process(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: str | Path | None,
    *,
    stdin: int = DEVNULL,
    stdout: int,
    stderr: Any,
) -> Process:
    """Start a supervised process. Raises OSError and ValueError."""
    return await asyncio.create_subprocess_exec(
        *build_supervised_command(command, environment),
        env=dict(environment),
        cwd=cwd,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def terminate_process(process: Process) -> None:
    """Tell a supervisor to end all of its processes, and itself."""
    if process.returncode is None:
        # Not `terminate`: it may collect the exit code before asyncio's own watcher does.
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)


def find_free_port() -> int:
    """Return an unused port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class StderrTail:
    """The last lines of a process's stderr, which also show the end of the process.

    `stream` is for the process; close it here after the start. Then `ended` is set at the end of
    the last process that holds it: the supervisor outlives all others.
    """

    def __init__(self, awaited_pattern: str | None) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        self.stream = os.fdopen(writer, "w")
        self.ended = asyncio.Event()
        self.has_matched = awaited_pattern is None
        self._pattern = re.compile(awaited_pattern or "")
        self._text = ""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._reader, self._read)

    def list_lines(self) -> list[str]:
        """Return the last lines so far."""
        self._read()
        return [line for line in self._text.splitlines() if line.strip()][-TAIL_LINES:]

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        self._read()
        return self.ended.is_set()

    def close(self) -> None:
        """Stop reading."""
        self.stream.close()
        if not self.ended.is_set():
            self.ended.set()
            self._loop.remove_reader(self._reader)
            os.close(self._reader)

    def _read(self) -> None:
        while not self.ended.is_set():
            try:
                data = os.read(self._reader, _READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                self.close()
                return
            line_start = self._text.rfind("\n") + 1
            self._text += data.decode("utf-8", "replace")
            lines = self._text[line_start:].splitlines()
            self.has_matched = self.has_matched or any(map(self._pattern.search, lines))
            self._text = self._text[-TAIL_CHARACTERS:]


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
