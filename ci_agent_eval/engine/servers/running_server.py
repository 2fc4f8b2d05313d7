"""One running MCP server: started with a deadline, asked whether it lives, stopped with its kin."""

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
"""How long a server that is in doubt has to answer a ping."""

_RETRY_S = 0.05
"""The pause between two looks at a server that is still starting."""

_EXIT_S = 5.0
"""How long the end of a stopped server is waited for; its leash needs half of it at most."""

_HANDSHAKES = ("legacy", "auto")
"""`initialize` first, which every server knows; `server/discover` for one that refuses it.
The other way round, servers that accept nothing before `initialize` would hang up."""

_LOST_MESSAGE = re.compile(
    r"Connection closed$|SSE stream |Server returned an error response$|Request '.*' timed out$"
    r"|Session terminated$|Unexpected content type: |Redirect to "
    r"|server answered a request with 202 Accepted$"
)
"""The SDK's own sentences, from its dispatcher and its streamable HTTP client."""


@dataclass(frozen=True, slots=True, eq=False)
class ServerRequest:
    """What an episode asks of a server."""

    what: str
    episode_id: str
    is_repeatable: bool
    """It changes nothing at the server, so that it can be asked again."""

    def __str__(self) -> str:
        """Return it with its episode."""
        return f"{self.what} (episode {self.episode_id})"


