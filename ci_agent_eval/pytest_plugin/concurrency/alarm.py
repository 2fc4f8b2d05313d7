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

from ci_agent_eval.pytest_plugin.concurrency.output import is_holding

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
