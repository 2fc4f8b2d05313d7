"""Doing the same to many things on all processors, where this system can fork without risk."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    # Most files are small and read by one process, which is not to import this.
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

MIN_ITEMS = 3
"""Things for which a process of its own is worth its start."""


def count_processors() -> int:
    """Return how many processes may work at once; 1 where forking is a risk.

    A fork takes no other thread along, and the locks that one holds stay locked. Nor does one
    of these processes start more of them.
    """
    if sys.platform != "linux" or threading.active_count() > 1 or _is_worker_process():
        return 1
    return len(os.sched_getaffinity(0))


def _is_worker_process() -> bool:
    from multiprocessing import current_process  # noqa: PLC0415 - as said above

    return current_process().daemon


def map_parallel(
    work: Callable[[_Item], _Result], items: Sequence[_Item], *, processes: int
) -> list[_Result]:
    """Return what `work` makes of each item, in order; it must be fit to be sent between processes.

    What a process of ours does not bring back, because it failed or was killed, is done here.
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
    from multiprocessing import get_context  # noqa: PLC0415 - as said above

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
        signal.signal(number, signal.SIG_DFL)  # what the parent does at them is not ours to do
    try:
        found = list(map(work, items))
    except Exception:  # noqa: BLE001 - the parent does it again, and meets it there
        return
    sender.send(found)


def _receive_results(receiver: Connection) -> Any:
    with receiver:
        try:
            return receiver.recv()
        except (EOFError, OSError):
            return None