@dataclass(slots=True, eq=False)
class RunningServer:
    """A server we speak to, and its process where it is ours."""

    declared: MCPServer
    environ: Mapping[str, str] = field(repr=False)
    toolset: MCPToolset[Any] = field(init=False)
    tail: StderrTail | None = None
    process: Process | None = None
    broken: bool = False
    """Its connection was found closed."""
    in_doubt: bool = False
    """It let a call time out, and has answered nothing since."""
    has_served: bool = False
    """It has answered a call."""
    open_questions: list[ServerRequest] = field(default_factory=list)
    """What episodes are asking it now, in the order in which they began."""
    open_when_lost: tuple[ServerRequest, ...] = ()
    """What they were asking when its connection was lost: one of them is the cause."""
    garbage: int = 0
    """Lines on its stdout that were no messages of the protocol."""

    def __post_init__(self) -> None:
        if self.declared.command is not None:
            wait = self.declared.wait
            self.tail = StderrTail(wait.log if wait is not None else None)
        try:
            self.toolset = self._toolset()
        except ValueError as error:
            raise InputError(f"MCPServer.url: {error}") from error

    def lives(self) -> bool:
        """Say whether it is there, as far as that can be known without asking it."""
        return not self.broken and (self.tail is None or not self.tail.has_ended())

    async def answers(self) -> bool:
        """Ask it whether it is there; any answer is a yes."""
        try:
            async with asyncio.timeout(min(PROBE_TIMEOUT_S, self.declared.call_timeout_s)):
                await self.toolset.client.ping()
        except MCPError as error:
            self.in_doubt = is_connection_lost(error)
        except Exception:  # noqa: BLE001 - each library below fails in its own way; all mean no
            self.in_doubt = True
        else:
            self.in_doubt = False
        return not self.in_doubt

    async def start(self) -> None:
        """Start it and shake hands. Raises ServerError with the last lines of its stderr."""
        wait = self.declared.wait
        limit = (wait.timeout_s if wait is not None else None) or self.declared.startup_timeout_s
        try:
            async with asyncio.timeout(limit):
                await self._open()
        except TimeoutError as error:
            await self.stop()
            raise self.failure(f"was not ready within {limit:g} s") from error
        except InputError:
            await self.stop()
            raise
        except Exception as error:
            await self.settle()
            await self.stop()
            raise self.failure(f"did not start: {describe_cause(error)}") from error
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the connection, and the process with all it has started. Never raises."""
        with anyio.CancelScope(shield=True):
            with suppress(Exception):
                await self.toolset.client.close()  # type: ignore[no-untyped-call]
            if self.process is not None:
                await end_process(self.process)
            await self.settle()
            if self.tail is not None:
                self.tail.close()
        self.broken = True

    def was_lost_to_another(self, asked: ServerRequest) -> bool:
        """Say whether the question may be asked again, as another one cost the server.

        Where all open questions are repeatable, each may be the cause, and none is asked again:
        one that crashes the server would be asked for ever.
        """
        return asked.is_repeatable and not all(other.is_repeatable for other in self.open_when_lost)

    async def settle(self) -> None:
        """Wait a while for a process that is ending, so that its last words are known."""
        if self.tail is not None:
            self.tail.release()
            with suppress(TimeoutError):
                async with asyncio.timeout(_EXIT_S):
                    await self.tail.ended.wait()

    def failure(self, what: str) -> ServerError:
        """Return the error that says what happened to this server, without its secrets."""
        said = [f"The MCP server {self.declared.label} {what}."]
        if self.garbage:
            said.append(
                f"It wrote {self.garbage} line(s) to stdout that are no messages of the protocol; "
                "let it log to stderr."
            )
        if self.tail is not None:
            lines = self.tail.lines()
            said.append("Its last lines on stderr:" if lines else "It wrote nothing to stderr.")
            said.extend(f"  {line}" for line in lines)
        redactor = Redactor.of(find_server_secrets(self.declared))
        return ServerError(redactor.text("\n".join(said)))

    async def _open(self) -> None:
        server = self.declared
        if server.transport == "stdio":
            await self._shake_hands()
            self._tail.release()
        elif server.command is not None:
            await self._refuse_stranger()
            await self._spawn([*server.command, *server.args])
            await self._wait_for_log()
            await self._unless_ended(self._until_connected())
        else:
            await self._shake_hands()
        await self._wait_for_log()
        await self._unless_ended(self._until_tools())

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

    async def _until_connected(self) -> None:
        """Connect as soon as the server listens; it says in no other way that it does."""
        while True:
            try:
                await self._shake_hands()
            except Exception:  # noqa: BLE001 - whatever it is, the deadline ends it
                await asyncio.sleep(_RETRY_S)
                self.toolset = self._toolset()
            else:
                return

    async def _until_tools(self) -> None:
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
        await self._unless_ended(self.tail.seen.wait())

    async def _unless_ended(self, work: Awaitable[Any]) -> None:
        """Do the work, but not for a process that has ended."""
        doing = asyncio.ensure_future(work)
        ended = asyncio.ensure_future(self.tail.ended.wait() if self.tail else _wait_forever())
        try:
            await asyncio.wait({doing, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise ConnectionError("its process ended")
            doing.result()
        finally:
            await cancel_tasks(doing, ended)

    async def _refuse_stranger(self) -> None:
        """Refuse an address where somebody listens before our process can."""
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

    def _toolset(self) -> MCPToolset[Any]:
        # Whoever asks has a deadline of its own; the library's only has to be later than those.
        longest = self.declared.startup_timeout_s + self.declared.call_timeout_s + PROBE_TIMEOUT_S
        return MCPToolset(
            self._transport(),
            init_timeout=0,
            read_timeout=longest,
            message_handler=self._take_message,
        )

    def _transport(self) -> ClientTransport:
        server = self.declared
        if server.transport == "stdio":
            return self._stdio([*(server.command or ()), *server.args])
        if server.transport == "sse":
            return SSETransport(server.url or "", headers=dict(server.headers))
        return StreamableHttpTransport(server.url or "", headers=dict(server.headers))

    def _stdio(self, command: Sequence[str]) -> StdioTransport:
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

    async def _take_message(self, message: object) -> None:
        if isinstance(message, Exception):
            self.garbage += 1


def is_connection_lost(error: MCPError) -> bool:
    """Say whether the error means that the server's answer will never come.

    What a client's own words and library send is never an invalid request or unreadable. For
    the rest, servers use the SDK's codes for errors of their own, so its sentences decide.
    """
    if error.error.code in {INVALID_REQUEST, PARSE_ERROR}:
        return True
    return _LOST_MESSAGE.match(error.error.message) is not None


def may_be_refusal(error: MCPError) -> bool:
    """Say whether a server that lives may have answered with the error that `is_lost` knows.

    It does so when it asks for sampling, elicitation or roots, which no test answers: its call
    reports the client's refusal as its own. A server that forgot the session uses that code too.
    """
    return error.error.code == INVALID_REQUEST and _LOST_MESSAGE.match(error.error.message) is None


async def end_process(process: Process) -> None:
    """End a leash, and wait until it has ended all that is on it."""
    if process.returncode is None:
        # Not `terminate`: it may collect the exit code before asyncio's own watcher does.
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)
    await process.wait()


async def cancel_tasks(*tasks: asyncio.Future[Any]) -> None:
    """Cancel what still runs, and wait until it has stopped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _wait_forever() -> None:
    await asyncio.Event().wait()


def describe_cause(error: BaseException) -> str:
    """Return what an error says, out of the groups it may stand in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
