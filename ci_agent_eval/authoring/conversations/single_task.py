"""One task of the event loop for all that an agent awaits in a plain test.

A plain test runs the loop anew for each step: to open the agent, to answer, to close it. What
is opened in one task must not be closed in another: cancel scopes and task groups, and the
clients that are made of them, refuse it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextvars import Context
from typing import Any

from ci_agent_eval.authoring.simulation.steps import RunAwaitable

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


class SingleTaskRunner:
    """Runs awaitables one after the other, each in the same task and context; `end` it."""

    def __init__(self, run: RunAwaitable, context: Context | None = None) -> None:
        self._run = run
        self._context = context
        self._task: asyncio.Task[None] | None = None
        self._asked: asyncio.Future[tuple[Awaitable[Any], asyncio.Future[Any]] | None]

    def __call__(self, awaitable: Awaitable[Any]) -> Any:
        """Run an awaitable to its end, outside of any event loop."""
        return self._run(self._answered(awaitable))

    def end(self) -> None:
        """End the task, where one was needed."""
        if self._task is not None and not self._task.done():
            self._run(self._ended(self._task))

    async def _answered(self, awaitable: Awaitable[Any]) -> Any:
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            self._asked = loop.create_future()
            self._task = loop.create_task(self._serve(), context=self._context)
        answer: asyncio.Future[Any] = loop.create_future()
        self._asked.set_result((awaitable, answer))
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            if not answer.done():  # it is the wait that was cancelled: Ctrl-C, a timeout
                self._task.cancel()
                await asyncio.wait([answer])
            return answer.result()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while (asked := await self._asked) is not None:
            awaitable, answer = asked
            self._asked = loop.create_future()
            try:
                result = await awaitable
            except asyncio.CancelledError:
                answer.cancel()
                if (task := asyncio.current_task()) is not None:
                    task.uncancel()
            except BaseException as error:  # noqa: BLE001 - told to the one who waits
                answer.set_exception(error)
            else:
                answer.set_result(result)

    async def _ended(self, task: asyncio.Task[None]) -> None:
        self._asked.set_result(None)
        await asyncio.wait([task])
