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
class Concurrency:
    """The limit of open requests: halved after status 429, then increased step by step.

    PydanticAI's ConcurrencyLimiter has a fixed number.
    """

    ceiling: int = 256
    allowed: float = 256
    _shrunk_at: float = float("-inf")

    def has_capacity(self, open_requests: int) -> bool:
        """Return whether another request may be opened."""
        return open_requests < max(int(self.allowed), 1)

    def shrink(self, now: float, started: float, open_requests: int) -> None:
        """Halve the limit, once for all requests that were open at the time."""
        if started < self._shrunk_at:
            return
        self._shrunk_at = now
        self.allowed = max(min(self.allowed, open_requests) / 2, 1)

    def grow(self) -> None:
        """Increase the limit by one for each round of responses."""
        self.allowed = min(self.allowed + 1 / max(self.allowed, 1), self.ceiling)


@dataclass
class Limiter:
    """The limits of one provider, for one event loop. Requests pass in order of arrival."""

    clock: Clock
    sleep: Sleep
    windows: RateWindows
    concurrency: Concurrency = field(default_factory=Concurrency)
    open_requests: int = 0
    _queue: asyncio.Lock = field(default_factory=asyncio.Lock)
    _freed: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def create(
        cls, clock: Clock, sleep: Sleep, rpm: int | None = None, tpm: int | None = None
    ) -> Limiter:
        """Create a limiter of requests and tokens per minute."""
        windows = RateWindows(clock)
        windows.lower_limits(rpm, tpm)
        return cls(clock, sleep, windows)

    @asynccontextmanager
    async def hold(
        self, estimated_tokens: float, exclude_wait: ExcludeWait
    ) -> AsyncIterator[WindowEntry]:
        """Hold a slot for a request; set the entry's amount to the used tokens."""
        entry = await self._acquire(estimated_tokens, exclude_wait)
        try:
            yield entry
        except BaseException:
            entry.amount = 0
            raise
        finally:
            self.open_requests -= 1
            self._freed.set()

    def back_off(self, started: float, pause_s: float) -> None:
        """Pause all requests and reduce the concurrency."""
        now = self.clock()
        self.windows.pause(pause_s)
        self.concurrency.shrink(now, started, self.open_requests)

    async def _acquire(self, amount: float, exclude_wait: ExcludeWait) -> WindowEntry:
        if not self._queue.locked() and isinstance(entry := self._try_acquire(amount), WindowEntry):
            return entry
        with exclude_wait():
            return await self._acquire_in_order(amount)

    async def _acquire_in_order(self, amount: float) -> WindowEntry:
        async with self._queue:
            while not isinstance(entry_or_wait := self._try_acquire(amount), WindowEntry):
                await self._wait_for_capacity(entry_or_wait)
            return entry_or_wait

    async def _wait_for_capacity(self, wait_s: float) -> None:
        if wait_s == _UNTIL_FREED:
            self._freed.clear()
            await self._freed.wait()
        else:
            await self.sleep(max(wait_s, MIN_WAIT_S))

    def _try_acquire(self, amount: float) -> WindowEntry | float:
        """Open a request, or return the seconds to wait: `_UNTIL_FREED` until another ends."""
        if not self.concurrency.has_capacity(self.open_requests):
            return _UNTIL_FREED
        entry_or_wait = self.windows.take(amount)
        if isinstance(entry_or_wait, WindowEntry):
            self.open_requests += 1
        return entry_or_wait


_UNTIL_FREED = float("inf")
