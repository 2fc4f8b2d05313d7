"""A provider's rate limits as sliding windows: the interface, and the windows of one process. Pure.

`shared.py` keeps them for several processes. The libraries at hand (aiolimiter, PydanticAI's
ConcurrencyLimiter) take no clock, and cannot be corrected when a response says what a request
really used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

MINUTE_S = 60.0


@dataclass
class WindowEntry:
    """What one request takes of a window; corrected once it is known."""

    at: float
    amount: float


def compute_wait_s(
    entries: Sequence[WindowEntry], limit: float, span_s: float, now: float, amount: float
) -> float:
    """Return how long `amount` waits behind entries in the order of their time.

    What is beyond the limit waits for an empty window. Entries of before the window of `now`
    count, too: take them out first.
    """
    room = limit - sum(entry.amount for entry in entries)
    if amount <= room or not entries:
        return 0.0
    for entry in entries:
        room += entry.amount
        if amount <= room:
            return max(entry.at + span_s - now, 0.0)
    return max(entries[-1].at + span_s - now, 0.0)


class RateWindows(Protocol):
    """The windows of one provider and its pause: of a process, or of all processes of a run."""

    @property
    def counts_tokens(self) -> bool:
        """Whether the tokens of requests count."""

    def lower_limits(self, requests: int | None, tokens: int | None) -> None:
        """Let the tighter of these limits and those that are known hold."""

    def take(self, amount: float) -> WindowEntry | float:
        """Take a request of so many tokens, or return the seconds to wait before asking again.

        Between the two it is the same request that asks, the only one that waits.
        """

    def correct(self, entry: WindowEntry) -> None:
        """Take notice that an entry's amount is known now."""

    def give_up(self) -> None:
        """Forget the request that waits."""

    def pause(self, seconds: float) -> None:
        """Hold every request for a while."""


@dataclass
class RateWindow:
    """At most `limit` in any `span_s` seconds."""

    limit: float
    span_s: float = MINUTE_S
    _entries: deque[WindowEntry] = field(default_factory=deque)

    def wait_s(self, now: float, amount: float) -> float:
        """Return how long `amount` waits; what is beyond the limit waits for an empty window."""
        self._forget(now)
        return compute_wait_s(self._entries, self.limit, self.span_s, now, amount)

    def add(self, now: float, amount: float) -> WindowEntry:
        """Take `amount` now; set the entry's `amount` when it is known better."""
        entry = WindowEntry(now, amount)
        self._entries.append(entry)
        return entry

    def _forget(self, now: float) -> None:
        while self._entries and self._entries[0].at + self.span_s <= now:
            self._entries.popleft()


@dataclass
class ProcessRateWindows:
    """The windows of one provider in the memory of one process."""

    clock: Callable[[], float]
    requests: RateWindow | None = None
    tokens: RateWindow | None = None
    _paused_until: float = float("-inf")

    @property
    def counts_tokens(self) -> bool:
        """Whether the tokens of requests count."""
        return self.tokens is not None

    def lower_limits(self, requests: int | None, tokens: int | None) -> None:
        """Let the tighter of these limits and those that are known hold."""
        self.requests = _lower_limit(self.requests, requests)
        self.tokens = _lower_limit(self.tokens, tokens)

    def take(self, amount: float) -> WindowEntry | float:
        """Take a request of so many tokens, or return the seconds to wait before asking again."""
        now = self.clock()
        waits = [self._paused_until - now]
        waits += [self.requests.wait_s(now, 1)] if self.requests else []
        waits += [self.tokens.wait_s(now, amount)] if self.tokens else []
        if (longest := max(waits)) > 0:
            return longest
        if self.requests is not None:
            self.requests.add(now, 1)
        return WindowEntry(now, amount) if self.tokens is None else self.tokens.add(now, amount)

    def correct(self, entry: WindowEntry) -> None:
        """Nothing: the entry is the window's own."""

    def give_up(self) -> None:
        """Nothing: who waits has taken no place."""

    def pause(self, seconds: float) -> None:
        """Hold every request for a while."""
        self._paused_until = max(self._paused_until, self.clock() + seconds)


def _lower_limit(window: RateWindow | None, limit: int | None) -> RateWindow | None:
    if limit is None or (window is not None and window.limit <= limit):
        return window
    if window is None:
        return RateWindow(limit)
    window.limit = limit
    return window
