"""Process items on all processors, if the system can fork safely."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    # Most files are small and read by one process, which should not import this.
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

MIN_ITEMS = 3
"""Minimum number of items for which starting processes is worthwhile."""


def count_processors() -> int:
    """Return how many processes may work in parallel; 1 if forking is unsafe.

    Forking is unsafe with other threads: the fork does not copy them, but the locks that they hold
    stay locked. Worker processes do not fork again, either.
    """
    if sys.platform != "linux" or threading.active_count() > 1 or _is_worker_process():
        return 1
    return len(os.sched_getaffinity(0))


def _is_worker_process() -> bool:
    from multiprocessing import current_process  # noqa: PLC0415 - see above

    return current_process().daemon


def map_parallel(
    work: Callable[[_Item], _Result], items: Sequence[_Item], *, processes: int
) -> list[_Result]:
    """Return the result of `work` for each item, in order; results must be picklable.

    If a worker process fails or is killed, its items are processed in this process.
    """
    shares = min(processes, len(items)) if len(items) >= MIN_ITEMS else 1
    started = [_start_process(work, items[share::shares]) for share in range(1, shares)]
    results: dict[int, _Result] = {}
    results |= zip(range(0, len(items), shares), map(work, items[::shares]), strict=True)
    for share, (process, receiver) in enumerate(started, start=1):
        own = items[share::shares]
        found: list[_Result] | None = _receive_results(receiver)
        process.join()
        done = list(map(work, own)) if found is None else found
        results |= zip(range(share, len(items), shares), done, strict=True)
    return [results[place] for place in range(len(items))]


def _start_process(
    work: Callable[[_Item], _Result], items: Sequence[_Item]
) -> tuple[BaseProcess, Connection]:
    from multiprocessing import get_context  # noqa: PLC0415 - see above

    fork = get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_run_worker, args=(work, items, sender), daemon=True)
    process.start()
    sender.close()
    return process, receiver


def _run_worker(
    work: Callable[[_Item], _Result], items: Sequence[_Item], sender: Connection
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # the parent's handlers must not run here
    try:
        found = list(map(work, items))
    except Exception:  # noqa: BLE001 - the parent repeats the work and raises it
        return
    sender.send(found)


def _receive_results(receiver: Connection) -> Any:
    with receiver:
        try:
            return receiver.recv()
        except (EOFError, OSError):
            return None
