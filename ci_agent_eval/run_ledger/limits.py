"""The budgets of a suite as limits on a run: pure arithmetic on what it has spent so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ci_agent_eval.contract.suite_stop import SuiteBudgetName, SuiteStop

ROUNDING = 1e-9
"""Share by which a sum of many small costs may be off. What is over by less is the gate's alone."""


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

    def exceeded(self, spent: Spent, elapsed_s: float) -> SuiteStop | None:
        """Return the first limit that is exceeded; None where none is."""
        return next(self._over(spent, elapsed_s), None)

    def _over(self, spent: Spent, elapsed_s: float) -> Iterator[SuiteStop]:
        found: tuple[tuple[SuiteBudgetName, float, float | None], ...] = (
            ("total_cost_usd", spent.cost_usd, self.total_cost_usd),
            ("total_tokens", spent.tokens, self.total_tokens),
            ("total_wall_time_s", elapsed_s, self.total_wall_time_s),
        )
        for name, used, limit in found:
            if limit is not None and used > limit * (1 + ROUNDING):
                yield SuiteStop(name, used, limit)
