"""The thread of a plain `def` episode: its test, its cancellation, and its loss.

A thread cannot be cancelled like a task. It is interrupted by an exception that Python raises
between two of its instructions. A call that blocks is not interrupted: its thread is abandoned.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from threading import Lock, Thread, get_ident
from types import FrameType, SimpleNamespace
from typing import Any, TypeVar

from ci_agent_eval.pytest_plugin.concurrency.output import hold_output, is_holding
from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop
from ci_agent_eval.recording.active_episode import (
    EpisodeCancelledError,
    is_owner_thread,
    mark_episode_thread,
)

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

T = TypeVar("T")

WAKE_UP_S = 0.2
"""Seconds between two steps of a loop that waits only for threads. The system may give a signal to
any thread; Python handles it in its main thread, which sleeps in the loop."""

RETRY_S = 0.01
"""Seconds until the next attempt at an interruption."""

_UNSAFE_PACKAGES = frozenset(
    {"ci_agent_eval", "concurrent", "contextlib", "importlib", "logging", "queue"}
)
_UNSAFE_FUNCTIONS = frozenset(
    {"__enter__", "__exit__", "acquire", "release", "_acquire_restore", "_release_save"}
)
"""Code that may hold a lock or have begun a transaction, and would leave it so: other threads, and
at last pytest itself, would wait for it."""


_lost: set[int | None] = set()
"""The threads whose interruption came in code that cannot raise, such as `__del__`."""


def route_unraisable_errors() -> Callable[[], None]:
    """Route exceptions of code that cannot raise, such as `__del__`; return what ends this.

    Before version 8.4 pytest sets its own hook for each phase, so that this is done again.
    """
    before = sys.unraisablehook
    if isinstance(getattr(before, "__self__", None), _UnraisableErrors):
        return lambda: None
    sys.unraisablehook = _UnraisableErrors(before).show
    return lambda: setattr(sys, "unraisablehook", before)


class _UnraisableErrors:
    """Holds the exceptions of each episode for its turn; lost interruptions are noted instead."""

    def __init__(self, before: Callable[[Any], object]) -> None:
        self._before = before

    def show(self, lost: Any) -> None:
        """Pass an exception to the hook before, now or at its episode's turn."""
        if lost.exc_type is EpisodeCancelledError:
            _lost.add(get_ident())
            return
        if is_holding():
            # The object is being deleted: only its text is kept.
            kept = {name: getattr(lost, name) for name in _KEPT_FIELDS}
            kept["object"] = None if lost.object is None else _Text(repr(lost.object))
            if hold_output(partial(_show_later, SimpleNamespace(**kept))):
                return
        self._before(lost)


_KEPT_FIELDS = ("exc_type", "exc_value", "exc_traceback", "err_msg")


