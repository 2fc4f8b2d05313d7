"""Budgets that were exceeded or not measured, with their figures written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ci_agent_eval.analysis.summary import ScenarioSummary
from ci_agent_eval.contract.budget_kinds import (
    BUDGET_KINDS,
    SUITE_BUDGET_KINDS,
    BudgetFormat,
    BudgetKind,
    SuiteBudgetKind,
)
from ci_agent_eval.contract.measurement import BudgetViolation
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.numbers import NOT_MEASURED


@dataclass(frozen=True, slots=True)
class Overrun:
    """One budget violation with its figures written out."""

    scenario: ScenarioSummary | None
    """None: a budget of the suite."""
    label: str | None
    """Our own name of the budget; None: it is one of the user's own."""
    custom: str
    """The user's name of the budget, hostile; empty if it is ours."""
    hard: bool
    gates: bool
    limit: str
    observed: str
    over_by: str
    iterations: int = 1

    @property
    def strength(self) -> str:
        """Hard or soft."""
        return "hard" if self.hard else "soft"


def overruns(report: Report) -> tuple[Overrun, ...]:
    """Every budget violation: the ones that gate first, the suite's before the scenarios'."""
    found = [
        _overrun(None, violation, gates=violation.hard)
        for violation in report.summary.suite_violations
    ]
    found += [
        _overrun(
            scenario,
            item.violation,
            gates=item.violation.hard and scenario.gate == "required",
            iterations=item.iterations,
        )
        for scenario, item in report.violations()
    ]
    return tuple(sorted(found, key=lambda overrun: not overrun.gates))


_KINDS: dict[str, BudgetKind | SuiteBudgetKind] = {
    **{kind.name: kind for kind in BUDGET_KINDS},
    **{kind.name: kind for kind in SUITE_BUDGET_KINDS},
}

_WRITERS: dict[BudgetFormat, tuple[Callable[[float, int], str], int]] = {
    "count": (numbers.amount, numbers.SIGNIFICANT),
    "money": (numbers.money, numbers.SIGNIFICANT),
    "milliseconds": (numbers.milliseconds, 1),
    "seconds": (numbers.seconds, 1),
}


def _overrun(
    scenario: ScenarioSummary | None,
    violation: BudgetViolation,
    *,
    gates: bool,
    iterations: int = 1,
) -> Overrun:
    ours = violation.budget in _KINDS
    label = budget_label(violation)
    limit, observed = budget_figures(violation)
    return Overrun(
        scenario=scenario,
        label=label if ours else None,
        custom="" if ours else label,
        hard=violation.hard,
        gates=gates,
        limit=limit,
        observed=observed,
        over_by=numbers.overshoot(violation.over_by),
        iterations=iterations,
    )


def budget_label(violation: BudgetViolation) -> str:
    """Name a budget with its statistic or unit; hostile text where the budget is a user's own."""
    kind = _KINDS.get(violation.budget)
    if kind is None:
        return f"{violation.budget} ({violation.unit})" if violation.unit else violation.budget
    return f"{kind.label}, {violation.statistic}" if violation.statistic else kind.label


def budget_figures(violation: BudgetViolation) -> tuple[str, str]:
    """Write a budget's limit, and what was observed of it."""
    kind = _KINDS.get(violation.budget)
    write, digits = _WRITERS["count" if kind is None else kind.format]
    if violation.observed is None:
        return write(violation.limit, digits), NOT_MEASURED
    return numbers.told_apart(write, violation.limit, violation.observed, digits)
