"""A program as an agent: the prompt on its stdin, JSON lines on its stdout."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import anyio
from pydantic import Field, PositiveInt, SkipValidation

from ci_agent_eval.contract.fields import TextList, TextMapping, validate_fields
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.stops import COMPLETED, Stop
from ci_agent_eval.engine.adapters.protocol import AgentTask
from ci_agent_eval.engine.adapters.transcript import Transcript
from ci_agent_eval.engine.infrastructure_errors import ModelError
from ci_agent_eval.engine.servers.processes import start_process, terminate_process
from ci_agent_eval.model_traffic.gateway import serve_processes

CAP_BYTES = 4_194_304
"""Output limit of a program; a long transcript has a tenth of it."""

TAIL_BYTES = 4_096
"""Bytes from the end of stderr in a message."""

_READ_BYTES = 65_536
_PASSED_VARIABLES = ("PATH", "HOME", "LANG")


@dataclass(frozen=True)
class CommandAgent:
    """A program that reads a prompt and writes its actions (`adapters/transcript.py`).

    It is started for each prompt, without a shell; all of its processes end with the run. Its
    environment is PATH, HOME, LANG, `env`, and the base-URL variables that lead its model calls
    through the gateway; a base URL in `env` is the provider's address.
    """

    command: Annotated[TextList, Field(min_length=1), "a list of at least one text"]
    name: str | None = None
    model: str | None = None
    env: TextMapping = field(default_factory=dict, repr=False)
    cwd: str | Path | None = None
    stdin: Literal["text", "json"] = "text"
    """The prompt alone, or `{"prompt": ..., "messages": [...]}` with the history."""
    stdout: Literal["json", "text"] = "json"
    """A transcript of JSON lines, or the text of the answer alone."""
    cap_bytes: PositiveInt = CAP_BYTES
    environ: SkipValidation[Mapping[str, str]] = field(
        default_factory=lambda: os.environ, repr=False
    )

    def __post_init__(self) -> None:
        validate_fields(self)

    @property
    def label(self) -> str:
        """The agent's name, or the program's."""
        return self.name or Path(self.command[0]).name

    async def answer(self, work: AgentTask) -> None:
        """Run the program and record each line and model call as it arrives."""
        names = [name for name in _PASSED_VARIABLES if name in self.environ]
        environ = {**{name: self.environ[name] for name in names}, **self.env}
        with serve_processes(environ) as address:
            added = {} if address is None else address.build_environment()
            await self._run_program(work, {**environ, **added})

    async def _run_program(self, work: AgentTask, environ: Mapping[str, str]) -> None:
        process = await self._start_program(environ)
        stderr = asyncio.ensure_future(_read_tail(process.stderr))
        writing = asyncio.ensure_future(_write_input(process, self._build_input(work)))
        try:
            transcript = await self._read_transcript(process, work)
            code = await process.wait()
            await writing
        finally:
            writing.cancel()
            with anyio.CancelScope(shield=True):
                tail = await _end_program(process, stderr)
        if code:
            raise ModelError(f"{self.label} ended with exit code {code}{_describe_stderr(tail)}")
        work.stop = transcript.stop
        if not transcript.turns and transcript.stop == COMPLETED:
            work.stop = Stop("empty_answer", f"{self.label} gave no answer{_describe_stderr(tail)}")

    async def _start_program(self, environ: Mapping[str, str]) -> Process:
        try:
            return await start_process(
                self.command, environ, self.cwd, stdin=PIPE, stdout=PIPE, stderr=PIPE
            )
        except (OSError, ValueError) as error:
            raise ModelError(
                f"{self.label} could not be started: {error}; look at its command and cwd"
            ) from error

    def _build_input(self, work: AgentTask) -> bytes:
        if self.stdin == "text":
            return work.prompt.encode()
        payload = {"prompt": work.prompt, "messages": to_jsonable(list(work.history))}
        return json.dumps(payload).encode() + b"\n"

    async def _read_transcript(self, process: Process, work: AgentTask) -> Transcript:
        transcript = Transcript()
        async for number, line in _read_lines(process.stdout, self.cap_bytes, self.label):
            if self.stdout == "text":
                text = line if number == 1 else f"\n{line}"
                line = json.dumps({"type": "text", "text": text})  # noqa: PLW2901
            try:
                transcript.add_line(line, work.measure_elapsed_ms())
            except ValueError as error:
                raise ModelError(
                    f"{self.label} wrote a line {number} that cannot be read: {error}: "
                    f"{line[:200]!r}"
                ) from error
            work.turns = tuple(transcript.turns)
        return transcript


async def _read_lines(
    stream: asyncio.StreamReader | None, cap_bytes: int, label: str
) -> AsyncIterator[tuple[int, str]]:
    """Yield each line with its number. Raises ModelError above `cap_bytes`."""
    assert stream is not None  # noqa: S101 - opened as a pipe
    number, size, rest = 0, 0, b""
    while data := await stream.read(_READ_BYTES):
        size += len(data)
        if size > cap_bytes:
            raise ModelError(f"{label} wrote more than {cap_bytes} bytes and was stopped")
        *complete, rest = (rest + data).split(b"\n")
        for line in complete:
            number += 1
            yield number, line.decode("utf-8", "replace")
    if rest:
        yield number + 1, rest.decode("utf-8", "replace")


async def _write_input(process: Process, data: bytes) -> None:
    assert process.stdin is not None  # noqa: S101 - opened as a pipe
    with suppress(BrokenPipeError, ConnectionResetError):  # it may ignore its prompt
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _read_tail(stream: asyncio.StreamReader | None) -> str:
    """Read a stream to its end; return the last bytes."""
    assert stream is not None  # noqa: S101 - opened as a pipe
    kept = b""
    while data := await stream.read(_READ_BYTES):
        kept = (kept + data)[-TAIL_BYTES:]
    return kept.decode("utf-8", "replace").strip()


async def _end_program(process: Process, stderr: asyncio.Future[str]) -> str:
    """End the program with all of its processes; return the end of its stderr.

    Its stdout is read meanwhile, or asyncio does not notice the end.
    """
    terminate_process(process)
    await asyncio.gather(_read_tail(process.stdout), process.wait())
    return await stderr


def _describe_stderr(tail: str) -> str:
    return f"; its stderr ends with: {tail}" if tail else "; its stderr is empty"