class _Text(str):
    """A text that is its own `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _show_later(lost: Any) -> None:
    sys.unraisablehook(lost)


class EpisodeThread:
    """Runs a test in a context; the session's loop waits for its end."""

    def __init__(
        self,
        name: str,
        context: Context,
        loop: SessionLoop,
        test: Callable[[], Any],
        end: Callable[[], None],
    ) -> None:
        """`end` is called in the thread and the context, after the test."""
        self._context = context
        self._loop = loop
        self._test = test
        self._end = end
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._lock = Lock()
        self._has_test_ended = False
        """Whether the thread may no longer be interrupted."""
        self._is_interrupted = False
        self._has_timed_out = False
        self._ended: asyncio.Future[None] | None = None
        self.is_in_context = False
        """Whether the thread uses the context, which no other thread can enter."""
        self.returned: Any = None
        self.error: BaseException | None = None

    async def run(self, on_cancel: Callable[[], None]) -> None:
        """Run the thread to its end; after a cancellation only for the loop's clean-up."""
        self._ended = asyncio.get_running_loop().create_future()
        self.is_in_context = True
        try:
            self._thread.start()
        except RuntimeError:  # the system has no more threads
            self.is_in_context = False
            raise
        try:
            while not self._ended.done():
                await asyncio.wait([self._ended], timeout=WAKE_UP_S)
        except asyncio.CancelledError:
            on_cancel()
            await self._interrupt()
            ending = EpisodeCancelledError | asyncio.CancelledError
            if self.is_in_context or isinstance(self.error, ending):
                raise

    async def _interrupt(self) -> None:
        """Interrupt the test as soon as that is safe, and wait for the thread's end."""
        assert self._ended is not None  # noqa: S101 - it was started
        route_unraisable_errors()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._loop.clean_up_left_s
        while not self._ended.done():
            pause = WAKE_UP_S if self._try_to_interrupt() else RETRY_S
            if (left := deadline - loop.time()) <= 0:
                break
            await asyncio.wait([self._ended], timeout=min(pause, left))
        self._has_timed_out = not self._ended.done()

    def describe_loss(self) -> str:
        """Return a text about the thread, which goes on after its episode."""
        limit = f" within {self._loop.clean_up_s:g} s" if self._has_timed_out else ""
        return f"its thread did not end{limit}"

    def _try_to_interrupt(self) -> bool:
        """Interrupt what the thread waits for, or its code; return whether that is done."""
        with self._lock:
            thread = self._thread.ident
            if thread in _lost:
                _lost.discard(thread)
                self._is_interrupted = False
            if self._has_test_ended or self._is_interrupted or thread is None:
                return True
            frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented for debuggers
            if self._loop.is_called_by(thread):
                self._is_interrupted = self._loop.cancel_call(thread)
            elif (task := _find_task(frame)) is not None:
                with suppress(RuntimeError):  # its loop was closed meanwhile
                    task.get_loop().call_soon_threadsafe(self._cancel_task, task)
            else:
                self._is_interrupted = _interrupt_thread(frame, thread)
            return self._is_interrupted

    def _cancel_task(self, task: asyncio.Task[Any]) -> None:
        """Cancel the task on the thread's own loop, unless the test was interrupted before."""
        with self._lock:  # an interruption after this one would end the test's clean-up
            if not self._is_interrupted:
                self._is_interrupted = task.cancel()

    def _run(self) -> None:
        mark_episode_thread()
        self._context.run(self._run_test)
        self.is_in_context = False
        with suppress(RuntimeError):  # the loop is closed: the run has ended without this thread
            self._loop.loop.call_soon_threadsafe(self._set_ended)

    def _run_test(self) -> None:
        try:
            self.returned = self._test()
        except BaseException as error:  # noqa: BLE001 - raised at the test's turn
            self.error = error
        # The interruption may still come, at the call of any function: here is none outside `try`.
        while not self._has_test_ended:
            try:
                with self._lock:
                    self._has_test_ended = True
            except EpisodeCancelledError as error:
                self.error = self.error or error
        try:
            self._end()
        except BaseException as error:  # noqa: BLE001 - as above
            self.error = error

    def _set_ended(self) -> None:
        if self._ended is not None:
            self._ended.set_result(None)

    def call_in_owner(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in pytest's thread, on its loop, in a copy of this context."""
        if is_owner_thread():
            return function(*arguments)
        context, result = copy_context(), Future[T]()

        def call() -> None:
            try:
                result.set_result(context.run(function, *arguments))
            except BaseException as error:  # noqa: BLE001 - raised in the calling thread
                result.set_exception(error)

        self._loop.loop.call_soon_threadsafe(call)
        return result.result()


def _interrupt_thread(frame: FrameType | None, thread: int) -> bool:
    """Raise EpisodeCancelledError in a thread; return whether that is safe, and so was done."""
    if frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in _UNSAFE_PACKAGES or frame.f_code.co_name in _UNSAFE_FUNCTIONS:
            return False
    set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_exception(ctypes.c_ulong(thread), ctypes.py_object(EpisodeCancelledError))
    return True


def _find_task(frame: FrameType | None) -> asyncio.Task[Any] | None:
    """Return the task that the thread runs on its own event loop, as by `asyncio.run`."""
    while frame is not None and frame.f_code.co_name != "run_until_complete":
        frame = frame.f_back
    task = None if frame is None else frame.f_locals.get("future")
    return task if isinstance(task, asyncio.Task) else None
