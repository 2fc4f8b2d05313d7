"""The budgets of a suite as limits on a run: pure arithmetic on what it has spent so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ci_agent_eval.contract.results import SUITE_BUDGET

ROUNDING = 1e-9
"""Share by which a sum of many small costs may be off. What is over by less is the gate's alone."""

_MOST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Spent:
    """What models have taken: agents', judges' and simulated users' together."""

    cost_usd: float = 0.0
    """Of what has a price."""
    tokens: int = 0
    """Input and output, of what tells them."""

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.cost_usd + other.cost_usd, self.tokens + other.tokens)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.cost_usd - other.cost_usd, self.tokens - other.tokens)


@dataclass(frozen=True, slots=True)
class SuiteLimits:
    """The most that a run may take; None sets no limit."""

    total_cost_usd: float | None = None
    total_tokens: int | None = None
    total_wall_time_s: float | None = None

    @property
    def are_set(self) -> bool:
        """Whether there is any."""
        return self != SuiteLimits()

    def exceeded(self, spent: Spent, elapsed_s: float) -> str | None:
        """Return one sentence about the first limit that is exceeded; None where none is."""
        return next(self._over(spent, elapsed_s), None)

    def _over(self, spent: Spent, elapsed_s: float) -> Iterator[str]:
        if _is_over(spent.cost_usd, self.total_cost_usd):
            used, limit = _told_apart(spent.cost_usd, self.total_cost_usd, digits=2)
            yield f"{SUITE_BUDGET} total_cost_usd exceeded: ${used} of ${limit}"
        if _is_over(spent.tokens, self.total_tokens):
            yield f"{SUITE_BUDGET} total_tokens exceeded: {spent.tokens} of {self.total_tokens}"
        if _is_over(elapsed_s, self.total_wall_time_s):
            used, limit = _told_apart(elapsed_s, self.total_wall_time_s, digits=1)
            yield f"{SUITE_BUDGET} total_wall_time_s exceeded: {used} s of {limit} s"


def _is_over(used: float, limit: float | None) -> bool:
    return limit is not None and used > limit * (1 + ROUNDING)


def _told_apart(used: float, limit: float | None, *, digits: int) -> tuple[str, str]:
    """Return two figures with as few digits as show the limit whole, and that it is exceeded."""
    assert limit is not None  # noqa: S101 - it is exceeded
    for places in range(digits, _MOST_DIGITS):
        told, whole = f"{used:.{places}f}", f"{limit:.{places}f}"
        if float(whole) == limit and float(told) > limit:
            return told, whole
    return repr(used), repr(limit)
