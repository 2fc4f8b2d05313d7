"""A provider's rate limits in this process as sliding windows. Pure.

Existing libraries (aiolimiter, PydanticAI's ConcurrencyLimiter) accept no clock and no correction
once a response reports the actual usage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

MINUTE_S = 60.0


@dataclass
class WindowEntry:
    """The amount of one request in a window; corrected once it is known."""

    at: float
    amount: float
    request: WindowEntry | None = None
    """The entry of the request in the window of requests."""

    def give_back(self) -> None:
        """Free what was taken for a request that was not sent."""
        self.amount = 0
        if self.request is not None:
            self.request.amount = 0


@dataclass
class RateWindow:
    """At most `limit` in any `span_s` seconds."""

    limit: float
    span_s: float = MINUTE_S
    _entries: deque[WindowEntry] = field(default_factory=deque)

    def wait_s(self, now: float, amount: float) -> float:
        """Return the seconds until `amount` fits; above the limit it waits for an empty window."""
        self._forget(now)
        room = self.limit - sum(entry.amount for entry in self._entries)
        if amount <= room or not self._entries:
            return 0.0
        for entry in self._entries:
            room += entry.amount
            if amount <= room:
                return max(entry.at + self.span_s - now, 0.0)
        return max(self._entries[-1].at + self.span_s - now, 0.0)

    def add(self, now: float, amount: float) -> WindowEntry:
        """Take `amount` now; correct the returned entry's `amount` later."""
        entry = WindowEntry(now, amount)
        self._entries.append(entry)
        return entry

    def _forget(self, now: float) -> None:
        while self._entries and self._entries[0].at + self.span_s <= now:
            self._entries.popleft()


@dataclass
class RateWindows:
    """The rate windows and the pause of one provider."""

    clock: Callable[[], float]
    requests: RateWindow | None = None
    tokens: RateWindow | None = None
    _paused_until: float = float("-inf")

    @property
    def counts_tokens(self) -> bool:
        """Whether the tokens of requests count."""
        return self.tokens is not None

    def lower_limits(self, requests: int | None, tokens: int | None) -> None:
        """Lower the limits; a higher limit changes nothing."""
        self.requests = _lower_limit(self.requests, requests)
        self.tokens = _lower_limit(self.tokens, tokens)

    def take(self, amount: float) -> WindowEntry | float:
        """Take a request of `amount` tokens, or return the seconds to wait before the next try."""
        now = self.clock()
        waits = [self._paused_until - now]
        waits += [self.requests.wait_s(now, 1)] if self.requests else []
        waits += [self.tokens.wait_s(now, amount)] if self.tokens else []
        if (longest := max(waits)) > 0:
            return longest
        entry = WindowEntry(now, amount) if self.tokens is None else self.tokens.add(now, amount)
        entry.request = None if self.requests is None else self.requests.add(now, 1)
        return entry

    def pause(self, seconds: float) -> None:
        """Hold every request for some seconds."""
        self._paused_until = max(self._paused_until, self.clock() + seconds)


def _lower_limit(window: RateWindow | None, limit: int | None) -> RateWindow | None:
    if limit is None or (window is not None and window.limit <= limit):
        return window
    if window is None:
        return RateWindow(limit)
    window.limit = limit
    return window
