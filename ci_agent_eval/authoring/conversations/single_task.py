"""A single asyncio task for everything that an agent awaits in a sync test.

A sync test runs the event loop once per step: to open the agent, to answer, to close it. Cancel
scopes and task groups, and the clients built on them, must be closed in the task that opened
them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextvars import Context
from typing import Any

from ci_agent_eval.authoring.simulation.awaiting import RunAwaitable

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


class SingleTaskRunner:
    """Runs awaitables one after the other in one task and context; call `end` afterwards."""

    def __init__(self, run: RunAwaitable, context: Context | None = None) -> None:
        self._run = run
        self._context = context
        self._task: asyncio.Task[None] | None = None
        self._request: asyncio.Future[tuple[Awaitable[Any], asyncio.Future[Any]] | None]

    def __call__(self, awaitable: Awaitable[Any]) -> Any:
        """Run an awaitable to completion, outside of any event loop."""
        return self._run(self._await_in_task(awaitable))

    def end(self) -> None:
        """End the task, if one was started."""
        if self._task is not None and not self._task.done():
            self._run(self._finish_task(self._task))

    async def _await_in_task(self, awaitable: Awaitable[Any]) -> Any:
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            self._request = loop.create_future()
            self._task = loop.create_task(self._run_requests(), context=self._context)
        result_future: asyncio.Future[Any] = loop.create_future()
        self._request.set_result((awaitable, result_future))
        try:
            return await asyncio.shield(result_future)
        except asyncio.CancelledError:
            if not result_future.done():  # the wait was cancelled: Ctrl-C, a timeout
                self._task.cancel()
                await asyncio.wait([result_future])
            return result_future.result()

    async def _run_requests(self) -> None:
        loop = asyncio.get_running_loop()
        while (request := await self._request) is not None:
            awaitable, result_future = request
            self._request = loop.create_future()
            try:
                result = await awaitable
            except asyncio.CancelledError:
                result_future.cancel()
                if (task := asyncio.current_task()) is not None:
                    task.uncancel()
            except BaseException as error:  # noqa: BLE001 - raised to the waiting caller
                result_future.set_exception(error)
            else:
                result_future.set_result(result)

    async def _finish_task(self, task: asyncio.Task[None]) -> None:
        self._request.set_result(None)
        await asyncio.wait([task])
