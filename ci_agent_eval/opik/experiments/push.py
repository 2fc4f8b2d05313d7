"""Sending stored experiments to Opik within a bounded time, without losing any."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ci_agent_eval.opik.experiments.opik_process import PROBLEM, SENT
from ci_agent_eval.opik.experiments.opik_settings import (
    OpikServer,
    find_connection_problem,
    find_server,
    is_installed,
)

SINK = "opik"
IMPORT_S = 30.0
"""Seconds allowed for importing Opik on a slow machine."""

STALL_S = 6.0
"""Seconds allowed for the server's next step."""


@dataclass(frozen=True, slots=True)
class PushResult:
    """The ids that were sent, and the problem that stopped the rest."""

    sent: tuple[str, ...] = ()
    problem: str | None = None


def find_usable_server(environ: Mapping[str, str], file: Mapping[str, str]) -> OpikServer | None:
    """Return Opik's server, or None if the package is not installed or not configured."""
    return find_server(environ, file) if is_installed() else None


def push_to_opik(
    store: Path, uids: Sequence[str], server: OpikServer, environ: Mapping[str, str]
) -> PushResult:
    """Send experiments to Opik in a separate process, which is killed if the server hangs.

    An unreachable server costs the time of one ping.
    """
    if not uids:
        return PushResult()
    if (problem := find_connection_problem(server)) is not None:
        return PushResult(problem=f"Opik at {server.host} does not answer ({problem})")
    command = [
        sys.executable,
        "-m",
        "ci_agent_eval.opik.experiments.opik_process",
        str(store),
        *uids,
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(environ),
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        return _follow_process(process, server)
    finally:
        _kill_process(process)


def _follow_process(process: subprocess.Popen[str], server: OpikServer) -> PushResult:
    """Read the process's output until it ends, or no line arrives in time."""
    lines: queue.Queue[str | None] = queue.Queue()
    assert process.stdout is not None  # noqa: S101 - it was asked for
    threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True).start()
    sent: list[str] = []
    wait_s = IMPORT_S
    while True:
        try:
            line = lines.get(timeout=wait_s)
        except queue.Empty:
            return PushResult(tuple(sent), f"Opik at {server.host} stopped answering")
        if line is None:
            return PushResult(tuple(sent))
        if line.startswith(PROBLEM):
            return PushResult(tuple(sent), f"Opik at {server.host}: {line.removeprefix(PROBLEM)}")
        if line.startswith(SENT):
            sent.append(line.removeprefix(SENT))
        wait_s = STALL_S


def _read_lines(file: IO[str], lines: queue.Queue[str | None]) -> None:
    with contextlib.suppress(ValueError):  # closed concurrently: the process has been killed
        for line in file:
            lines.put(line.rstrip("\n"))
    lines.put(None)


def _kill_process(process: subprocess.Popen[str]) -> None:
    """Kill the process and its children; it has its own process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
