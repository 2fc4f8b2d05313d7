"""A command-line program as one tool, `<prefix>_execute(args)`."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from ci_agent_eval.engine.adapters.gateway import serve_processes
from ci_agent_eval.engine.declarations import CLIServer
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.servers.arguments import split_arguments
from ci_agent_eval.engine.servers.commands import CommandResult, StreamOutput, run_command
from ci_agent_eval.engine.servers.processes import build_child_environment
from ci_agent_eval.errors import InputError

MAX_HELP_CHARACTERS = 4_000
"""Limit of the help text in the tool's description, which is part of every request."""

_RULES = (
    "`args` is what follows the program's name on a command line. Quotes and backslashes work as "
    "in a shell, but there is no shell: no pipes, redirections, variables or wildcards, and one "
    "command a call."
)


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
        text = render_command_result(result, self.declared.timeout)
        if result.timed_out or result.code:
            raise ToolFailed(text)
        return text

    async def run(self, words: Sequence[str], environ: Mapping[str, str]) -> CommandResult:
        """Run the program with these arguments. Raises ServerError if it does not start."""
        declared = self.declared
        try:
            return await run_command(
                [*self.command, *words],
                env=environ,
                cwd=declared.cwd,
                timeout_s=declared.timeout,
                cap_bytes=declared.output_cap_bytes,
            )
        except (OSError, ValueError) as error:
            raise ServerError(
                f"The program of CLIServer {declared.name} could not be started: {error}. "
                "Look at its command and cwd."
            ) from error


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


def render_command_result(result: CommandResult, timeout_s: float) -> str:
    """Render the result for the model: stdout, stderr, truncation and exit code."""
    parts = [*_render_stream("", result.stdout), *_render_stream("stderr", result.stderr)]
    if result.timed_out:
        parts.append(f"[killed: it had not ended after {timeout_s:g} s]")
    else:
        parts.append(f"[exit code {result.code}]")
    return "\n".join(parts)


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


def _render_stream(name: str, output: StreamOutput) -> list[str]:
    text = output.text.rstrip("\n")
    lines = [f"[{name}]"] if name and text else []
    lines += [text] if text else []
    if output.kept < output.size:
        lines.append(f"[cut: the first {output.kept} of {output.size} bytes]")
    return lines


async def _read_help(program: CLIProgram) -> str:
    server = program.declared
    result = await program.run(shlex.split(server.help_flag), program.env)
    text = (result.stdout.text or result.stderr.text).strip()
    if result.timed_out or not text:
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
        if shutil.which(_resolve_program(server.cwd, words[0]), path=path):
            return words
    raise ServerError(
        f"CLIServer {server.name}: there is no program {server.command!r}. Install it, or give "
        "its path in `command`."
    )


def _resolve_program(cwd: str | Path | None, program: str) -> str:
    return str(Path(cwd or ".", program)) if "/" in program else program
