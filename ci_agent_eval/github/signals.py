"""A signal that ends the process, as an exception: so that publishing tidies up before it goes.

GitHub cancels a job with SIGINT, 7.5 s later with SIGTERM, and after 2.5 s more it kills; `docker
stop` sends SIGTERM and kills after 10 s. In a container this program is process 1, for which
SIGTERM does nothing at all unless there is a handler.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

GRACE_S = 5.0
"""How long tidying up may take after the first signal; less than anybody waits before a kill."""

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TIME_IS_UP = signal.SIGALRM


class Terminated(BaseException):
    """Somebody asked this process to end; `number` is the signal they asked with.

    It is no Exception, so that nothing takes it for a request that failed.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = signal.Signals(number)

    @property
    def exit_code(self) -> int:
        """What a process ends with after this signal: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.number


@contextmanager
def raise_on_termination(*, grace_s: float = GRACE_S) -> Iterator[None]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into Terminated, wherever the program stands.

    Later ones change nothing: whoever tidies up has `grace_s` seconds, and then Terminated is
    raised again. A signal that was ignored before stays ignored. Outside of the main thread,
    where Python allows no handlers, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handle = _build_handler(grace_s)
    with _install_handlers(dict.fromkeys((*_ENDING, _TIME_IS_UP), handle)):
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


_Handler = Callable[[int, FrameType | None], None]


def _build_handler(grace_s: float) -> _Handler:
    """Return what is done about each signal; it remembers the first."""
    first: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        if first and number != _TIME_IS_UP:
            return
        if not first:
            first.append(number)
            signal.setitimer(signal.ITIMER_REAL, grace_s)
        raise Terminated(first[0])

    return handle


@contextmanager
def _install_handlers(handlers: dict[signal.Signals, _Handler]) -> Iterator[None]:
    """Set handlers, and put back what was there; leave alone what is ignored or not Python's."""
    found = {number: signal.getsignal(number) for number in handlers}
    before = {number: old for number, old in found.items() if old not in {None, signal.SIG_IGN}}
    try:
        for number in before:
            signal.signal(number, handlers[number])
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
