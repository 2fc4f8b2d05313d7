"""The tool servers of a session: started once, shared, restarted, stopped at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

from pydantic_ai.toolsets import AbstractToolset

from ci_agent_eval.engine.declarations import CLIServer, MCPServer
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.rate_limits import Sleep
from ci_agent_eval.engine.servers.cli import build_cli_toolset
from ci_agent_eval.engine.servers.mcp import EpisodeToolset
from ci_agent_eval.engine.servers.queue import ServerQueue
from ci_agent_eval.engine.servers.running_server import RunningServer
from ci_agent_eval.engine.servers.shared_server import SharedServer, fill_in_port

MAX_CONCURRENT_STARTS = 4
"""With more concurrent starts each server might miss its deadline."""

Server = MCPServer | CLIServer


class ServerPool:
    """All tool servers of one process, on one event loop; `async with` stops them.

    Equal declarations share a server. Servers start at their first use.
    """

    def __init__(self, environ: Mapping[str, str], sleep: Sleep = asyncio.sleep) -> None:
        self._environ = environ
        self._sleep = sleep
        self._shared: list[SharedServer] = []
        self._cli: list[tuple[CLIServer, AbstractToolset[Any]]] = []
        self._queue = ServerQueue()
        self._cli_lock = asyncio.Lock()
        self._starts = asyncio.Semaphore(MAX_CONCURRENT_STARTS)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._private: set[RunningServer] = set()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def restarts(self) -> int:
        """Number of servers that were restarted."""
        return sum(shared.restarts for shared in self._shared)

    @property
    def running_servers(self) -> list[RunningServer]:
        """The running shared servers, in the order of their first use."""
        return [shared.running for shared in self._shared if shared.running is not None]

    async def close(self) -> None:
        """Stop all servers concurrently; later requests are refused."""
        self._loop = None
        for shared in self._shared:
            self._run_detached(shared.stop())
        for private in self._private:
            self._run_detached(private.stop())
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    @asynccontextmanager
    async def toolsets(
        self, servers: Sequence[Server], episode_id: str
    ) -> AsyncIterator[list[AbstractToolset[Any]]]:
        """Open the toolsets of an episode's servers, in their order.

        All episodes wait in the same order for exclusive servers, so that no two episodes wait
        for each other. Raises ServerError, and InputError for an episode that holds servers
        and would cause a deadlock.
        """
        distinct = [server for index, server in enumerate(servers) if server not in servers[:index]]
        toolsets: dict[int, AbstractToolset[Any]] = {}
        async with AsyncExitStack() as stack:
            for index in sorted(
                range(len(distinct)), key=lambda index: self._get_rank(distinct[index])
            ):
                toolset = self.toolset(distinct[index], episode_id)
                toolsets[index] = await stack.enter_async_context(toolset)
            yield [toolsets[index] for index in range(len(distinct))]

    @asynccontextmanager
    async def toolset(self, server: Server, episode_id: str) -> AsyncIterator[AbstractToolset[Any]]:
        """Open the toolset of one server for an episode.

        Raises ServerError if the server does not start or cannot be reset.
        """
        self._check_loop()
        if isinstance(server, CLIServer):
            yield await self._cli_toolset(server)
        elif server.isolation == "per_episode":
            async with self._open_private(server, episode_id) as toolset:
                yield toolset
        elif server.isolation == "reset":
            async with self._open_exclusive(self._get_shared_server(server), episode_id) as toolset:
                yield toolset
        else:
            shared = self._get_shared_server(server)
            await shared.ensure_running(probe=server.command is None)
            yield EpisodeToolset(server.label, episode_id, shared.ensure_running)

    @asynccontextmanager
    async def _open_private(
        self, server: MCPServer, episode_id: str
    ) -> AsyncIterator[EpisodeToolset]:
        running = RunningServer(fill_in_port(server), self._environ)
        self._private.add(running)
        start = self._run_detached(self._start_server(running))
        try:
            await asyncio.shield(start)
            yield EpisodeToolset(server.label, episode_id, _build_fixed_source(running, episode_id))
        finally:
            start.cancel()
            self._private.discard(running)
            await asyncio.shield(self._run_detached(_stop_after(start, running)))

    @asynccontextmanager
    async def _open_exclusive(
        self, shared: SharedServer, episode_id: str
    ) -> AsyncIterator[EpisodeToolset]:
        async with self._queue.hold(shared, episode_id):
            running = await shared.ensure_running(probe=shared.server.command is None)
            if shared.is_used:
                running = await shared.reset(running)
            shared.is_used = True
            hidden = shared.server.reset if isinstance(shared.server.reset, str) else None
            source = _build_fixed_source(running, episode_id)
            yield EpisodeToolset(shared.server.label, episode_id, source, hidden)

    async def _start_server(self, running: RunningServer) -> None:
        async with self._starts:
            await running.start()

    def _get_shared_server(self, server: MCPServer) -> SharedServer:
        for shared in self._shared:
            if shared.server == server:
                return shared
        shared = SharedServer(
            server, self._environ, self._start_server, self._run_detached, self._sleep
        )
        self._shared.append(shared)
        return shared

    async def _cli_toolset(self, server: CLIServer) -> AbstractToolset[Any]:
        async with self._cli_lock:
            for known, toolset in self._cli:
                if known == server:
                    return toolset
            toolset = await build_cli_toolset(server, self._environ)
            self._cli.append((server, toolset))
            return toolset

    def _get_rank(self, server: Server) -> int:
        """Return the position in an order that is the same for all episodes."""
        if isinstance(server, CLIServer) or server.isolation != "reset":
            return -1
        return self._shared.index(self._get_shared_server(server))

    def _run_detached(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work in a task that is not cancelled with its episode."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._discard_task)
        return task

    def _discard_task(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved

    def _check_loop(self) -> None:
        if self._loop is not asyncio.get_running_loop():
            raise ServerError(
                "The session's tool servers live on its own event loop, and it is not this one, "
                "or the session is over. Run agents through the session."
            )


def _build_fixed_source(running: RunningServer, episode_id: str) -> Any:
    """Return a source that never restarts, for an episode that needs its server's state."""

    async def source() -> RunningServer:
        if not running.is_alive():
            await running.wait_for_exit()
            raise running.build_error(f"died between two calls of the episode {episode_id}")
        return running

    return source


async def _stop_after(start: asyncio.Task[Any], running: RunningServer) -> None:
    await asyncio.wait({start})
    await running.stop()
