"""The arithmetic of rate limits: a sliding window, and a concurrency that adapts. Pure.

The libraries at hand (aiolimiter, PydanticAI's ConcurrencyLimiter) take no clock, cannot
be corrected when a response says what a request really used, and have a fixed
concurrency; these two values are what is left without them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MINUTE_S = 60.0


@dataclass
class Entry:
    """What one request takes of a window; corrected once it is known."""

    at: float
    amount: float


@dataclass
class Window:
    """At most `limit` in any `span_s` seconds."""

    limit: float
    span_s: float = MINUTE_S
    _entries: deque[Entry] = field(default_factory=deque)

    def wait_s(self, now: float, amount: float) -> float:
        """Return how long `amount` waits; what is beyond the limit waits for an empty window."""
        self._forget(now)
        room = self.limit - sum(entry.amount for entry in self._entries)
        if amount <= room or not self._entries:
            return 0.0
        for entry in self._entries:
            room += entry.amount
            if amount <= room:
                return max(entry.at + self.span_s - now, 0.0)
        return max(self._entries[-1].at + self.span_s - now, 0.0)

    def add(self, now: float, amount: float) -> Entry:
        """Take `amount` now; set the entry's `amount` when it is known better."""
        entry = Entry(now, amount)
        self._entries.append(entry)
        return entry

    def _forget(self, now: float) -> None:
        while self._entries and self._entries[0].at + self.span_s <= now:
            self._entries.popleft()


@dataclass
class Concurrency:
    """How many requests may be open: halved when told "too many", grown one by one after."""

    ceiling: int = 256
    allowed: float = 256
    _shrunk_at: float = float("-inf")

    def has_room(self, open_requests: int) -> bool:
        """Say whether one more may be opened."""
        return open_requests < max(int(self.allowed), 1)

    def too_many(self, now: float, started: float, open_requests: int) -> None:
        """Halve what is allowed, once for all the requests that were open at the time."""
        if started < self._shrunk_at:
            return
        self._shrunk_at = now
        self.allowed = max(min(self.allowed, open_requests) / 2, 1)

    def answered(self) -> None:
        """Grow by one for each round of answers."""
        self.allowed = min(self.allowed + 1 / max(self.allowed, 1), self.ceiling)
