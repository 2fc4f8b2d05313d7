"""Timeouts by signal, such as pytest-timeout's: they end only the current item.

Such a signal raises in the code that runs at that moment. That may be a step of another episode, or
the event loop between two steps, which only logs an exception of a callback.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

GRACE_S = 5.0
"""Seconds after which an episode that blocks the event loop is ended itself."""

_SIGNAL = getattr(signal, "SIGALRM", None)


@contextmanager
def guard_alarm(
    is_others: Callable[[asyncio.Task[Any] | None], bool],
    loop: asyncio.AbstractEventLoop,
    interrupt: Callable[[BaseException], None],
) -> Iterator[None]:
    """Pass an alarm's exception to `interrupt` if it would not end the current item.

    That is if the alarm occurs in another episode's task, or while the loop runs none.
    """
    handler = None if _SIGNAL is None else signal.getsignal(_SIGNAL)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    alarm = _Alarm(handler, is_others, loop, interrupt)
    assert _SIGNAL is not None  # noqa: S101 - it has a handler
    signal.signal(_SIGNAL, alarm)
    try:
        yield
    finally:
        if signal.getsignal(_SIGNAL) is alarm:
            signal.signal(_SIGNAL, handler)


class _Alarm:
    def __init__(
        self,
        handler: Callable[[int, FrameType | None], Any],
        is_others: Callable[[asyncio.Task[Any] | None], bool],
        loop: asyncio.AbstractEventLoop,
        interrupt: Callable[[BaseException], None],
    ) -> None:
        self._handler = handler
        self._is_others = is_others
        self._loop = loop
        self._interrupt = interrupt
        self._waits = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._may_raise(asyncio.current_task(self._loop)):
            self._handler(number, frame)
            return
        self._waits = True
        try:
            self._handler(number, frame)
        except BaseException as error:  # noqa: BLE001 - `interrupt` raises it in the current item
            self._interrupt(error)
            signal.setitimer(signal.ITIMER_REAL, GRACE_S)

    def _may_raise(self, task: asyncio.Task[Any] | None) -> bool:
        """Return whether the handler's exception ends the current item, or code that blocks."""
        is_between_steps = task is None and self._loop.is_running()
        return self._waits or not (is_between_steps or self._is_others(task))
