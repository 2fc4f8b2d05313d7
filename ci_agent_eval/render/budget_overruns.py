"""Budgets that were exceeded or not measured, with their figures written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ci_agent_eval.contract.budget_kinds import (
    BUDGET_KINDS,
    SUITE_BUDGET_KINDS,
    BudgetFormat,
    BudgetKind,
    SuiteBudgetKind,
)
from ci_agent_eval.contract.measurement import BudgetViolation
from ci_agent_eval.render import numbers
from ci_agent_eval.render.numbers import NOT_MEASURED
from ci_agent_eval.render.phrases import Phrase, Quoted


@dataclass(frozen=True, slots=True)
class BudgetOverrun:
    """One budget violation with its figures written out."""

    budget: str
    """The budget's key."""
    label: str
    is_custom: bool
    """Whether the label is the user's own name of a budget: foreign text."""
    hard: bool
    gates: bool
    limit: str
    observed: str
    """Or that it was not measured."""

    def describe(self, before: str = "") -> Phrase:
        """Return `tool calls 9 (limit 4, before 3)`."""
        label: Phrase = (Quoted(self.label),) if self.is_custom else (self.label,)
        soft = "" if self.hard else "soft "
        past = f", before {before}" if before else ""
        return (*label, f" {self.observed} ({soft}limit {self.limit}{past})")


def build_overrun(violation: BudgetViolation, *, is_required: bool) -> BudgetOverrun:
    """Return a violation written out; it gates where the budget is hard and required."""
    limit, observed = budget_figures(violation)
    return BudgetOverrun(
        budget=violation.budget,
        label=budget_label(violation),
        is_custom=violation.budget not in _KINDS,
        hard=violation.hard,
        gates=violation.hard and is_required,
        limit=limit,
        observed=observed,
    )


_KINDS: dict[str, BudgetKind | SuiteBudgetKind] = {
    **{kind.name: kind for kind in BUDGET_KINDS},
    **{kind.name: kind for kind in SUITE_BUDGET_KINDS},
}

_WRITERS: dict[BudgetFormat, tuple[Callable[[float, int], str], int]] = {
    "count": (numbers.format_amount, numbers.SIGNIFICANT),
    "money": (numbers.format_money, numbers.SIGNIFICANT),
    "milliseconds": (numbers.format_milliseconds, 1),
    "seconds": (numbers.format_seconds, 1),
}


def budget_label(violation: BudgetViolation) -> str:
    """Return a budget's name with its statistic or unit; a custom name is foreign text."""
    kind = _KINDS.get(violation.budget)
    if kind is None:
        return f"{violation.budget} ({violation.unit})" if violation.unit else violation.budget
    return f"{kind.label}, {violation.measure}" if violation.measure else kind.label


def budget_figures(violation: BudgetViolation) -> tuple[str, str]:
    """Format a budget's limit and the observed value."""
    kind = _KINDS.get(violation.budget)
    write, digits = _WRITERS["count" if kind is None else kind.format]
    if violation.observed is None:
        return write(violation.limit, digits), NOT_MEASURED
    return numbers.format_distinct(write, violation.limit, violation.observed, digits)
