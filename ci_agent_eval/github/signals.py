"""Termination signals as exceptions, so that publishing can clean up before the process ends.

GitHub cancels a job with SIGINT, 7.5 s later with SIGTERM, and kills it 2.5 s after that; `docker
stop` sends SIGTERM and kills after 10 s. In a container this program is process 1, which
ignores SIGTERM without a handler. Windows has neither SIGHUP nor an alarm, so there a cleanup
takes as long as the runner lets it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

GRACE_S = 5.0
"""Time for cleaning up after the first signal; shorter than the time until a kill."""

_ENDING: tuple[signal.Signals, ...] = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_TIME_IS_UP: signal.Signals | None = getattr(signal, "SIGALRM", None)


class Terminated(BaseException):
    """The process received the signal `number` and must end.

    Not a subclass of Exception, so that it is not handled as a failed request.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = signal.Signals(number)

    @property
    def exit_code(self) -> int:
        """The exit code for this signal: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.number


@contextmanager
def raise_on_termination(*, grace_s: float = GRACE_S) -> Iterator[None]:
    """Raise Terminated at the first SIGINT, SIGTERM or SIGHUP.

    Later signals are ignored; after `grace_s` seconds of cleanup, Terminated is raised again. A
    signal that was ignored before stays ignored. Outside of the main thread, where Python allows no
    handlers, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handle = _build_handler(grace_s)
    alarms = () if _TIME_IS_UP is None else (_TIME_IS_UP,)
    with _install_handlers(dict.fromkeys((*_ENDING, *alarms), handle)):
        try:
            yield
        finally:
            _set_alarm(0)


_Handler = Callable[[int, FrameType | None], None]


def _build_handler(grace_s: float) -> _Handler:
    """Return the signal handler; it remembers the first signal."""
    first: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        if first and number != _TIME_IS_UP:
            return
        if not first:
            first.append(number)
            _set_alarm(grace_s)
        raise Terminated(first[0])

    return handle


def _set_alarm(seconds: float) -> None:
    """Send `_TIME_IS_UP` in some seconds, 0 for never."""
    if _TIME_IS_UP is not None:
        signal.setitimer(signal.ITIMER_REAL, seconds)


@contextmanager
def _install_handlers(handlers: dict[signal.Signals, _Handler]) -> Iterator[None]:
    """Install handlers and restore the previous ones, except ignored and non-Python handlers."""
    found = {number: signal.getsignal(number) for number in handlers}
    before = {number: old for number, old in found.items() if old not in {None, signal.SIG_IGN}}
    try:
        for number in before:
            signal.signal(number, handlers[number])
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
