"""A running MCP server: start with a deadline, health check, stop with its processes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import anyio
from fastmcp.client.transports import (
    ClientTransport,
    SSETransport,
    StdioTransport,
    StreamableHttpTransport,
)
from mcp import MCPError
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from pydantic_ai.mcp import MCPToolset

from ci_agent_eval.engine.declarations import MCPServer
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.secrets import find_server_secrets
from ci_agent_eval.engine.servers.processes import (
    StderrTail,
    build_child_environment,
    build_supervised_command,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor

PROBE_TIMEOUT_S = 5.0
"""Timeout of the ping of a server in doubt."""

_RETRY_S = 0.05
"""Interval of the checks of a starting server."""

_EXIT_S = 5.0
"""Longest wait for the end of a stopped server; its supervisor needs at most half of it."""

_HANDSHAKES = ("legacy", "auto")
"""`initialize` first, which every server supports; `server/discover` for one that refuses it.
In the other order, servers that accept nothing before `initialize` would close."""

_LOST_MESSAGE = re.compile(
    r"Connection closed$|SSE stream |Server returned an error response$|Request '.*' timed out$"
    r"|Session terminated$|Unexpected content type: |Redirect to "
    r"|server answered a request with 202 Accepted$"
)
"""Messages of the SDK's dispatcher and streamable HTTP client."""


@dataclass(frozen=True, slots=True, eq=False)
class ServerRequest:
    """A request of an episode to a server."""

    subject: str
    episode_id: str
    is_repeatable: bool
    """Whether it changes nothing at the server and can be repeated."""

    def __str__(self) -> str:
        """Return the subject with the episode."""
        return f"{self.subject} (episode {self.episode_id})"


