"""Sending what the store holds to Opik, within a bounded time, and never losing any of it."""

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
"""How long Opik may take to be imported, on a slow machine."""

STALL_S = 6.0
"""How long the server may let us wait for the next step."""


@dataclass(frozen=True, slots=True)
class PushResult:
    """What arrived, and what kept the rest from it."""

    sent: tuple[str, ...] = ()
    problem: str | None = None


def find_usable_server(environ: Mapping[str, str], file: Mapping[str, str]) -> OpikServer | None:
    """Return Opik's server, where the package is installed and configured."""
    return find_server(environ, file) if is_installed() else None


def push_to_opik(
    store: Path, uids: Sequence[str], target: OpikServer, environ: Mapping[str, str]
) -> PushResult:
    """Send experiments to Opik, in a process that is ended where the server hangs.

    A server that does not answer costs the time of one ping.
    """
    if not uids:
        return PushResult()
    if (why := find_connection_problem(target)) is not None:
        return PushResult(problem=f"Opik at {target.host} does not answer ({why})")
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
        return _follow_process(process, target)
    finally:
        _kill_process(process)


def _follow_process(process: subprocess.Popen[str], target: OpikServer) -> PushResult:
    """Read the process's lines until it ends, or none comes in time."""
    lines: queue.Queue[str | None] = queue.Queue()
    assert process.stdout is not None  # noqa: S101 - it was asked for
    threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True).start()
    sent: list[str] = []
    wait_s = IMPORT_S
    while True:
        try:
            line = lines.get(timeout=wait_s)
        except queue.Empty:
            return PushResult(tuple(sent), f"Opik at {target.host} stopped answering")
        if line is None:
            return PushResult(tuple(sent))
        if line.startswith(PROBLEM):
            return PushResult(tuple(sent), f"Opik at {target.host}: {line.removeprefix(PROBLEM)}")
        if line.startswith(SENT):
            sent.append(line.removeprefix(SENT))
        wait_s = STALL_S


def _read_lines(file: IO[str], lines: queue.Queue[str | None]) -> None:
    with contextlib.suppress(ValueError):  # it was closed under us: the process has been ended
        for line in file:
            lines.put(line.rstrip("\n"))
    lines.put(None)


def _kill_process(process: subprocess.Popen[str]) -> None:
    """End the process with whatever it started; it has its own group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
