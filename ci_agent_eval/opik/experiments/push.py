"""Sending an experiment to Opik within a bounded time."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import IO

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.experiment import Experiment
from ci_agent_eval.opik.experiments.opik_process import PROBLEM, SENT
from ci_agent_eval.opik.experiments.opik_settings import (
    OpikServer,
    find_connection_problem,
    find_server,
    is_installed,
)

IMPORT_S = 30.0
"""Seconds allowed for importing Opik on a slow machine."""

STALL_S = 6.0
"""Seconds allowed for the server's next step."""

_COMMAND = [sys.executable, "-m", "ci_agent_eval.opik.experiments.opik_process"]


def find_usable_server(environ: Mapping[str, str], file: Mapping[str, str]) -> OpikServer | None:
    """Return Opik's server, or None if the package is not installed or not configured."""
    return find_server(environ, file) if is_installed() else None


def send_to_opik(
    experiment: Experiment, server: OpikServer, environ: Mapping[str, str]
) -> str | None:
    """Send an experiment in a separate process; return the problem if not all of it arrived.

    The process is killed if the server hangs. An unreachable server costs the time of one ping.
    """
    if (problem := find_connection_problem(server)) is not None:
        return f"Opik at {server.host} does not answer ({problem})"
    process = subprocess.Popen(
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(environ),
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        return _follow_process(process, server, canonical_json(experiment))
    finally:
        _kill_process(process)


def _follow_process(
    process: subprocess.Popen[str], server: OpikServer, experiment: str
) -> str | None:
    """Read the process's output until it ends, or no line arrives in time."""
    lines: queue.Queue[str | None] = queue.Queue()
    assert process.stdin is not None  # noqa: S101 - it was asked for
    assert process.stdout is not None  # noqa: S101 - as above
    threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True).start()
    with contextlib.suppress(BrokenPipeError), process.stdin:  # the process says why it ended
        process.stdin.write(experiment)
    wait_s = IMPORT_S
    while True:
        try:
            line = lines.get(timeout=wait_s)
        except queue.Empty:
            return f"Opik at {server.host} stopped answering"
        if line is None:
            return f"Opik at {server.host}: the process that sends ended early"
        if line.startswith(PROBLEM):
            return f"Opik at {server.host}: {line.removeprefix(PROBLEM)}"
        if line == SENT:
            return None
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
