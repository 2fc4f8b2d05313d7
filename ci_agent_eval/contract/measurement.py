"""Measurement of budgets from a trajectory, and their violations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ci_agent_eval.contract.budget_kinds import BudgetKind
from ci_agent_eval.contract.budgets import Budget, Budgets, LatencyBudget, Statistic
from ci_agent_eval.contract.trajectory import Trajectory

_PERCENTILES: dict[str, float] = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class BudgetViolation:
    """A budget that was exceeded or not measured."""

    budget: str
    """Name of the budget: `tool_calls`, `latency_ms`, or the custom name."""
    limit: float
    observed: float | None
    """None: not measured."""
    hard: bool = True
    statistic: Statistic | None = None
    unit: str | None = None

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
    # Rounding first keeps 0.95 * 20 from becoming 19.000000000000004.
    rank = math.ceil(round(_PERCENTILES[statistic] * len(ordered), 9))
    return ordered[max(rank, 1) - 1]


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


def find_budget_violations(budgets: Budgets) -> tuple[BudgetViolation, ...]:
    """Return every budget over its limit or not measured, in the order of the budgets."""
    return tuple(
        BudgetViolation(
            budget=name,
            limit=budget.limit,
            observed=budget.used,
            hard=budget.hard,
            statistic=budget.statistic if isinstance(budget, LatencyBudget) else None,
            unit=budget.unit,
        )
        for name, budget in budgets.iter_named()
        if budget.used is None or budget.used > budget.limit
    )
