"""Concurrent execution of independent reads. Writes are sent one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

MAX_CONCURRENT = 4
"""Maximum number of concurrent requests; GitHub allows a hundred per user."""


class PerThread(threading.local, Generic[_Result]):
    """One object per thread, created on first use."""

    def __init__(self, make: Callable[[], _Result]) -> None:
        self.own = make()


def run_concurrently(work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Return the results of `work` for a few items, in order; each item runs in a thread.

    Raises the error of the first item that failed, after all have ended. If the wait is
    interrupted, the remaining threads end with the process.
    """
    results: dict[int, _Result] = {}
    errors: dict[int, Exception] = {}

    def run_item(number: int) -> None:
        try:
            results[number] = work(items[number])
        except Exception as error:  # noqa: BLE001 - raised below
            errors[number] = error

    threads = [
        threading.Thread(target=run_item, args=(number,), daemon=True)
        for number in range(1, len(items))
    ]
    for thread in threads:
        thread.start()
    if items:
        run_item(0)
    for thread in threads:
        thread.join()
    for number in sorted(errors):
        raise errors[number]
    return [results[number] for number in range(len(items))]
