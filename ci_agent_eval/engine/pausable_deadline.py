"""A deadline that stands still while a run waits for what is not its own doing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass
class PausableDeadline:
    """Stops a deadline while the run waits for a rate limit."""

    deadline: asyncio.Timeout
    _left: float | None = None

    def waiting(self, begins: bool) -> None:
        """Hold the deadline, or let it run on with the time that was left."""
        now = asyncio.get_running_loop().time()
        when = self.deadline.when()
        if self.deadline.expired():
            return
        if begins and when is not None:
            self._left = when - now
            self.deadline.reschedule(None)
        elif not begins and self._left is not None:
            self.deadline.reschedule(now + self._left)
            self._left = None
