"""A server that episodes share: started at its first use and restarted after each crash."""

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
"""Placeholder in url, args and env for a port that is free at the start."""

MAX_FAILED_STARTS = 3
"""Failed starts in a row after which the server is not started again."""

MAX_RESTART_BACKOFF_S = 5.0
"""Longest wait before a restart: one bad tool may cause a restart in every episode."""


@dataclass(slots=True, eq=False)
class SharedServer:
    """A declared server and its current process."""

    server: MCPServer
    environ: Mapping[str, str] = field(repr=False)
    start: Callable[[RunningServer], Coroutine[Any, Any, None]]
    run_detached: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]
    """Runs work in a task that is not cancelled with an episode."""
    sleep: Sleep
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the episode that uses a server with isolation `reset`."""
    is_used: bool = False
    """Whether an episode has is_used it, so that it must be reset for the next one."""
    restarts: int = 0
    """Number of restarts: one for each crash."""
    fruitless_crashes: int = 0
    """Crashes in a row without an answered call before."""
    running: RunningServer | None = None
    _check_task: asyncio.Task[RunningServer] | None = None
    _failure: str | None = None

    async def ensure_running(self, *, probe: bool = False) -> RunningServer:
        """Return the running server; starts or restarts it if necessary.

        With `probe` it is always pinged. Raises ServerError.
        """
        running = self.running
        if running is not None and running.is_alive() and not running.in_doubt and not probe:
            return running
        if self._check_task is None or self._check_task.done():
            self._check_task = self.run_detached(self._check(running, probe=probe))
        return await asyncio.shield(self._check_task)

    async def reset(self, running: RunningServer) -> RunningServer:
        """Reset the server for the next episode, and return it.

        If the reset fails, the previous episode is the cause: the server is restarted and
        reset once more, so that the next episode does not fail. Raises ServerError.
        """
        try:
            await reset_server(running)
        except ServerError:
            running.broken = True
            running = await self.ensure_running()
            await reset_server(running)
        return running

    async def stop(self) -> None:
        """Stop the server for good."""
        self._failure = f"The MCP server {self.server.label} was stopped with its session."
        if self._check_task is not None and not self._check_task.done():
            self._check_task.cancel()
            await asyncio.wait({self._check_task})
        if self.running is not None:
            await self.running.stop()

    async def _check(self, running: RunningServer | None, *, probe: bool) -> RunningServer:
        if self._failure is not None:
            raise ServerError(self._failure)
        if running is None:
            return await self._start_with_retries()
        if running.is_alive() and (not (running.in_doubt or probe) or await running.ping()):
            return running
        return await self._restart(running)

    async def _restart(self, dead: RunningServer) -> RunningServer:
        if not dead.in_doubt:
            await dead.wait_for_exit()
        await dead.stop()
        self.restarts += 1
        self.fruitless_crashes = 0 if dead.has_served else self.fruitless_crashes + 1
        if self.fruitless_crashes > 1:
            await self._back_off(self.fruitless_crashes - 1)
        return await self._start_with_retries()

    async def _start_with_retries(self) -> RunningServer:
        """Start the server. Raises ServerError after `MAX_FAILED_STARTS` failed starts."""
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


async def reset_server(running: RunningServer) -> None:
    """Reset a server between two episodes as declared. Raises ServerError."""
    reset = running.declared.reset
    try:
        async with asyncio.timeout(running.declared.call_timeout_s):
            if isinstance(reset, str):
                await running.toolset.client.call_tool(reset)
            elif reset is not None:
                await _call_reset(reset)
    except Exception as error:
        running.in_doubt = True
        raise running.build_error(
            f"could not be reset between two episodes: {describe_cause(error)}"
        ) from error


async def _call_reset(reset: Callable[[], Awaitable[None] | None]) -> None:
    answer = reset()
    if inspect.isawaitable(answer):
        await answer
