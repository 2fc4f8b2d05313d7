"""A time limit shared by the steps of one search."""

from __future__ import annotations

import time
from collections.abc import Callable


class Deadline:
    """A point in time, `seconds` from now."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def require_time(self) -> float:
        """Return the seconds left. Raises TimeoutError if none are."""
        left = self._end - self._clock()
        if left <= 0:
            raise TimeoutError("the time limit is reached")
        return left
