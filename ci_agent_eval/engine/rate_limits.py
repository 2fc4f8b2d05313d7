"""Rate limits of a provider, shared by all episodes of this process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field

from ci_agent_eval.engine.limits import Clock

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


Sleep = Callable[[float], Awaitable[object]]
"""Sleeps for a number of seconds."""

FIRST_BACKOFF_S = 0.5
MAX_BACKOFF_S = 20.0
MIN_WAIT_S = 0.001
"""Shorter waits may be lost in the clock's rounding and would be repeated."""


def compute_backoff_s(attempt: int, retry_after: float | None) -> float:
    """Return the seconds before the next attempt; the first failed attempt is 1."""
    if retry_after is not None:
        return retry_after
    return min(FIRST_BACKOFF_S * 2.0 ** (attempt - 1), MAX_BACKOFF_S)


ExcludeWait = Callable[[], AbstractContextManager[None]]
"""Excludes the time of a `with` block from the agent's time."""


@dataclass
class Limiter:
    """The limits of one provider, for one event loop. Requests pass in order of arrival."""

    clock: Clock
    sleep: Sleep
    windows: RateWindows
    _queue: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def create(cls, clock: Clock, sleep: Sleep) -> Limiter:
        """Create a limiter without limits."""
        return cls(clock, sleep, RateWindows(clock))

    @asynccontextmanager
    async def hold(
        self, estimated_tokens: float, exclude_wait: ExcludeWait
    ) -> AsyncIterator[WindowEntry]:
        """Wait until a request may be sent; set the entry's amount to the used tokens."""
        entry = await self._acquire(estimated_tokens, exclude_wait)
        try:
            yield entry
        except BaseException:
            entry.amount = 0
            raise

    async def _acquire(self, amount: float, exclude_wait: ExcludeWait) -> WindowEntry:
        if not self._queue.locked():
            entry_or_wait = self.windows.take(amount)
            if isinstance(entry_or_wait, WindowEntry):
                return entry_or_wait
        with exclude_wait():
            async with self._queue:
                while not isinstance(entry_or_wait := self.windows.take(amount), WindowEntry):
                    await self.sleep(max(entry_or_wait, MIN_WAIT_S))
                return entry_or_wait
