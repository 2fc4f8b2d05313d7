"""Supervised commands: no shell, no input, a timeout and an output limit."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from ci_agent_eval.engine.servers.processes import build_supervised_command

_READ_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class StreamOutput:
    """The output of a command on one stream."""

    text: str
    size: int
    """Total bytes written."""
    kept: int
    """Bytes of the beginning that `text` holds."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Exit code and output of a command."""

    code: int
    stdout: StreamOutput
    stderr: StreamOutput
    timed_out: bool


async def run_command(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | Path | None,
    timeout_s: float,
    cap_bytes: int,
) -> CommandResult:
    """Run a command to its end or timeout, then kill all of its processes.

    The output streams are read to their ends and kept up to `cap_bytes` each. Raises OSError
    and ValueError if the command cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *build_supervised_command(command, list(env), "null"),
        env=dict(env),
        cwd=cwd,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    reading = asyncio.gather(
        _read_stream(process.stdout, cap_bytes),
        _read_stream(process.stderr, cap_bytes),
        process.wait(),
    )
    try:
        done, _ = await asyncio.wait({reading}, timeout=timeout_s)
    finally:
        with anyio.CancelScope(shield=True):
            await _end_command(process, reading)
    stdout, stderr, code = reading.result()
    return CommandResult(code, stdout, stderr, timed_out=not done)


async def _end_command(process: Process, reading: asyncio.Future[Any]) -> None:
    """End a running command while its output is read, or its end would not be noticed."""
    if not reading.done():
        if process.returncode is None:
            # Not `terminate`: it may collect the exit code before asyncio's own watcher does.
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
        await asyncio.wait({reading})


async def _read_stream(stream: asyncio.StreamReader | None, cap_bytes: int) -> StreamOutput:
    assert stream is not None  # noqa: S101 - both are opened as pipes
    kept = bytearray()
    size = 0
    while data := await stream.read(_READ_BYTES):
        size += len(data)
        kept += data[: cap_bytes - len(kept)]
    return StreamOutput(kept.decode("utf-8", "replace"), size, len(kept))