@dataclass(slots=True, eq=False)
class RunningServer:
    """A connected server, with its process if we started it."""

    declared: MCPServer
    environ: Mapping[str, str] = field(repr=False)
    toolset: MCPToolset[Any] = field(init=False)
    tail: StderrTail | None = None
    process: Process | None = None
    broken: bool = False
    """Whether its connection is closed."""
    in_doubt: bool = False
    """Whether a call timed out and nothing was answered since."""
    has_served: bool = False
    """Whether it has answered a call."""
    open_requests: list[ServerRequest] = field(default_factory=list)
    """The open requests of all episodes, in order of start."""
    open_when_lost: tuple[ServerRequest, ...] = ()
    """The open requests when the connection was lost: one of them is the cause."""
    invalid_lines: int = 0
    """Lines on its stdout that were not messages of the protocol."""

    def __post_init__(self) -> None:
        if self.declared.command is not None:
            wait = self.declared.wait
            self.tail = StderrTail(wait.log if wait is not None else None)
        try:
            self.toolset = self._build_toolset()
        except ValueError as error:
            raise InputError(f"MCPServer.url: {error}") from error

    def is_alive(self) -> bool:
        """Return whether it seems to run, without sending a request."""
        return not self.broken and (self.tail is None or not self.tail.has_ended())

    async def ping(self) -> bool:
        """Ping the server; return whether it answered, even with an error."""
        try:
            async with asyncio.timeout(min(PROBE_TIMEOUT_S, self.declared.call_timeout_s)):
                await self.toolset.client.ping()
        except MCPError as error:
            self.in_doubt = is_connection_lost(error)
        except Exception:  # noqa: BLE001 - any error means no answer
            self.in_doubt = True
        else:
            self.in_doubt = False
        return not self.in_doubt

    async def start(self) -> None:
        """Start and connect. Raises ServerError with the last lines of stderr."""
        wait = self.declared.wait
        limit = (wait.timeout_s if wait is not None else None) or self.declared.startup_timeout_s
        try:
            async with asyncio.timeout(limit):
                await self._open_connection()
        except TimeoutError as error:
            await self.stop()
            raise self.build_error(f"was not ready within {limit:g} s") from error
        except InputError:
            await self.stop()
            raise
        except Exception as error:
            await self.wait_for_exit()
            await self.stop()
            raise self.build_error(f"did not start: {describe_cause(error)}") from error
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close the connection and end all processes. Never raises."""
        with anyio.CancelScope(shield=True):
            with suppress(Exception):
                await self.toolset.client.close()  # type: ignore[no-untyped-call]
            if self.process is not None:
                await end_process(self.process)
            await self.wait_for_exit()
            if self.tail is not None:
                self.tail.close()
        self.broken = True

    def was_lost_to_another(self, request: ServerRequest) -> bool:
        """Return whether the request may be repeated because another one killed the server.

        If all open requests are repeatable, each may be the cause, and none is repeated: one
        that crashes the server would be repeated forever.
        """
        return request.is_repeatable and not all(
            other.is_repeatable for other in self.open_when_lost
        )

    async def wait_for_exit(self) -> None:
        """Wait up to `_EXIT_S` for an ending process, to read the end of its stderr."""
        if self.tail is not None:
            self.tail.release()
            with suppress(TimeoutError):
                async with asyncio.timeout(_EXIT_S):
                    await self.tail.ended.wait()

    def build_error(self, problem: str) -> ServerError:
        """Build the error of a problem with this server, without its secrets."""
        parts = [f"The MCP server {self.declared.label} {problem}."]
        if self.invalid_lines:
            parts.append(
                f"It wrote {self.invalid_lines} line(s) to stdout that are no messages of the "
                "protocol; let it log to stderr."
            )
        if self.tail is not None:
            lines = self.tail.lines()
            parts.append("Its last lines on stderr:" if lines else "It wrote nothing to stderr.")
            parts.extend(f"  {line}" for line in lines)
        redactor = Redactor.of(find_server_secrets(self.declared))
        return ServerError(redactor.text("\n".join(parts)))

    async def _open_connection(self) -> None:
        server = self.declared
        if server.transport == "stdio":
            await self._shake_hands()
            self._tail.release()
        elif server.command is not None:
            await self._refuse_other_listener()
            await self._spawn([*server.command, *server.args])
            await self._wait_for_log()
            await self._run_unless_ended(self._connect_with_retries())
        else:
            await self._shake_hands()
        await self._wait_for_log()
        await self._run_unless_ended(self._wait_for_tools())

    async def _shake_hands(self) -> None:
        for mode in _HANDSHAKES:
            self.toolset.client.mode = mode
            try:
                await self.toolset.__aenter__()
            except MCPError as error:
                if error.error.code != UNSUPPORTED_PROTOCOL_VERSION or mode == _HANDSHAKES[-1]:
                    raise
            else:
                return

    async def _connect_with_retries(self) -> None:
        """Retry the connection until the server listens; there is no other signal of it."""
        while True:
            try:
                await self._shake_hands()
            except Exception:  # noqa: BLE001 - retried until the deadline
                await asyncio.sleep(_RETRY_S)
                self.toolset = self._build_toolset()
            else:
                return

    async def _wait_for_tools(self) -> None:
        wanted = set(self.declared.wait.tools) if self.declared.wait is not None else set()
        while True:
            offered = {tool.name for tool in await self.toolset.client.list_tools()}
            if wanted <= offered:
                return
            await asyncio.sleep(_RETRY_S)

    async def _wait_for_log(self) -> None:
        wait = self.declared.wait
        if wait is None or wait.log is None:
            return
        if self.tail is None:
            raise InputError("Wait.log: a server without a command has no stderr to wait for")
        await self._run_unless_ended(self.tail.seen.wait())

    async def _run_unless_ended(self, work: Awaitable[Any]) -> None:
        """Await the work. Raises ConnectionError if the process ends before."""
        work_task = asyncio.ensure_future(work)
        ended = asyncio.ensure_future(self.tail.ended.wait() if self.tail else _wait_forever())
        try:
            await asyncio.wait({work_task, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not work_task.done():
                raise ConnectionError("its process ended")
            work_task.result()
        finally:
            await cancel_tasks(work_task, ended)

    async def _refuse_other_listener(self) -> None:
        """Raise InputError if another process listens at the server's address."""
        address = urlsplit(self.declared.url or "")
        with suppress(OSError):
            _, writer = await asyncio.open_connection(address.hostname, address.port)
            writer.close()
            raise InputError(
                f"MCPServer.url: something listens at {self.declared.url} before the server is "
                "started; stop it, leave `command` out to use it, or write {port} for a free port"
            )

    async def _spawn(self, command: Sequence[str]) -> None:
        environment = build_child_environment(self.environ, self.declared.env)
        self.process = await asyncio.create_subprocess_exec(
            *build_supervised_command(command, list(environment), "null"),
            env=environment,
            cwd=self.declared.cwd,
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=self._tail.stream,
            start_new_session=True,
        )
        self._tail.release()

    @property
    def _tail(self) -> StderrTail:
        assert self.tail is not None  # noqa: S101 - every server with a command has one
        return self.tail

    def _build_toolset(self) -> MCPToolset[Any]:
        # All callers have their own timeouts; the library's only has to be longer.
        longest = self.declared.startup_timeout_s + self.declared.call_timeout_s + PROBE_TIMEOUT_S
        return MCPToolset(
            self._build_transport(),
            init_timeout=0,
            read_timeout=longest,
            message_handler=self._count_invalid_lines,
        )

    def _build_transport(self) -> ClientTransport:
        server = self.declared
        if server.transport == "stdio":
            return self._build_stdio_transport([*(server.command or ()), *server.args])
        if server.transport == "sse":
            return SSETransport(server.url or "", headers=dict(server.headers))
        return StreamableHttpTransport(server.url or "", headers=dict(server.headers))

    def _build_stdio_transport(self, command: Sequence[str]) -> StdioTransport:
        environment = build_child_environment(self.environ, self.declared.env)
        program, *arguments = build_supervised_command(command, list(environment), "inherit")
        return StdioTransport(
            program,
            arguments,
            env=environment,
            cwd=os.fspath(self.declared.cwd) if self.declared.cwd is not None else None,
            keep_alive=False,
            log_file=self._tail.stream,
        )

    async def _count_invalid_lines(self, message: object) -> None:
        if isinstance(message, Exception):
            self.invalid_lines += 1


def is_connection_lost(error: MCPError) -> bool:
    """Return whether the error means that the server will never answer.

    Our client never sends an invalid or unreadable request, so these codes mean a lost server.
    Servers use the SDK's other codes for their own errors, so the SDK's messages decide.
    """
    if error.error.code in {INVALID_REQUEST, PARSE_ERROR}:
        return True
    return _LOST_MESSAGE.match(error.error.message) is not None


def may_be_refusal(error: MCPError) -> bool:
    """Return whether a running server may have sent the error that `is_connection_lost` knows.

    It does so after requesting sampling, elicitation or roots, which no test answers: it
    forwards the client's refusal. A server that lost the session uses that code too.
    """
    return error.error.code == INVALID_REQUEST and _LOST_MESSAGE.match(error.error.message) is None


async def end_process(process: Process) -> None:
    """End a supervisor and wait until it has ended all of its processes."""
    if process.returncode is None:
        # Not `terminate`: it may collect the exit code before asyncio's own watcher does.
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
    await process.wait()


async def cancel_tasks(*tasks: asyncio.Future[Any]) -> None:
    """Cancel the tasks and wait until they have stopped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _wait_forever() -> None:
    await asyncio.Event().wait()


def describe_cause(error: BaseException) -> str:
    """Return the message of an error, the first one of an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
