"""Retry policy for GitHub requests. Sleep and clock are parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import Literal, TypeVar

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api_errors import AmbiguousWriteError, OutOfPatienceError

T = TypeVar("T")
Sleep = Callable[[float], None]
Clock = Callable[[], float]
Level = Literal["notice", "warning"]
Log = Callable[[Level, str], None]

TRIES = 5
"""Maximum attempts of one request, or of one write that must take effect once."""

_RATE_LIMITED = frozenset({403, 429})
_SECONDARY_S = 60.0
"""Minimum wait for a rate limit without a hint, from GitHub's documentation."""


class WaitBudget:
    """Limit for one run's total waiting time, shared by all its requests."""

    def __init__(self, limit_s: float, sleep: Sleep, log: Log) -> None:
        self._limit_s = limit_s
        self._sleep = sleep
        self._log = log
        self._spent_s = 0.0
        self._one_at_a_time = threading.Lock()

    def wait(self, seconds: float, why: str) -> None:
        """Wait and log it; raises OutOfPatienceError if the total would exceed the limit."""
        with self._one_at_a_time:
            self._wait(seconds, why)

    def _wait(self, seconds: float, why: str) -> None:
        if self._spent_s + seconds > self._limit_s:
            raise OutOfPatienceError(
                f"{why}, which asks for {seconds:.0f} s of waiting; this run may wait "
                f"{self._limit_s:.0f} s in all and has waited {self._spent_s:.0f} s. "
                "Run the job again later."
            )
        self._spent_s += seconds
        self._log("notice", f"{why}: waiting {seconds:.0f} s, then trying again.")
        self._sleep(seconds)


class WritePacer:
    """Spaces out writes after the first few: GitHub asks for a second between them.

    The first writes of a run have no pause, which is enough for most runs: 300 annotations take
    nine writes. GitHub allows 80 per minute (its REST API's secondary rate limits).
    """

    def __init__(self, clock: Clock, sleep: Sleep, *, free: int = 10, apart_s: float = 1.0) -> None:
        self._clock = clock
        self._sleep = sleep
        self._free = free
        self._apart_s = apart_s
        self._last = 0.0

    def before_write(self) -> None:
        """Wait until the last write is long enough ago."""
        too_soon = self._last + self._apart_s - self._clock()
        if self._free > 0:
            self._free -= 1
        elif too_soon > 0:
            self._sleep(too_soon)
        self._last = self._clock()


def may_retry(method: str, status: int) -> bool:
    """Decide whether a status allows repeating the request without reading the state first.

    A 403 is decided later by its body. A write with a 5xx may have taken effect.
    """
    return status in _RATE_LIMITED or (method == "GET" and status >= 500)


def compute_retry_pause(
    status: int | None, headers: Mapping[str, str], *, failures: int, now: float
) -> float:
    """Return the seconds to wait after the `failures`-th failure (from 1) of one request.

    `status` is None for a cut connection; `headers` have lower-case names; `now` is seconds since
    1970. The order is GitHub's: Retry-After, the limit's reset, a minute that doubles.
    """
    requested = _parse_retry_after(headers.get("retry-after", ""), now)
    if requested is not None:
        return requested
    if status not in _RATE_LIMITED:
        return 2.0 ** (failures - 1)
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and _is_number(reset):
        # One more second, as the limit may be lifted at any time within it.
        return max(0.0, int(reset) - now) + 1
    return _SECONDARY_S * 2.0 ** (failures - 1)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _parse_retry_after(text: str, now: float) -> float | None:
    """Parse Retry-After in seconds or as a date; None for neither."""
    if _is_number(text.strip()):
        return float(text)
    date = parsedate_tz(text) if text else None
    return float(max(0, mktime_tz(date) - now)) if date else None


def retry_ambiguous(attempt: Callable[[int], T], wait: Callable[[float, str], None]) -> T:
    """Call `attempt(0)`; after each ambiguous failure, wait and call it with 1, 2, ….

    From 1 on, `attempt` must read whether the earlier write took effect before it writes. Refused
    reads are retried, too: GitHub may answer 404 for an object it has just created. Raises
    AmbiguousWriteError if the result stays unknown, and other errors of `attempt(0)`.
    """
    try:
        return attempt(0)
    except AmbiguousWriteError as error:
        unclear = error
    refused: PublishError | None = None
    for number in range(1, TRIES):
        try:
            wait(2.0 ** (number - 1), str(refused or unclear).rstrip("."))
            return attempt(number)
        except AmbiguousWriteError as error:
            unclear, refused = error, None
        except OutOfPatienceError as error:
            refused = error
            break
        except PublishError as error:
            refused = error
    if refused is None:
        raise unclear
    raise AmbiguousWriteError(
        f"{unclear} It is not known whether it was done all the same: {refused}"
    ) from refused
