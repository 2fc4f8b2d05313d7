"""The event loop that all async episodes of a process share.

The engine's tool servers and connections live on it, so that they start once and not for each test.
It is created for the first async episode.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import Context, copy_context
from functools import partial
from threading import get_ident
from typing import Any, TypeVar

import pytest

from ci_agent_eval.pytest_plugin.concurrency.alarm import guard_alarm
from ci_agent_eval.recording.active_episode import (
    EpisodeCancelledError,
    get_active_episode,
    is_episode_thread,
)

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

T = TypeVar("T")

CLEAN_UP_S = 60.0
"""Seconds that interrupted code may take to end."""

WATCHED_CLEAN_UP_S = 5.0
"""The same after Ctrl-C in `agent-eval run`, which kills pytest 10 s after the signal.

GitHub's runner sends a second signal after 7.5 s.
"""

_MARGIN_S = 0.5
"""By how much longer a task may take than its thread, whose own limit gives the reason."""

LOOP = pytest.StashKey["SessionLoop"]()


class ContextExecutor(ThreadPoolExecutor):
    """Runs each call in its caller's context, so that its episode is known."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Submit a call in a copy of the caller's context, like `asyncio.to_thread`."""
        return super().submit(partial(copy_context().run, fn), *args, **kwargs)


class SessionLoop:
    """One runner for all async episodes, and callbacks to close their resources."""

    def __init__(self) -> None:
        # With a factory the runner does not replace the thread's current loop, which may be
        # another plugin's and would never be closed.
        self._runner = asyncio.Runner(loop_factory=_create_loop)
        self._closings: list[Callable[[], Awaitable[None]]] = []
        self.running: list[asyncio.Task[Any]] = []
        """The task of the coroutine that `run` currently runs, or ran last."""
        self._interruption: BaseException | None = None
        self.around: Callable[[], AbstractContextManager[None]] = nullcontext
        """Context manager around each run of the loop, as other episodes' tasks may run, too."""
        self.owner: int | None = None
        """The only thread that runs the loop; None: any may, except threads of episodes."""
        self._calls: dict[int, asyncio.Task[Any] | None] = {}
        """The tasks that other threads wait for, by thread; None: it has not started."""
        self.clean_up_s = CLEAN_UP_S
        """Seconds that interrupted code may take to end."""
        self._clean_up_end: float | None = None
        """When the clean-up of the whole run ends, by `time.monotonic`; None: it has not begun."""

    @classmethod
    def find(cls, config: pytest.Config) -> SessionLoop:
        """Return the process's loop; pytest closes it, however the session ends."""
        if LOOP not in config.stash:
            config.stash[LOOP] = cls()
            config.add_cleanup(config.stash[LOOP].close)
        return config.stash[LOOP]

    def run(self, coroutine: Coroutine[Any, Any, T], context: Context | None = None) -> T:
        """Run a coroutine to completion, in the given context; Ctrl-C cancels it.

        An exception of a signal handler, such as pytest-timeout's, cancels it too: otherwise the
        coroutine could not clean up.
        """
        if is_episode_thread() or self.owner not in (None, get_ident()):
            return self.call(coroutine, context)
        tasks = self.running = []
        self._interruption = None
        with self.around(), guard_alarm(self.loop, self._interrupt):
            try:
                return self._runner.run(_run_registered(coroutine, tasks), context=context)
            except BaseException:
                if tasks and not tasks[0].done():
                    tasks[0].cancel()
                    self._runner.run(self.wait_for_cancelled(tasks))
                if self._interruption is not None:
                    raise self._interruption from None
                raise

    def call(self, coroutine: Coroutine[Any, Any, T], context: Context | None = None) -> T:
        """Wait in another thread for a coroutine that the loop's own thread runs.

        Raises EpisodeCancelledError if the run has cancelled the thread's episode.
        """
        thread, result = get_ident(), Future[T]()
        self._calls[thread] = None

        def start() -> None:
            task = self._calls[thread] = self.loop.create_task(coroutine, context=context)
            task.add_done_callback(lambda ended: _copy_result(ended, result))

        try:
            self.loop.call_soon_threadsafe(start)
            return result.result()
        except EpisodeCancelledError:
            self.loop.call_soon_threadsafe(self.cancel_call, thread)
            with suppress(BaseException):
                result.result()  # the coroutine cleans up
            raise
        except asyncio.CancelledError:
            if (episode := get_active_episode()) is not None:
                episode.refuse_cancelled()
            raise
        finally:
            if self._calls.pop(thread, None) is None:
                coroutine.close()  # never started: the loop is closed, as the run has ended

    def is_called_by(self, thread: int) -> bool:
        """Return whether a thread waits in `call`."""
        return thread in self._calls

    def cancel_call(self, thread: int) -> bool:
        """Cancel the task that a thread waits for; return whether there is one."""
        task = self._calls.get(thread)
        return task is not None and task.cancel()

    def _interrupt(self, error: BaseException) -> None:
        """Cancel the coroutine, and let `run` raise this exception of a signal handler."""
        self._interruption = error
        # The task's first step, which registers it, may be waiting in the loop before this.
        self.loop.call_soon_threadsafe(lambda: self.running and self.running[0].cancel())

    def begin_clean_up(self, config: pytest.Config) -> None:
        """Let all interrupted code together clean up in one time, as the run ends."""
        if self._clean_up_end is None:
            if config.option.episode_watched:
                self.clean_up_s = min(self.clean_up_s, WATCHED_CLEAN_UP_S)
            self._clean_up_end = time.monotonic() + self.clean_up_s

    def end_clean_up(self) -> None:
        """Wait for interrupted code no longer."""
        self._clean_up_end = time.monotonic()

    @property
    def clean_up_left_s(self) -> float:
        """The seconds that code interrupted now may take to end."""
        if self._clean_up_end is None:
            return self.clean_up_s
        return max(self._clean_up_end - time.monotonic(), 0.0)

    async def wait_for_cancelled(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        """Wait until cancelled tasks have cleaned up; cancel those again that take too long."""
        if tasks:
            await asyncio.wait(tasks, timeout=self.clean_up_left_s + _MARGIN_S)
        if late := [task for task in tasks if not task.done()]:
            for task in late:
                task.cancel()
            await asyncio.wait(late, timeout=_MARGIN_S)
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # retrieved, as no code awaits it any more

    def run_awaitable(self, awaitable: Awaitable[T]) -> T:
        """Run any awaitable to completion."""
        return self.run(_wrap_awaitable(awaitable))

    def step(self) -> None:
        """Run the callbacks that are ready and poll once for events, without waiting."""
        with self.around():
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop itself, running or not."""
        return self._runner.get_loop()

    @property
    def is_running(self) -> bool:
        """Whether the caller runs on this loop."""
        try:
            return asyncio.get_running_loop() is self._runner.get_loop()
        except RuntimeError:
            return False

    @property
    def is_occupied(self) -> bool:
        """Whether `run` is impossible: a loop runs in this thread, or this loop for others.

        The thread of an episode can always wait for what the loop's own thread runs.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            is_other = self.owner not in (None, get_ident())
            return not is_episode_thread() and (is_other or self._runner.get_loop().is_running())
        return True

    def close_with(self, closing: Callable[[], Awaitable[None]]) -> None:
        """Await `closing` on the loop before it is closed; the latest first."""
        self._closings.append(closing)

    def close(self) -> None:
        """Await the closing callbacks, then close the loop."""
        try:
            for closing in reversed(self._closings):
                self._runner.run(_wrap_awaitable(closing()))
        finally:
            self._runner.close()


def _create_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ContextExecutor(thread_name_prefix="asyncio"))
    return loop


def _copy_result(task: asyncio.Task[T], result: Future[T]) -> None:
    if task.cancelled():
        result.set_exception(asyncio.CancelledError())
    elif (error := task.exception()) is not None:
        result.set_exception(error)
    else:
        result.set_result(task.result())


async def _run_registered(coroutine: Coroutine[Any, Any, T], tasks: list[asyncio.Task[Any]]) -> T:
    if (task := asyncio.current_task()) is not None:
        tasks.append(task)
    return await coroutine


async def _wrap_awaitable(awaitable: Awaitable[T]) -> T:
    return await awaitable
