"""The event loop that async episodes of a process share, from the first one to the end.

Tool servers and connections of the engine live on it, so that they start once and not once
for each test. It is made when the first async episode comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeVar

import pytest

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

T = TypeVar("T")

CLEAN_UP_S = 60.0
"""Seconds that a coroutine may take to end once it was interrupted."""

LOOP = pytest.StashKey["SessionLoop"]()


class ContextExecutor(ThreadPoolExecutor):
    """Runs each call in its caller's context, so that it is known whose episode it is of."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Submit a call, as `asyncio.to_thread` does it."""
        return super().submit(partial(copy_context().run, fn), *args, **kwargs)


class SessionLoop:
    """One runner for all async episodes, and what is to be closed with it."""

    def __init__(self) -> None:
        # With a factory the runner does not put its loop in the place of the thread's current
        # one: that may be another plugin's, which would be lost unclosed.
        self._runner = asyncio.Runner(loop_factory=_create_loop)
        self._closings: list[Callable[[], Awaitable[None]]] = []
        self.running: list[asyncio.Task[Any]] = []
        """The task of the coroutine that `run` runs, or has run last."""
        self.around: Callable[[], AbstractContextManager[None]] = nullcontext
        """Entered whenever the loop runs: other episodes' tasks may be on it."""

    @classmethod
    def find(cls, config: pytest.Config) -> SessionLoop:
        """Return the process's loop; pytest closes it, however the session ends."""
        if LOOP not in config.stash:
            config.stash[LOOP] = cls()
            config.add_cleanup(config.stash[LOOP].close)
        return config.stash[LOOP]

    def run(self, coroutine: Coroutine[Any, Any, T], context: Context | None = None) -> T:
        """Run a coroutine to its end, in a context of its own if one is given; Ctrl-C cancels it.

        So does what a signal raises while the loop waits, such as pytest-timeout's: nobody
        else would let the coroutine clean up.
        """
        held = self.running = []
        with self.around():
            try:
                return self._runner.run(_run_registered(coroutine, held), context=context)
            except BaseException:
                if held and not held[0].done():
                    held[0].cancel()
                    self._runner.run(_wait_for_cancelled(held[0]))
                raise

    def run_awaitable(self, awaitable: Awaitable[T]) -> T:
        """Run an awaitable, a coroutine or not, to its end."""
        return self.run(_wrap_awaitable(awaitable))

    def step(self) -> None:
        """Let the loop do what is ready, and look once for what has come; wait for nothing."""
        with self.around():
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop itself, whether it runs now or not."""
        return self._runner.get_loop()

    @property
    def is_running(self) -> bool:
        """Whether the caller runs on this very loop."""
        try:
            return asyncio.get_running_loop() is self._runner.get_loop()
        except RuntimeError:
            return False

    @property
    def is_occupied(self) -> bool:
        """Whether nothing can be run to its end now: this loop or the caller's own is running."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._runner.get_loop().is_running()
        return True

    def close_with(self, closing: Callable[[], Awaitable[None]]) -> None:
        """Await `closing` on the loop before it is closed; the latest first."""
        self._closings.append(closing)

    def close(self) -> None:
        """Close what lives on the loop, then the loop."""
        try:
            for closing in reversed(self._closings):
                self._runner.run(_wrap_awaitable(closing()))
        finally:
            self._runner.close()


def _create_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ContextExecutor(thread_name_prefix="asyncio"))
    return loop


async def _run_registered(coroutine: Coroutine[Any, Any, T], held: list[asyncio.Task[Any]]) -> T:
    if (task := asyncio.current_task()) is not None:
        held.append(task)
    return await coroutine


async def _wait_for_cancelled(task: asyncio.Task[Any]) -> None:
    """Wait for a task that was cancelled, and for what it still has to do."""
    await asyncio.wait([task], timeout=CLEAN_UP_S)
    if task.done() and not task.cancelled():
        task.exception()  # seen: what interrupted it is what is raised


async def _wrap_awaitable(awaitable: Awaitable[T]) -> T:
    return await awaitable
