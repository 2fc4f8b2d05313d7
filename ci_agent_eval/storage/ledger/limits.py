"""The budgets of a suite as limits on a run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ci_agent_eval.contract.budget_kinds import SUITE_BUDGET_KINDS, SuiteBudgetKind
from ci_agent_eval.contract.suite_stop import SuiteStop

ROUNDING = 1e-9
"""Relative rounding error of a sum of many small costs; the run ignores smaller excesses."""


@dataclass(frozen=True, slots=True)
class SuiteUsage:
    """Cost and tokens of all model calls: agents, judges and simulated users."""

    cost_usd: float = 0.0
    """Cost of priced calls."""
    tokens: int = 0
    """Input and output tokens of calls that report them."""

    def __add__(self, other: SuiteUsage) -> SuiteUsage:
        return SuiteUsage(self.cost_usd + other.cost_usd, self.tokens + other.tokens)

    def __sub__(self, other: SuiteUsage) -> SuiteUsage:
        return SuiteUsage(self.cost_usd - other.cost_usd, self.tokens - other.tokens)


@dataclass(frozen=True, slots=True)
class SuiteLimits:
    """Limits of a run, by the names of the suite budgets."""

    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def elapsed_s(self) -> float | None:
        """Time limit in seconds; None: no limit."""
        return min(
            (limit for kind, limit in self._iter_limits() if kind.spent == "elapsed_s"),
            default=None,
        )

    def find_exceeded(self, spent: SuiteUsage, elapsed_s: float) -> SuiteStop | None:
        """Return the first exceeded limit; None if there is none."""
        for kind, limit in self._iter_limits():
            used: float = (
                elapsed_s if kind.spent == "elapsed_s" else getattr(spent, str(kind.spent))
            )
            if used > limit * (1 + ROUNDING):
                return SuiteStop(kind.name, used, limit)
        return None

    def _iter_limits(self) -> Iterator[tuple[SuiteBudgetKind, float]]:
        for kind in SUITE_BUDGET_KINDS:
            if kind.spent is not None and kind.name in self.limits:
                yield kind, self.limits[kind.name]
