"""Rate limits of a provider, kept by every episode that asks it.

The provider's own library would retry as well, out of sight of the limiter and of the
count; it is told not to.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
)
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.engine.response_stamp import stamp_response
from ci_agent_eval.engine.run_record import Clock
from ci_agent_eval.storage.ledger.rate_windows import ProcessRateWindows, RateWindows, WindowEntry

Sleep = Callable[[float], Awaitable[object]]
"""Waits so many seconds."""

MAX_RATE_LIMIT_RETRIES = 8
"""How often a request that was answered 429 is sent again."""
MAX_TRANSIENT_RETRIES = 2
"""How often after a 5xx or a broken connection, as the providers' own libraries do."""
MAX_RETRY_AFTER_S = 120.0
"""A server that asks for a longer wait has said no."""
FIRST_BACKOFF_S = 0.5
MAX_BACKOFF_S = 20.0
MIN_WAIT_S = 0.001
"""Shorter waits may be lost in the clock's rounding, and would be waited for again and again."""
CHARACTERS_PER_TOKEN = 4


def compute_backoff_s(attempt: int, retry_after: float | None) -> float:
    """Return the wait before the next attempt (the first that failed is 1)."""
    if retry_after is not None:
        return retry_after
    return min(FIRST_BACKOFF_S * 2.0 ** (attempt - 1), MAX_BACKOFF_S)


@dataclass
class RateLimitTally:
    """What one run saw of the limits."""

    rate_limited: int = 0
    """Answers that said: too many."""
    retried: int = 0
    """Requests sent again for any other reason."""
    waited: Callable[[bool], None] | None = None
    """Called with True when the run begins to wait for a limit, and with False when it ends."""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Say that the time within is not the agent's."""
        if self.waited is not None:
            self.waited(True)
        try:
            yield
        finally:
            if self.waited is not None:
                self.waited(False)


@dataclass
class Concurrency:
    """How many requests may be open: halved when told "too many", grown one by one after.

    PydanticAI's ConcurrencyLimiter has a fixed number.
    """

    ceiling: int = 256
    allowed: float = 256
    _shrunk_at: float = float("-inf")

    def has_capacity(self, open_requests: int) -> bool:
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


@dataclass
class Limiter:
    """The limits of one provider, for one event loop. Requests pass in order of arrival."""

    clock: Clock
    sleep: Sleep
    windows: RateWindows
    concurrency: Concurrency = field(default_factory=Concurrency)
    open_requests: int = 0
    rate_limited: int = 0
    _queue: asyncio.Lock = field(default_factory=asyncio.Lock)
    _freed: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(
        cls,
        clock: Clock,
        sleep: Sleep,
        rpm: int | None = None,
        tpm: int | None = None,
        windows: RateWindows | None = None,
    ) -> Limiter:
        """Return a limiter for so many requests and tokens a minute.

        `windows` are those that other processes know of; unset: this process's own.
        """
        windows = windows or ProcessRateWindows(clock)
        windows.lower_limits(rpm, tpm)
        return cls(clock, sleep, windows)

    @asynccontextmanager
    async def turn(
        self, estimated_tokens: float, tally: RateLimitTally
    ) -> AsyncIterator[WindowEntry]:
        """Wait for room, and hold it; set the entry's amount to the tokens really used."""
        entry = await self._enter(estimated_tokens, tally)
        try:
            yield entry
        except BaseException:
            entry.amount = 0
            raise
        finally:
            self.open_requests -= 1
            self._freed.set()
            if entry.amount != estimated_tokens:
                self.windows.correct(entry)

    def too_many(self, started: float, pause_s: float) -> None:
        """Hold every request for a while, and let fewer through after it."""
        now = self.clock()
        self.rate_limited += 1
        self.windows.pause(pause_s)
        self.concurrency.too_many(now, started, self.open_requests)

    async def _enter(self, amount: float, tally: RateLimitTally) -> WindowEntry:
        if not self._queue.locked() and isinstance(entry := self._taken(amount), WindowEntry):
            return entry
        with tally.waiting():
            return await self._queued(amount)

    async def _queued(self, amount: float) -> WindowEntry:
        async with self._queue:
            try:
                while not isinstance(taken := self._taken(amount), WindowEntry):
                    await self._wait(taken)
            except BaseException:
                self.windows.cancel_wait()
                raise
            return taken

    async def _wait(self, wait_s: float) -> None:
        if wait_s == _UNTIL_FREED:
            self._freed.clear()
            await self._freed.wait()
        else:
            await self.sleep(max(wait_s, MIN_WAIT_S))

    def _taken(self, amount: float) -> WindowEntry | float:
        """Open a request, or return seconds to wait: `_FOR_ROOM` until an open one ends."""
        if not self.concurrency.has_capacity(self.open_requests):
            return _UNTIL_FREED
        taken = self.windows.take(amount)
        if isinstance(taken, WindowEntry):
            self.open_requests += 1
        return taken


