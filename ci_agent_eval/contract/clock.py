"""The clock of latencies, which no library that freezes the date can replace."""

from __future__ import annotations

import time
from collections.abc import Callable


def read_clock(clock: Callable[[], float] = time.perf_counter) -> float:
    """Return seconds from any fixed point.

    freezegun replaces the functions in modules, not a default argument that was bound before.
    """
    return clock()
