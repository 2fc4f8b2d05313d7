"""Measurement of budgets from a trajectory, and their violations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ci_agent_eval.contract.budget_kinds import BudgetKind
from ci_agent_eval.contract.budgets import (
    PERCENTILES,
    Budget,
    Budgets,
    LatencyBudget,
    Statistic,
)
from ci_agent_eval.contract.trajectory import Trajectory

SIGNIFICANCE_LEVEL = 0.05
"""Chance at which turns above a limit no longer agree with a percentile below it."""


class BudgetViolation(NamedTuple):
    """A budget that was exceeded or not measured."""

    budget: str
    """Name of the budget: `tool_calls`, `latency_ms`, or the custom name."""
    limit: float
    observed: float | None
    """None: not measured."""
    hard: bool = True
    statistic: Statistic | None = None
    unit: str | None = None
    turns: int | None = None
    """Number of measured turns behind the statistic; None: there is no statistic, or unknown."""

    @property
    def measure(self) -> str | None:
        """The statistic's name: `p95`, or `largest of 7 turns` where it is the largest."""
        share = PERCENTILES.get(self.statistic or "")
        if share is None or not self.turns or _find_rank(share, self.turns) < self.turns:
            return self.statistic
        return "only turn" if self.turns == 1 else f"largest of {self.turns} turns"

    @property
    def over_by(self) -> float | None:
        """The excess relative to the limit; None if not measured or the limit is 0."""
        if self.observed is None or self.limit == 0:
            return None
        return (self.observed - self.limit) / self.limit


def convert_to_ms(seconds: float) -> float:
    """Return seconds as milliseconds, rounded to the microsecond."""
    return round(max(seconds, 0.0) * 1000, 3)


def compute_latency_statistic(latencies: Sequence[float], statistic: Statistic) -> float | None:
    """Return one statistic of the latencies, in their unit; None without latencies.

    Percentiles are nearest-rank: the smallest measured value that at least p % of
    the values do not exceed (NIST/SEMATECH e-Handbook 7.2.6.2, without interpolation),
    so the result is always a measured value.
    """
    if not latencies:
        return None
    if statistic == "total":
        return math.fsum(latencies)
    if statistic == "mean":
        return math.fsum(latencies) / len(latencies)
    ordered = sorted(latencies)
    if statistic == "max":
        return ordered[-1]
    return ordered[_find_rank(PERCENTILES[statistic], len(ordered)) - 1]


def _find_rank(share: float, count: int) -> int:
    # Rounding first keeps 0.95 * 20 from becoming 19.000000000000004.
    return max(math.ceil(round(share * count, 9)), 1)


def measure_budgets(budgets: Budgets, trajectory: Trajectory | None) -> Budgets:
    """Fill in `used` from the trajectory; if both are known, keep the larger one.

    A producer cannot claim less than its trajectory shows.
    """
    if trajectory is None or not trajectory.turns:
        return budgets
    updates = {
        kind.name: _raise_used(budget, _measure_budget(kind, budget, trajectory))
        for kind, budget in budgets.iter_by_kind()
    }
    return budgets.model_copy(update=updates) if updates else budgets


def _measure_budget(kind: BudgetKind, budget: Budget, trajectory: Trajectory) -> float | None:
    """Return the amount of one budget that a trajectory used."""
    if kind.samples is not None and isinstance(budget, LatencyBudget):
        return compute_latency_statistic(kind.samples(trajectory), budget.statistic)
    return None if kind.measure is None else kind.measure(trajectory)


def _raise_used(budget: Budget, measured: float | None) -> Budget:
    if measured is None or (budget.used is not None and budget.used >= measured):
        return budget
    return budget.model_copy(update={"used": measured})


def find_budget_violations(
    budgets: Budgets, trajectory: Trajectory | None = None
) -> tuple[BudgetViolation, ...]:
    """Return every budget over its limit or not measured, in the order of the budgets."""
    samples = {
        kind.name: kind.samples(trajectory)
        for kind, _ in budgets.iter_by_kind()
        if kind.samples is not None and trajectory is not None
    }
    return tuple(
        _build_violation(name, budget, samples.get(name, ()))
        for name, budget in budgets.iter_named()
        if _is_violated(budget, samples.get(name, ()))
    )


def _build_violation(name: str, budget: Budget, samples: Sequence[float]) -> BudgetViolation:
    found = BudgetViolation(name, budget.limit, budget.used, budget.hard, None, budget.unit)
    if not isinstance(budget, LatencyBudget):
        return found
    return found._replace(statistic=budget.statistic, turns=len(samples) or None)


def _is_violated(budget: Budget, samples: Sequence[float]) -> bool:
    if budget.used is None or budget.used <= budget.limit:
        return budget.used is None
    if not isinstance(budget, LatencyBudget) or not budget.only_if_significant or not samples:
        return True
    measured = compute_latency_statistic(samples, budget.statistic)
    # A producer's own larger figure is of values that are not in the trajectory.
    is_claimed = measured is None or budget.used > measured
    above = sum(1 for value in samples if value > budget.limit)
    chance = compute_excess_chance(above, len(samples), PERCENTILES[budget.statistic])
    return is_claimed or round(chance, 12) <= SIGNIFICANCE_LEVEL


def compute_excess_chance(above: int, count: int, share: float) -> float:
    """Return the chance of `above` or more of `count` values above a percentile."""
    terms = (
        math.comb(count, k) * (1 - share) ** k * share ** (count - k)
        for k in range(above, count + 1)
    )
    return math.fsum(terms)
