"""Run one command on a leash: no shell, no input, a deadline, and so much output and no more."""

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
    """What a command wrote to one of its streams."""

    text: str
    size: int
    """Bytes written in all."""
    kept: int
    """Bytes of them in `text`, from the beginning."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended."""

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
    """Run a command to its end, or until its time is up; nothing of it is left afterwards.

    The output streams are read to their ends and kept up to `cap_bytes` each. Raises OSError
    and ValueError where it cannot be started at all.
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
    """End what still runs. Its output has to be read on meanwhile, or its end is not seen."""
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