_UNTIL_FREED = float("inf")


class RateLimitedModel(WrapperModel):
    """A model whose requests keep a provider's limits; made for one run, it counts in `tally`."""

    def __init__(self, wrapped: Model, limiter: Limiter, tally: RateLimitTally) -> None:
        super().__init__(wrapped)
        self.limiter = limiter
        self.tally = tally

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the model, waiting for the limits and trying again where that can help."""
        settings = self._unretried(model_settings or ModelSettings())
        tried = _FailureCounts()
        while True:
            try:
                return await self._once(messages, settings, model_request_parameters)
            except ModelAPIError as error:
                if not tried.may_go_on(error):
                    raise
                await self._before_next(error, tried)

    async def _once(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        limiter = self.limiter
        async with limiter.turn(self._estimate(messages, settings), self.tally) as entry:
            started = limiter.clock()
            try:
                response = await self.wrapped.request(messages, settings, parameters)
            except ModelRateLimitError as error:
                self.tally.rate_limited += 1
                limiter.too_many(started, compute_backoff_s(1, _cap_retry_after(error.retry_after)))
                raise
            stamp_response(response, latency_ms=convert_to_ms(limiter.clock() - started))
            limiter.concurrency.answered()
            if not response.usage.unmeasured_requests:
                entry.amount = response.usage.total_tokens
            return response

    def _unretried(self, settings: ModelSettings) -> ModelSettings:
        """Return settings under which the provider's library does not retry."""
        client = getattr(self.wrapped, "client", None)
        if getattr(client, "max_retries", None) == 0:
            return settings
        return ModelSettings(**{**settings, "max_retries": 0})

    async def _before_next(self, error: ModelAPIError, tried: _FailureCounts) -> None:
        """Wait; after a 429 at least the limiter's pause, and longer each time without a hint."""
        if not isinstance(error, ModelRateLimitError):
            self.tally.retried += 1
        with self.tally.waiting():
            await self.limiter.sleep(compute_backoff_s(tried.failed, error.retry_after))

    def _estimate(self, messages: list[ModelMessage], settings: ModelSettings) -> float:
        """Guess the tokens of a request; corrected once the response says."""
        if not self.limiter.windows.counts_tokens:
            return 0
        return _count_characters(messages) / CHARACTERS_PER_TOKEN + settings.get("max_tokens", 0)


@dataclass
class _FailureCounts:
    """How often one request failed, by kind."""

    too_many: int = 0
    transient: int = 0

    @property
    def failed(self) -> int:
        return self.too_many + self.transient

    def may_go_on(self, error: ModelAPIError) -> bool:
        """Count the failure, and say whether another attempt can help."""
        if (error.retry_after or 0) > MAX_RETRY_AFTER_S:
            return False
        if isinstance(error, ModelRateLimitError):
            self.too_many += 1
            return self.too_many <= MAX_RATE_LIMIT_RETRIES
        if not _is_transient(error):
            return False
        self.transient += 1
        return self.transient <= MAX_TRANSIENT_RETRIES


def _is_transient(error: ModelAPIError) -> bool:
    """Say whether asking again can help; the provider's own word (`x-should-retry`) counts most."""
    if isinstance(error, ModelHTTPError) and error.provider_retry_hint is not None:
        return error.provider_retry_hint
    return isinstance(error, ModelServerError | ModelUnavailableError | ModelConnectionError)


def _cap_retry_after(retry_after: float | None) -> float | None:
    return None if retry_after is None else min(retry_after, MAX_RETRY_AFTER_S)


def _count_characters(messages: list[ModelMessage]) -> int:
    total = 0
    for message in messages:
        total += sum(len(str(getattr(part, "content", ""))) for part in message.parts)
        total += len(message.instructions or "") if isinstance(message, ModelRequest) else 0
    return total
