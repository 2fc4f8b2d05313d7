"""The event loop that all async episodes of a process share.

The engine's tool servers and connections live on it, so that they start once and not for each test.
It is created for the first async episode.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Context, copy_context
from functools import partial
from threading import get_ident
from types import FrameType
from typing import Any, TypeVar

import pytest

from ci_agent_eval.pytest_plugin.concurrency.output import is_holding

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

T = TypeVar("T")

CLEAN_UP_S = 60.0
"""Seconds that interrupted code may take to end."""

WATCHED_CLEAN_UP_S = 5.0
"""The same after Ctrl-C in `agent-eval run`, which kills pytest 10 s after the signal.

GitHub's runner sends a second signal after 7.5 s.
"""

_LAST_STEPS_S = 0.5
"""Seconds that code may take to end which is interrupted again, as it took too long."""

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
        """The only thread that runs the loop; None: any may."""
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
        if self._is_other_thread:
            given = copy_context() if context is None else context
            return given.run(asyncio.run_coroutine_threadsafe, coroutine, self.loop).result()
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

    def _interrupt(self, error: BaseException) -> None:
        """Cancel the coroutine, and let `run` raise this exception of a signal handler."""
        self._interruption = error
        # The task's first step, which registers it, may be waiting in the loop before this.
        self.loop.call_soon_threadsafe(lambda: self.running and self.running[0].cancel())

    def begin_clean_up(self, config: pytest.Config) -> None:
        """Let all interrupted code together clean up in one time, as the run ends."""
        if self._clean_up_end is None:
            seconds = WATCHED_CLEAN_UP_S if config.option.episode_watched else CLEAN_UP_S
            self._clean_up_end = time.monotonic() + seconds

    def end_clean_up(self) -> None:
        """Wait for interrupted code no longer."""
        self._clean_up_end = time.monotonic()

    @property
    def clean_up_left_s(self) -> float:
        """The seconds that code interrupted now may take to end."""
        if self._clean_up_end is None:
            return CLEAN_UP_S
        return max(self._clean_up_end - time.monotonic(), 0.0)

    async def wait_for_cancelled(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        """Wait until cancelled tasks have cleaned up; cancel those again that take too long."""
        if tasks:
            await asyncio.wait(tasks, timeout=self.clean_up_left_s)
        if late := [task for task in tasks if not task.done()]:
            for task in late:
                task.cancel()
            await asyncio.wait(late, timeout=_LAST_STEPS_S)
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
        """Whether `run` may block: a loop runs in this thread, or this loop for others."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._is_other_thread or self._runner.get_loop().is_running()
        return True

    @property
    def _is_other_thread(self) -> bool:
        return self.owner not in (None, get_ident())

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


async def _run_registered(coroutine: Coroutine[Any, Any, T], tasks: list[asyncio.Task[Any]]) -> T:
    if (task := asyncio.current_task()) is not None:
        tasks.append(task)
    return await coroutine


async def _wrap_awaitable(awaitable: Awaitable[T]) -> T:
    return await awaitable


TICKS = 15
"""Timer ticks that the loop may take to end the current item. Then the code that runs is ended."""

TICK_S = 1.0
"""Seconds between two ticks. They are counted because a process that the machine has suspended gets
one tick afterwards, however long that was, while a clock would charge its step with all of it."""

_SIGNAL = getattr(signal, "SIGALRM", None)


@contextmanager
def guard_alarm(
    loop: asyncio.AbstractEventLoop, interrupt: Callable[[BaseException], None]
) -> Iterator[None]:
    """Pass an alarm's exception to `interrupt` if it would not end the current item.

    That is if the alarm occurs in the code of an episode before its turn, or in the loop itself.
    """
    handler = None if _SIGNAL is None else signal.getsignal(_SIGNAL)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    alarm = _Alarm(handler, loop, interrupt)
    assert _SIGNAL is not None  # noqa: S101 - it has a handler
    signal.signal(_SIGNAL, alarm)
    try:
        yield
    finally:
        alarm.stop_ticks()
        if signal.getsignal(_SIGNAL) is alarm:
            signal.signal(_SIGNAL, handler)


class _Alarm:
    """A handler of the alarm, and of the ticks that follow until its guard ends.

    Guards may be nested: after its ticks the outer one raises in the inner one, which interrupts
    what the loop is run for, and ends the code that runs only after as many ticks again.
    """

    def __init__(
        self,
        handler: Callable[[int, FrameType | None], Any],
        loop: asyncio.AbstractEventLoop,
        interrupt: Callable[[BaseException], None],
    ) -> None:
        self._handler = handler
        self._loop = loop
        self._interrupt = interrupt
        self._ticks_left: int | None = None
        """None before the alarm."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._ticks_left:
            self._ticks_left -= 1
        if self._ticks_left:
            return
        self.stop_ticks()
        if self._ticks_left == 0 or self._may_raise():
            self._handler(number, frame)
            return
        try:
            self._handler(number, frame)
        except BaseException as error:  # noqa: BLE001 - `interrupt` raises it in the current item
            self._interrupt(error)
            self._ticks_left = TICKS
            signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)

    def _may_raise(self) -> bool:
        """Return whether the handler's exception ends the current item."""
        is_between_steps = asyncio.current_task(self._loop) is None and self._loop.is_running()
        return not is_between_steps and not is_holding()

    def stop_ticks(self) -> None:
        """Stop the timer if this alarm has set it."""
        if self._ticks_left is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
