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
    Target,
    is_installed,
    target_of,
    why_unreachable,
)

SINK = "opik"
IMPORT_S = 30.0
"""How long Opik may take to be imported, on a slow machine."""

STALL_S = 6.0
"""How long the server may let us wait for the next step."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """What arrived, and what kept the rest from it."""

    sent: tuple[str, ...] = ()
    problem: str | None = None


def server_of(environ: Mapping[str, str], file: Mapping[str, str]) -> Target | None:
    """Return Opik's server, where the package is installed and configured."""
    return target_of(environ, file) if is_installed() else None


def push(store: Path, uids: Sequence[str], target: Target, environ: Mapping[str, str]) -> Pushed:
    """Send experiments to Opik, in a process that is ended where the server hangs.

    A server that does not answer costs the time of one ping.
    """
    if not uids:
        return Pushed()
    if (why := why_unreachable(target)) is not None:
        return Pushed(problem=f"Opik at {target.host} does not answer ({why})")
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
        return _followed(process, target)
    finally:
        _end(process)


def _followed(process: subprocess.Popen[str], target: Target) -> Pushed:
    """Read the process's lines until it ends, or none comes in time."""
    lines: queue.Queue[str | None] = queue.Queue()
    assert process.stdout is not None  # noqa: S101 - it was asked for
    threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    sent: list[str] = []
    wait_s = IMPORT_S
    while True:
        try:
            line = lines.get(timeout=wait_s)
        except queue.Empty:
            return Pushed(tuple(sent), f"Opik at {target.host} stopped answering")
        if line is None:
            return Pushed(tuple(sent))
        if line.startswith(PROBLEM):
            return Pushed(tuple(sent), f"Opik at {target.host}: {line.removeprefix(PROBLEM)}")
        if line.startswith(SENT):
            sent.append(line.removeprefix(SENT))
        wait_s = STALL_S


def _read(file: IO[str], lines: queue.Queue[str | None]) -> None:
    with contextlib.suppress(ValueError):  # it was closed under us: the process has been ended
        for line in file:
            lines.put(line.rstrip("\n"))
    lines.put(None)


def _end(process: subprocess.Popen[str]) -> None:
    """End the process with whatever it started; it has its own group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
