"""The tool servers of a session: each started once, shared, watched, and gone at its end."""

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
"""More servers starting together would only make each miss its deadline."""

Server = MCPServer | CLIServer


class ServerPool:
    """Every tool server of one process, on one event loop; `async with` ends them all.

    Equal declarations mean the same server. Nothing is started before it is needed.
    """

    def __init__(self, environ: Mapping[str, str], sleep: Sleep = asyncio.sleep) -> None:
        self._environ = environ
        self._sleep = sleep
        self._shared: list[SharedServer] = []
        self._cli: list[tuple[CLIServer, AbstractToolset[Any]]] = []
        self._queue = ServerQueue()
        self._asking = asyncio.Lock()
        self._starts = asyncio.Semaphore(MAX_CONCURRENT_STARTS)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._owned: set[RunningServer] = set()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def restarts(self) -> int:
        """How many servers died and were started again."""
        return sum(shared.restarts for shared in self._shared)

    @property
    def running(self) -> list[RunningServer]:
        """The shared servers as they run now, in the order of their first use."""
        return [shared.running for shared in self._shared if shared.running is not None]

    async def close(self) -> None:
        """Stop every server, all at once; what is asked of one from now on is refused."""
        self._loop = None
        for shared in self._shared:
            self._apart(shared.stop())
        for owned in self._owned:
            self._apart(owned.stop())
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    @asynccontextmanager
    async def toolsets(
        self, servers: Sequence[Server], episode_id: str
    ) -> AsyncIterator[list[AbstractToolset[Any]]]:
        """Give an episode the toolsets of its servers, in their order.

        Servers that only one episode may use at a time are waited for in the same order by
        everyone, so that no two episodes wait for each other; one that holds some already and
        could only wait for ever gets an InputError. Raises ServerError.
        """
        distinct = [server for at, server in enumerate(servers) if server not in servers[:at]]
        toolsets: dict[int, AbstractToolset[Any]] = {}
        async with AsyncExitStack() as stack:
            for at in sorted(range(len(distinct)), key=lambda at: self._rank(distinct[at])):
                toolset = self.toolset(distinct[at], episode_id)
                toolsets[at] = await stack.enter_async_context(toolset)
            yield [toolsets[at] for at in range(len(distinct))]

    @asynccontextmanager
    async def toolset(self, server: Server, episode_id: str) -> AsyncIterator[AbstractToolset[Any]]:
        """Give an episode the tools of one server, for as long as the block lasts.

        Raises ServerError where the server does not start or cannot be reset.
        """
        self._check_loop()
        if isinstance(server, CLIServer):
            yield await self._cli_toolset(server)
        elif server.isolation == "per_episode":
            async with self._own(server, episode_id) as toolset:
                yield toolset
        elif server.isolation == "reset":
            async with self._alone(self._shared_for(server), episode_id) as toolset:
                yield toolset
        else:
            shared = self._shared_for(server)
            await shared.ready(probe=server.command is None)
            yield EpisodeToolset(server.label, episode_id, shared.ready)

    @asynccontextmanager
    async def _own(self, server: MCPServer, episode_id: str) -> AsyncIterator[EpisodeToolset]:
        running = RunningServer(fill_in_port(server), self._environ)
        self._owned.add(running)
        start = self._apart(self._start(running))
        try:
            await asyncio.shield(start)
            yield EpisodeToolset(server.label, episode_id, _build_fixed_source(running, episode_id))
        finally:
            start.cancel()
            self._owned.discard(running)
            await asyncio.shield(self._apart(_stop_after(start, running)))

    @asynccontextmanager
    async def _alone(self, shared: SharedServer, episode_id: str) -> AsyncIterator[EpisodeToolset]:
        async with self._queue.turn(shared, episode_id):
            running = await shared.ready(probe=shared.server.command is None)
            if shared.used:
                running = await shared.reset(running)
            shared.used = True
            hidden = shared.server.reset if isinstance(shared.server.reset, str) else None
            source = _build_fixed_source(running, episode_id)
            yield EpisodeToolset(shared.server.label, episode_id, source, hidden)

    async def _start(self, running: RunningServer) -> None:
        async with self._starts:
            await running.start()

    def _shared_for(self, server: MCPServer) -> SharedServer:
        for shared in self._shared:
            if shared.server == server:
                return shared
        shared = SharedServer(server, self._environ, self._start, self._apart, self._sleep)
        self._shared.append(shared)
        return shared

    async def _cli_toolset(self, server: CLIServer) -> AbstractToolset[Any]:
        async with self._asking:
            for known, toolset in self._cli:
                if known == server:
                    return toolset
            toolset = await build_cli_toolset(server, self._environ)
            self._cli.append((server, toolset))
            return toolset

    def _rank(self, server: Server) -> int:
        """Return a place in an order that is the same for every episode."""
        if isinstance(server, CLIServer) or server.isolation != "reset":
            return -1
        return self._shared.index(self._shared_for(server))

    def _apart(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something that does not end with the episode that asked for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody may have

    def _check_loop(self) -> None:
        if self._loop is not asyncio.get_running_loop():
            raise ServerError(
                "The session's tool servers live on its own event loop, and it is not this one, "
                "or the session is over. Run agents through the session."
            )


def _build_fixed_source(running: RunningServer, episode_id: str) -> Any:
    """Return the source of an episode that needs the state its own calls have left."""

    async def source() -> RunningServer:
        if not running.lives():
            await running.settle()
            raise running.failure(f"died between two calls of the episode {episode_id}")
        return running

    return source


async def _stop_after(start: asyncio.Task[Any], running: RunningServer) -> None:
    await asyncio.wait({start})
    await running.stop()
