"""A command-line program as one tool, `<prefix>_execute(args)`."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from ci_agent_eval.engine.declarations import CLIServer
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.servers.processes import (
    build_child_environment,
    start_process,
    terminate_process,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.gateway import serve_processes

MAX_HELP_CHARACTERS = 4_000
"""Limit of the help text in the tool's description, which is part of every request."""

_RULES = (
    "`args` is what follows the program's name on a command line. Quotes and backslashes work as "
    "in a shell, but there is no shell: no pipes, redirections, variables or wildcards, and one "
    "command a call."
)


_READ_BYTES = 65_536


class CommandResult(NamedTuple):
    """Exit code and output of a command."""

    code: int | None
    """None: it was killed at its timeout."""
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class CLIProgram:
    """A declared program with its command and environment."""

    declared: CLIServer
    command: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)

    async def execute(self, args: str) -> str:
        """Run the program with a model's arguments; return its output and exit code.

        Raises ModelRetry for arguments that are invalid or not allowed, ToolFailed with the
        same text if the program fails or is killed, and ServerError if it cannot be started.
        """
        try:
            words = split_arguments(args)
            check_subcommand(words, self.declared.allowed_subcommands)
        except InputError as error:
            raise ModelRetry(str(error)) from error
        with serve_processes(self.env) as address:
            added = {} if address is None else address.build_environment()
            result = await self.run(words, {**self.env, **added})
        text = self._render(result)
        if result.code != 0:
            raise ToolFailed(text)
        return text

    async def run(self, words: Sequence[str], environ: Mapping[str, str]) -> CommandResult:
        """Run the program to its end or timeout, then kill all of its processes.

        The output streams are read to their ends and cut at the declared size. Raises ServerError
        if the program does not start.
        """
        declared = self.declared
        try:
            process = await start_process(
                [*self.command, *words], environ, declared.cwd, stdout=PIPE, stderr=PIPE
            )
        except (OSError, ValueError) as error:
            raise ServerError(
                f"The program of CLIServer {declared.name} could not be started: {error}. "
                "Look at its command and cwd."
            ) from error
        reading = asyncio.gather(
            _read_stream(process.stdout, declared.output_cap_bytes),
            _read_stream(process.stderr, declared.output_cap_bytes),
            process.wait(),
        )
        try:
            in_time, _ = await asyncio.wait({reading}, timeout=declared.timeout)
        finally:
            with anyio.CancelScope(shield=True):
                terminate_process(process)
                await asyncio.wait({reading})
        stdout, stderr, code = reading.result()
        return CommandResult(code if in_time else None, stdout, stderr)

    def _render(self, result: CommandResult) -> str:
        """Render a result for the model: stdout, stderr and exit code."""
        parts = [result.stdout, "[stderr]" if result.stderr else "", result.stderr]
        if result.code is None:
            parts.append(f"[killed: it had not ended after {self.declared.timeout:g} s]")
        else:
            parts.append(f"[exit code {result.code}]")
        return "\n".join(filter(None, parts))


async def build_cli_toolset(server: CLIServer, environ: Mapping[str, str]) -> AbstractToolset[Any]:
    """Build the toolset with the program's tool.

    Reads the program's help once if the declaration requests it. Raises ServerError if the
    program does not exist.
    """
    env = build_child_environment(environ, server.env)
    program = CLIProgram(server, _find_command(server, env["PATH"]), env)
    text = await _read_help(program) if server.discover_help else None
    toolset: FunctionToolset[Any] = FunctionToolset()
    toolset.add_function(
        program.execute,
        takes_ctx=False,
        name=server.tool_name,
        description=render_tool_description(server, text),
    )
    return toolset


def check_subcommand(words: Sequence[str], allowed: Sequence[str] | None) -> None:
    """Raise InputError unless the words begin with an allowed subcommand (`remote show`).

    Options before the subcommand are refused as well: they can change its meaning.
    """
    if allowed is None or any(_begins_with(words, entry.split()) for entry in allowed):
        return
    allowed_names = ", ".join(allowed) or "none"
    first_word = shlex.quote(words[0]) if words else "nothing"
    raise InputError(
        f"args begins with {first_word}, which is not allowed: nothing was run. It has to begin "
        f"with an allowed subcommand: {allowed_names}."
    )


def render_tool_description(server: CLIServer, text: str | None) -> str:
    """Render the tool's description; `text` is the program's help."""
    parts = [server.description or f"Runs `{server.command}`.", _RULES]
    if server.allowed_subcommands is not None:
        allowed_names = ", ".join(server.allowed_subcommands) or "none"
        parts.append(f"Allowed subcommands: {allowed_names}.")
    if text:
        parts.append(f"Its help (`{server.help_flag}`):\n{text}")
    return "\n\n".join(parts)


def _begins_with(words: Sequence[str], entry: Sequence[str]) -> bool:
    return bool(entry) and list(words[: len(entry)]) == list(entry)


async def _read_stream(stream: asyncio.StreamReader | None, cap_bytes: int) -> str:
    """Read a stream to its end; return its beginning, and a line that says so if it is cut."""
    assert stream is not None  # noqa: S101 - both are opened as pipes
    output = bytearray()
    size = 0
    while data := await stream.read(_READ_BYTES):
        size += len(data)
        output += data[: cap_bytes - len(output)]
    text = output.decode("utf-8", "replace").rstrip("\n")
    if len(output) < size:
        text += f"\n[cut: the first {len(output)} of {size} bytes]"
    return text


async def _read_help(program: CLIProgram) -> str:
    server = program.declared
    result = await program.run(shlex.split(server.help_flag), program.env)
    text = (result.stdout or result.stderr).strip()
    if result.code is None or not text:
        raise ServerError(
            f"CLIServer {server.name}: `{server.command} {server.help_flag}` gave no help. "
            "Set help_flag to what prints it, or discover_help=False."
        )
    if len(text) <= MAX_HELP_CHARACTERS:
        return text
    cut = f"[cut: the first {MAX_HELP_CHARACTERS} of {len(text)} characters]"
    return f"{text[:MAX_HELP_CHARACTERS]}\n{cut}"


def _find_command(server: CLIServer, path: str) -> tuple[str, ...]:
    """Return the words of the command. Raises ServerError if the program does not exist.

    A path may contain spaces.
    """
    for words in ((server.command,), tuple(shlex.split(server.command))):
        program = words[0]
        resolved = str(Path(server.cwd or ".", program)) if "/" in program else program
        if shutil.which(resolved, path=path):
            return words
    raise ServerError(
        f"CLIServer {server.name}: there is no program {server.command!r}. Install it, or give "
        "its path in `command`."
    )


MAX_CHARACTERS = 100_000
"""Linux refuses an argument of 128 KiB, and shlex takes quadratic time."""

_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
_OPERATOR = re.compile(r"[;|&<>\n]")


def split_arguments(text: str) -> list[str]:
    """Split `text` into words.

    Raises InputError with a message for the model on unbalanced quotes and on operators of a
    shell, which have no effect here and must not become arguments.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"args has {len(text)} characters; at most {MAX_CHARACTERS} are taken.")
    if "\0" in text:
        raise InputError("args holds a NUL character, which no argument can.")
    text = text.strip("\n")
    if operator := _OPERATOR.search(_QUOTED.sub("", text)):
        raise InputError(
            f"{operator[0]!r} in args is an operator of a shell, and there is no shell here: "
            "nothing was run. Call the tool once for each command; put single quotes around text "
            "that is meant as it stands."
        )
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"args cannot be split into arguments: {str(error).lower()}.") from error
