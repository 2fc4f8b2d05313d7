"""A deadline that is paused while a run waits for rate limits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass
class PausableDeadline:
    """Pauses a deadline while the run waits for a rate limit."""

    deadline: asyncio.Timeout
    _remaining_s: float | None = None

    def set_waiting(self, is_waiting: bool) -> None:
        """Pause the deadline, or resume it with the remaining time."""
        now = asyncio.get_running_loop().time()
        when = self.deadline.when()
        if self.deadline.expired():
            return
        if is_waiting and when is not None:
            self._remaining_s = when - now
            self.deadline.reschedule(None)
        elif not is_waiting and self._remaining_s is not None:
            self.deadline.reschedule(now + self._remaining_s)
            self._remaining_s = None
