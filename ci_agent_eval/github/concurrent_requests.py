"""Requests in flight together: reads that do not depend on each other. Writes go one by one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

MAX_CONCURRENT = 4
"""Requests that are under way at a time; GitHub takes a hundred of all that use it."""


class PerThread(threading.local, Generic[_Result]):
    """One of something for each thread, made when that thread first asks."""

    def __init__(self, make: Callable[[], _Result]) -> None:
        self.own = make()


def run_concurrently(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Return what `work` makes of each item, in order, all of them at once; for a few items.

    Raises what `work` raised for the first item for which it did, once all have ended. What
    interrupts the wait leaves the others behind: they end with the process.
    """
    made: dict[int, _Result] = {}
    failed: dict[int, Exception] = {}

    def one(number: int) -> None:
        try:
            made[number] = work(items[number])
        except Exception as error:  # noqa: BLE001 - raised below
            failed[number] = error

    threads = [
        threading.Thread(target=one, args=(number,), daemon=True) for number in range(1, len(items))
    ]
    for thread in threads:
        thread.start()
    if items:
        one(0)
    for thread in threads:
        thread.join()
    for number in sorted(failed):
        raise failed[number]
    return [made[number] for number in range(len(items))]
