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
from ci_agent_eval.errors import InputError

MAX_FAILED_STARTS = 3
"""Failed starts in a row after which the server is not started again."""

MAX_RESTART_BACKOFF_S = 5.0
"""Longest wait before a restart: one bad tool may cause a restart in every episode."""

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
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the episode that uses a server with isolation `reset`."""
    restarts: int = 0
    """Number of restarts: one for each crash."""
    _connection: ServerConnection | None = None
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _was_used: bool = False
    """Whether an episode has used it, so that it must be reset for the next one."""
    _fruitless_crashes: int = 0
    """Crashes in a row without an answered call before."""
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
            self._fruitless_crashes = 0 if connection.has_served else self._fruitless_crashes + 1
            if self._fruitless_crashes > 1:
                await self._back_off(self._fruitless_crashes - 1)
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
                    await self._back_off(failed_starts)
                    continue
                self._failure = (
                    f"{error}\n{MAX_FAILED_STARTS} starts in a row failed: "
                    "the server is not started again in this session."
                )
            else:
                self._connection = connection
                return connection
        raise ServerError(self._failure)

    async def _back_off(self, attempt: int) -> None:
        await self.sleep(min(compute_backoff_s(attempt, None), MAX_RESTART_BACKOFF_S))


@dataclass
class ServerTurns:
    """The turns of episodes at servers with isolation `reset`, one episode at a time.

    An episode keeps its servers until it ends, and a later run of it may request more. Two
    episodes could then wait for each other: the second one is refused.
    """

    _holders: dict[SharedServer, str] = field(default_factory=dict)
    _awaited: dict[str, SharedServer] = field(default_factory=dict)
    """The server that each waiting episode waits for."""

    @asynccontextmanager
    async def hold(self, server: SharedServer, episode_id: str) -> AsyncIterator[None]:
        """Wait until no other episode holds the server, and hold it.

        Raises InputError if its holder waits, directly or not, for this episode.
        """
        self._refuse_deadlock(server, episode_id)
        self._awaited[episode_id] = server
        try:
            await server.turn.acquire()
        finally:
            self._awaited.pop(episode_id, None)
        self._holders[server] = episode_id
        try:
            yield
        finally:
            del self._holders[server]
            server.turn.release()

    def _refuse_deadlock(self, server: SharedServer, episode_id: str) -> None:
        if not self._waits_for(self._holders.get(server), episode_id):
            return
        held = sorted(s.server.label for s, holder in self._holders.items() if holder == episode_id)
        raise InputError(
            f"episode {episode_id}: it holds {', '.join(held)} and asks for {server.server.label}, "
            f"which {self._holders[server]} has, who waits for this episode: neither could ever go "
            'on. Give the first run of each an agent with all servers of isolation "reset" that '
            "the episode needs, so that it takes them in one order with the others"
        )

    def _waits_for(self, episode: str | None, wanted: str) -> bool:
        """Return whether an episode waits for another one, directly or not."""
        for _ in self._holders:
            awaited = self._awaited.get(episode or "")
            episode = None if awaited is None else self._holders.get(awaited)
            if episode == wanted:
                return True
        return False


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
        self._turns = ServerTurns()
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
        """Open the toolsets of an episode's servers, in their order.

        All episodes wait in the same order for exclusive servers, so that no two episodes wait
        for each other. Raises ServerError, and InputError for an episode that holds servers
        and would cause a deadlock.
        """
        toolsets: dict[Server, AbstractToolset[Any]] = {}
        async with AsyncExitStack() as stack:
            for server in sorted(dict.fromkeys(servers), key=self._get_rank):
                toolset = self.toolset(server, episode_id)
                toolsets[server] = await stack.enter_async_context(toolset)
            yield [toolsets[server] for server in dict.fromkeys(servers)]

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
            async with self._turns.hold(shared, episode_id):
                connection = await shared.connect_after_reset()
                yield _build_fixed_toolset(connection, server, episode_id)
        else:
            shared = self._get_shared_server(server)
            await shared.connect(probe=server.command is None)
            yield EpisodeToolset(server, episode_id, shared.connect)

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

    def _get_rank(self, server: Server) -> int:
        """Return the position in an order that is the same for all episodes."""
        if isinstance(server, CLIServer) or server.isolation != "reset":
            return -1
        self._get_shared_server(server)
        return list(self._shared).index(server)


def _build_fixed_toolset(
    connection: ServerConnection, server: MCPServer, episode_id: str
) -> EpisodeToolset:
    """Build the toolset of an episode that needs its server's state, so it never restarts it."""

    async def connect() -> ServerConnection:
        if not connection.is_alive():
            await connection.stop()
            raise connection.build_error(f"died between two calls of the episode {episode_id}")
        return connection

    return EpisodeToolset(server, episode_id, connect)
