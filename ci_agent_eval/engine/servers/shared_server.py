"""One server that episodes share: started by the first user, and again after each death."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ci_agent_eval.engine.declarations import MCPServer
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.rate_limits import Sleep, compute_backoff_s
from ci_agent_eval.engine.servers.processes import find_free_port
from ci_agent_eval.engine.servers.running_server import RunningServer, describe_cause

PORT = "{port}"
"""Stands in url, args and env for a port that is free when the server starts."""

MAX_FAILED_STARTS = 3
"""After so many failed starts in a row the server is not started again."""

MAX_RESTART_BACKOFF_S = 5.0
"""Longest wait before a restart: one bad tool may cost every episode a restart."""


@dataclass(slots=True, eq=False)
class SharedServer:
    """A declared server, the process it is now, and who waits for it."""

    server: MCPServer
    environ: Mapping[str, str] = field(repr=False)
    start: Callable[[RunningServer], Coroutine[Any, Any, None]]
    apart: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]
    """Runs work that no episode's end may cancel."""
    sleep: Sleep
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the one episode that may use a server with isolation `reset`."""
    used: bool = False
    """An episode has used it: it has to be reset for the next one."""
    restarts: int = 0
    """How often it was started again: once for each death."""
    fruitless: int = 0
    """Deaths in a row before which it had answered no call."""
    running: RunningServer | None = None
    _checking: asyncio.Task[RunningServer] | None = None
    _failure: str | None = None

    async def ready(self, *, probe: bool = False) -> RunningServer:
        """Return the server, living; started, or started again, where it must be.

        `probe` asks it, even if nothing speaks against it. Raises ServerError.
        """
        running = self.running
        if running is not None and running.lives() and not running.in_doubt and not probe:
            return running
        if self._checking is None or self._checking.done():
            self._checking = self.apart(self._check(running, probe=probe))
        return await asyncio.shield(self._checking)

    async def reset(self, running: RunningServer) -> RunningServer:
        """Reset the server for the next episode, and return it.

        One that cannot be reset was left so by the episode before: it is restarted and reset
        once more, so that the next episode does not fail for it. Raises ServerError.
        """
        try:
            await reset_server(running)
        except ServerError:
            running.broken = True
            running = await self.ready()
            await reset_server(running)
        return running

    async def stop(self) -> None:
        """End its process; it is not started again."""
        self._failure = f"The MCP server {self.server.label} was stopped with its session."
        if self._checking is not None and not self._checking.done():
            self._checking.cancel()
            await asyncio.wait({self._checking})
        if self.running is not None:
            await self.running.stop()

    async def _check(self, running: RunningServer | None, *, probe: bool) -> RunningServer:
        if self._failure is not None:
            raise ServerError(self._failure)
        if running is None:
            return await self._begin()
        if running.lives() and (not (running.in_doubt or probe) or await running.answers()):
            return running
        return await self._again(running)

    async def _again(self, dead: RunningServer) -> RunningServer:
        if not dead.in_doubt:
            await dead.settle()
        await dead.stop()
        self.restarts += 1
        self.fruitless = 0 if dead.has_served else self.fruitless + 1
        if self.fruitless > 1:
            await self._back_off(self.fruitless - 1)
        return await self._begin()

    async def _begin(self) -> RunningServer:
        """Start it, again after a start that failed. Raises ServerError after too many."""
        for failed in range(1, MAX_FAILED_STARTS):
            with suppress(ServerError):
                return await self._start_once()
            await self._back_off(failed)
        try:
            return await self._start_once()
        except ServerError as error:
            self._failure = (
                f"{error}\n{MAX_FAILED_STARTS} starts in a row failed: "
                "the server is not started again in this session."
            )
            raise ServerError(self._failure) from error

    async def _start_once(self) -> RunningServer:
        self.running = RunningServer(fill_in_port(self.server), self.environ)
        await self.start(self.running)
        return self.running

    async def _back_off(self, attempt: int) -> None:
        await self.sleep(min(compute_backoff_s(attempt, None), MAX_RESTART_BACKOFF_S))


def fill_in_port(server: MCPServer) -> MCPServer:
    """Return the declaration with a free port wherever it says `{port}`."""
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


async def reset_server(running: RunningServer) -> None:
    """Reset a server between two episodes, as it declares. Raises ServerError if that fails."""
    how = running.declared.reset
    try:
        async with asyncio.timeout(running.declared.call_timeout_s):
            if isinstance(how, str):
                await running.toolset.client.call_tool(how)
            elif how is not None:
                await _call_reset(how)
    except Exception as error:
        running.in_doubt = True
        raise running.failure(
            f"could not be reset between two episodes: {describe_cause(error)}"
        ) from error


async def _call_reset(how: Callable[[], Awaitable[None] | None]) -> None:
    answer = how()
    if inspect.isawaitable(answer):
        await answer
