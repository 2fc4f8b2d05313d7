"""The tool servers of a session: started once, shared, restarted, stopped at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic_ai.toolsets import AbstractToolset

from ci_agent_eval.engine.declarations import CLIServer, MCPServer
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.rate_limits import Sleep, compute_backoff_s
from ci_agent_eval.engine.servers.cli import build_cli_toolset
from ci_agent_eval.engine.servers.connection import EpisodeToolset, ServerConnection

MAX_FAILED_STARTS = 3
"""Failed starts in a row after which the server is not started again."""

MAX_CONCURRENT_STARTS = 4
"""With more concurrent starts each server might miss its deadline."""

Server = MCPServer | CLIServer


@dataclass(slots=True, eq=False)
class SharedServer:
    """A declared server: started at its first use and restarted after each crash."""

    server: MCPServer
    environ: Mapping[str, str] = field(repr=False)
    starts: asyncio.Semaphore
    sleep: Sleep
    restarts: int = 0
    """Number of restarts: one for each crash."""
    _connection: ServerConnection | None = None
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _was_used: bool = False
    """Whether an episode has used it, so that it must be reset for the next one."""
    _failure: str | None = None

    async def connect(self, *, probe: bool = False) -> ServerConnection:
        """Return the connection to the running server; starts or restarts it if necessary.

        With `probe` the server is always pinged. Raises ServerError.
        """
        if self._connection is not None and self._connection.is_alive() and not probe:
            return self._connection
        async with self._starting:
            return await self._check(probe=probe)

    async def connect_after_reset(self) -> ServerConnection:
        """Return the connection to the server, reset for the next episode. Raises ServerError.

        If the reset fails, the previous episode is the cause: the server is restarted and
        reset once more, so that the next episode does not fail.
        """
        connection = await self.connect(probe=self.server.command is None)
        if self._was_used:
            try:
                await connection.reset()
            except ServerError:
                connection = await self.connect()
                await connection.reset()
        self._was_used = True
        return connection

    async def stop(self) -> None:
        """Stop the server for good."""
        self._failure = f"The MCP server {self.server.label} was stopped with its session."
        if self._connection is not None:
            await self._connection.stop()

    async def _check(self, *, probe: bool) -> ServerConnection:
        connection = self._connection
        if connection is not None:
            if connection.is_alive() and (not probe or await connection.is_answering()):
                return connection
            await connection.stop()
            self._connection = None
            self.restarts += 1
        return await self._start_with_retries()

    async def _start_with_retries(self) -> ServerConnection:
        """Start the server. Raises ServerError after `MAX_FAILED_STARTS` failed starts."""
        failed_starts = 0
        while self._failure is None:
            try:
                async with self.starts:
                    connection = ServerConnection(self.server, self.environ)
                    await connection.start()
            except ServerError as error:
                failed_starts += 1
                if failed_starts < MAX_FAILED_STARTS:
                    await self.sleep(compute_backoff_s(failed_starts, None))
                    continue
                self._failure = (
                    f"{error}\n{MAX_FAILED_STARTS} starts in a row failed: "
                    "the server is not started again in this session."
                )
            else:
                self._connection = connection
                return connection
        raise ServerError(self._failure)


@dataclass
class ServerTurn:
    """The turn of one episode at all servers with isolation `reset`, until it ends."""

    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _holder: str | None = None
    _users: int = 0
    """Number of servers and runs for which the holder has the turn."""

    @asynccontextmanager
    async def hold(self, episode_id: str) -> AsyncIterator[None]:
        """Wait for the turn, unless the episode has it, and hold it."""
        if self._holder != episode_id:
            await self._lock.acquire()
            self._holder = episode_id
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._holder = None
                self._lock.release()


class ServerPool:
    """All tool servers of one process, on one event loop; `async with` stops them.

    Equal declarations share a server. Servers start at their first use.
    """

    def __init__(self, environ: Mapping[str, str], sleep: Sleep = asyncio.sleep) -> None:
        self._environ = environ
        self._sleep = sleep
        self._shared: dict[MCPServer, SharedServer] = {}
        self._private: set[ServerConnection] = set()
        self._cli: dict[CLIServer, AbstractToolset[Any]] = {}
        self._cli_lock = asyncio.Lock()
        self._turn = ServerTurn()
        self._starts = asyncio.Semaphore(MAX_CONCURRENT_STARTS)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop all servers concurrently; later requests are refused."""
        self._loop = None
        await asyncio.gather(
            *(server.stop() for server in self._shared.values()),
            *(connection.stop() for connection in self._private),
        )

    @property
    def restarts(self) -> int:
        """Number of servers that were restarted."""
        return sum(shared.restarts for shared in self._shared.values())

    @asynccontextmanager
    async def toolsets(
        self, servers: Sequence[Server], episode_id: str
    ) -> AsyncIterator[list[AbstractToolset[Any]]]:
        """Open the toolsets of an episode's servers, in their order. Raises ServerError."""
        async with AsyncExitStack() as stack:
            yield [
                await stack.enter_async_context(self.toolset(server, episode_id))
                for server in dict.fromkeys(servers)
            ]

    @asynccontextmanager
    async def toolset(self, server: Server, episode_id: str) -> AsyncIterator[AbstractToolset[Any]]:
        """Open the toolset of one server for an episode.

        Raises ServerError if the server does not start or cannot be reset.
        """
        if self._loop is not asyncio.get_running_loop():
            raise ServerError(
                "The session's tool servers live on its own event loop, and it is not this one, "
                "or the session is over. Run agents through the session."
            )
        if isinstance(server, CLIServer):
            yield await self._get_cli_toolset(server)
        elif server.isolation == "per_episode":
            async with self._open_private(server) as connection:
                yield _build_fixed_toolset(connection, server, episode_id)
        elif server.isolation == "reset":
            shared = self._get_shared_server(server)
            async with self._turn.hold(episode_id):
                connection = await shared.connect_after_reset()
                yield _build_fixed_toolset(connection, server, episode_id)
        else:
            shared = self._get_shared_server(server)
            await shared.connect(probe=server.command is None)
            yield EpisodeToolset(server, shared.connect)

    @asynccontextmanager
    async def _open_private(self, server: MCPServer) -> AsyncIterator[ServerConnection]:
        async with self._starts:
            connection = ServerConnection(server, self._environ)
            await connection.start()
        self._private.add(connection)
        try:
            yield connection
        finally:
            await connection.stop()
            self._private.discard(connection)

    def _get_shared_server(self, server: MCPServer) -> SharedServer:
        if server not in self._shared:
            self._shared[server] = SharedServer(server, self._environ, self._starts, self._sleep)
        return self._shared[server]

    async def _get_cli_toolset(self, server: CLIServer) -> AbstractToolset[Any]:
        async with self._cli_lock:
            if server not in self._cli:
                self._cli[server] = await build_cli_toolset(server, self._environ)
            return self._cli[server]


def _build_fixed_toolset(
    connection: ServerConnection, server: MCPServer, episode_id: str
) -> EpisodeToolset:
    """Build the toolset of an episode that needs its server's state, so it never restarts it."""

    async def connect() -> ServerConnection:
        if not connection.is_alive():
            await connection.stop()
            raise connection.build_error(f"died between two calls of the episode {episode_id}")
        return connection

    return EpisodeToolset(server, connect)
