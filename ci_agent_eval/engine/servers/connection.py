"""A connection to an MCP server, and its tools in an episode."""

from __future__ import annotations

import asyncio
import inspect
import os
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

import anyio
from fastmcp.client.transports import (
    ClientTransport,
    SSETransport,
    StdioTransport,
    StreamableHttpTransport,
)
from mcp import MCPError
from mcp.types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION
from pydantic_ai import RunContext
from pydantic_ai.exceptions import AgentRunError, ModelRetry, ToolFailed, UserError
from pydantic_ai.mcp import MCPError as RefusedRequest
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from ci_agent_eval.engine.declarations import MCPServer, Wait, find_server_secrets
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.servers.processes import (
    StderrTail,
    build_child_environment,
    build_supervised_command,
    find_free_port,
    start_process,
    terminate_process,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor

PORT = "{port}"
"""Placeholder in url, args and env for a port that is free at the start."""

PROBE_TIMEOUT_S = 5.0
"""Timeout of the ping of a server in doubt."""

_POLL_S = 0.05
"""Interval of the checks of a starting server."""

_EXIT_S = 5.0
"""Longest wait for the end of a stopped server; its supervisor needs at most half of it."""

_HANDSHAKES = ("legacy", "auto")
"""`initialize` first, which every server supports; `server/discover` for one that refuses it.
In the other order, servers that accept nothing before `initialize` would close."""

_REFUSALS = (ModelRetry, ToolFailed, UserError, AgentRunError, RefusedRequest)
"""PydanticAI's exceptions for an error that the server answers."""

_Answer = TypeVar("_Answer")


@dataclass(slots=True, eq=False)
class ServerConnection:
    """One connection to a server, with its process if we start it."""

    declared: MCPServer
    environ: Mapping[str, str] = field(repr=False)
    toolset: MCPToolset[Any] = field(init=False)
    is_lost: bool = field(default=False, init=False)
    _stderr: StderrTail | None = field(default=None, init=False)
    _process: Process | None = field(default=None, init=False)
    _stopping: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _invalid_lines: int = field(default=0, init=False)
    """Lines on its stdout that were not messages of the protocol."""

    def __post_init__(self) -> None:
        self.declared = _fill_in_port(self.declared)
        if self.declared.command is not None:
            self._stderr = StderrTail(self.declared.wait.log if self.declared.wait else None)
        self.toolset = self._build_toolset()

    def is_alive(self) -> bool:
        """Return whether it seems to run, without sending a request."""
        return not self.is_lost and not (self._stderr is not None and self._stderr.has_ended())

    async def is_answering(self) -> bool:
        """Ping the server; return whether it answers."""
        try:
            async with asyncio.timeout(min(PROBE_TIMEOUT_S, self.declared.call_timeout_s)):
                await self.toolset.client.ping()
        except MCPError as error:
            return error.error.code == METHOD_NOT_FOUND
        except Exception:  # noqa: BLE001 - any error means no answer
            return False
        return True

    async def start(self) -> None:
        """Start and connect. Raises ServerError with the last lines of stderr."""
        wait = self.declared.wait or Wait()
        limit_s = wait.timeout_s or self.declared.startup_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                await self._connect()
                await self._wait_until_ready(wait)
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                raise self.build_error(f"was not ready within {limit_s:g} s") from error
            if isinstance(error, InputError) or not isinstance(error, Exception):
                raise
            raise self.build_error(f"did not start: {_describe_cause(error)}") from error

    async def stop(self) -> None:
        """Close the connection and end all processes. Never raises."""
        self.is_lost = True
        with anyio.CancelScope(shield=True):
            async with self._stopping:
                with suppress(Exception):
                    await self.toolset.client.close()  # type: ignore[no-untyped-call]
                if self._process is not None:
                    terminate_process(self._process)
                    await self._process.wait()
                if self._stderr is not None:
                    self._stderr.stream.close()
                    with anyio.move_on_after(_EXIT_S):
                        await self._stderr.ended.wait()
                    self._stderr.close()

    async def ask(
        self, subject: str, send: Callable[[MCPToolset[Any]], Awaitable[_Answer]]
    ) -> _Answer:
        """Return the server's answer; an error that it answers is PydanticAI's exception.

        Raises ServerError if there is no answer. The connection is closed if it is lost.
        """
        try:
            async with asyncio.timeout(self.declared.call_timeout_s):
                return await send(self.toolset)
        except Exception as error:
            is_refusal = isinstance(error, _REFUSALS)
            cause = (error.__cause__ or error) if is_refusal else error
            # PydanticAI also makes a refusal of the SDK's errors of a lost connection.
            in_doubt = not is_refusal or isinstance(cause, MCPError)
            if in_doubt and not await self.is_answering():
                await self.stop()
            elif is_refusal:
                raise
            raise self._build_request_error(subject, cause) from error

    async def reset(self) -> None:
        """Reset the server between two episodes as declared. Raises ServerError."""
        reset = self.declared.reset
        try:
            async with asyncio.timeout(self.declared.call_timeout_s):
                if isinstance(reset, str):
                    await self.toolset.client.call_tool(reset)
                elif reset is not None and inspect.isawaitable(answer := reset()):
                    await answer
        except Exception as error:
            self.is_lost = True
            raise self.build_error(
                f"could not be reset between two episodes: {_describe_cause(error)}"
            ) from error

    def build_error(self, problem: str) -> ServerError:
        """Build the error of a problem with this server, without its secrets."""
        parts = [f"The MCP server {self.declared.label} {problem}."]
        if self._invalid_lines:
            parts.append(
                f"It wrote {self._invalid_lines} line(s) to stdout that are not messages of the "
                "protocol; let it log to stderr."
            )
        if self._stderr is not None:
            lines = self._stderr.list_lines()
            parts.append("Its last lines on stderr:" if lines else "It wrote nothing to stderr.")
            parts.extend(f"  {line}" for line in lines)
        redactor = Redactor.of(find_server_secrets(self.declared))
        return ServerError(redactor.text("\n".join(parts)))

    def _build_request_error(self, subject: str, error: BaseException) -> ServerError:
        if isinstance(error, TimeoutError):
            limit_s = self.declared.call_timeout_s
            return self.build_error(f"did not answer {subject} in {limit_s:g} s")
        if not self.is_lost:
            return self.build_error(f"gave no answer to {subject} that can be read: {error}")
        return self.build_error(f"was lost during {subject}: {_describe_cause(error)}")

    async def _connect(self) -> None:
        server = self.declared
        if server.command is None:
            await self._shake_hands()
        elif server.transport == "stdio":
            await self._shake_hands()
            self._tail.stream.close()
        else:
            await self._refuse_other_listener()
            environment = build_child_environment(self.environ, server.env)
            command = [*server.command, *server.args]
            self._process = await start_process(
                command, environment, server.cwd, stdout=DEVNULL, stderr=self._tail.stream
            )
            self._tail.stream.close()
            await self._connect_with_retries()

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
                await self._pause()
                self.toolset = self._build_toolset()
            else:
                return

    async def _wait_until_ready(self, wait: Wait) -> None:
        """Wait for the declared line on stderr and the declared tools."""
        if wait.log is not None and self._stderr is None:
            raise InputError("Wait.log: a server without a command has no stderr to wait for")
        while wait.log is not None and not self._tail.has_matched:
            await self._pause()
        while not set(wait.tools) <= {t.name for t in await self.toolset.client.list_tools()}:
            await self._pause()

    async def _pause(self) -> None:
        """Wait before the next check of a starting server. Raises ConnectionError at its end."""
        if not self.is_alive():
            raise ConnectionError("its process ended")
        await asyncio.sleep(_POLL_S)

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

    @property
    def _tail(self) -> StderrTail:
        assert self._stderr is not None  # noqa: S101 - every server with a command has one
        return self._stderr

    def _build_toolset(self) -> MCPToolset[Any]:
        """Build the toolset. Raises InputError for an invalid address."""
        # All callers have their own timeouts; the library's only has to be longer.
        longest = self.declared.startup_timeout_s + self.declared.call_timeout_s + PROBE_TIMEOUT_S
        try:
            return MCPToolset(
                self._build_transport(),
                init_timeout=0,
                read_timeout=longest,
                message_handler=self._count_invalid_lines,
            )
        except ValueError as error:
            raise InputError(f"MCPServer.url: {error}") from error

    def _build_transport(self) -> ClientTransport:
        server = self.declared
        if server.transport == "sse":
            return SSETransport(server.url or "", headers=dict(server.headers))
        if server.transport == "streamable-http":
            return StreamableHttpTransport(server.url or "", headers=dict(server.headers))
        environment = build_child_environment(self.environ, server.env)
        command = [*(server.command or ()), *server.args]
        program, *arguments = build_supervised_command(command, environment)
        return StdioTransport(
            program,
            arguments,
            env=environment,
            cwd=os.fspath(server.cwd) if server.cwd is not None else None,
            keep_alive=False,
            log_file=self._tail.stream,
        )

    async def _count_invalid_lines(self, message: object) -> None:
        if isinstance(message, Exception):
            self._invalid_lines += 1


@dataclass(frozen=True)
class EpisodeToolset(AbstractToolset[Any]):
    """The tools of a server during one episode.

    A call without an answer raises ServerError; a tool that reports an error raises
    ModelRetry, for the model. The server is checked before each call.
    """

    server: MCPServer
    connect: Callable[[], Awaitable[ServerConnection]]
    """Returns the connection to the running server, restarted if necessary."""

    @property
    def id(self) -> str | None:
        """None: no state is stored under an id."""
        return None

    @property
    def label(self) -> str:
        """Name in PydanticAI's messages."""
        return f"the MCP server {self.server.label}"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the server's tools, without the one that resets the server."""
        tools = await self.ask("listing its tools", lambda toolset: toolset.get_tools(ctx))
        return {name: tool for name, tool in tools.items() if name != self.server.reset}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool of the server."""
        return await self.ask(
            f"the call of {name}", lambda mcp: mcp.call_tool(name, tool_args, ctx, tool)
        )

    async def ask(
        self, subject: str, send: Callable[[MCPToolset[Any]], Awaitable[_Answer]]
    ) -> _Answer:
        """Return the answer of the server to a request. Raises ServerError if there is none."""
        return await (await self.connect()).ask(subject, send)


def _fill_in_port(server: MCPServer) -> MCPServer:
    """Replace `{port}` in a declaration by a free port."""
    if server.command is None or PORT not in (server.url or ""):
        return server
    port = str(find_free_port())
    return replace(
        server,
        url=(server.url or "").replace(PORT, port),
        command=tuple(word.replace(PORT, port) for word in server.command),
        args=tuple(word.replace(PORT, port) for word in server.args),
        env={name: value.replace(PORT, port) for name, value in server.env.items()},
    )


def _describe_cause(error: BaseException) -> str:
    """Return the message of an error, the first one of an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
