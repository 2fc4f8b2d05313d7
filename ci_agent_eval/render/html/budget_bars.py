"""Budgets as bars: what was used of a limit, in words and as a share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ci_agent_eval.analysis.summary import Totals
from ci_agent_eval.contract.budget_kinds import BUDGET_KINDS
from ci_agent_eval.contract.budgets import STATISTICS, SuiteBudgets
from ci_agent_eval.contract.measurement import BudgetViolation
from ci_agent_eval.render.html.caps import Shown
from ci_agent_eval.render.numbers import NOT_MEASURED
from ci_agent_eval.render.overruns import budget_figures, budget_label

Bar = dict[str, Any]
"""`name`, `used` and `limit` in words, `share` of the limit (absent: not measured), `soft`."""

MOST_SHARE = 99.0
"""A share above it is shown as this: the bar is full long before."""


def episode_bars(budgets: Mapping[str, Any], shown: Shown) -> list[Bar]:
    """Return the budgets of an episode as canonical JSON holds them."""
    return [_named(*_known(*figure), shown) for figure in _of_episode(budgets, shown)]


def _of_episode(budgets: Mapping[str, Any], shown: Shown) -> Iterator[tuple[Any, ...]]:
    """Yield the values of a `BudgetViolation` for each budget, exceeded or not."""
    for kind in BUDGET_KINDS:
        if kind.name in budgets:
            yield _figure(kind.name, budgets[kind.name])
    custom = sorted(budgets.get("custom", {}).items())
    for name, budget in shown.first(custom):
        yield _figure(name, budget)


def _figure(name: str, budget: Mapping[str, Any]) -> tuple[Any, ...]:
    statistic = next((known for known in STATISTICS if known in budget), None)
    used = budget.get(statistic) if statistic else budget.get("used")
    hard = bool(budget.get("hard", True))
    return name, budget["limit"], used, hard, statistic, budget.get("unit")


def suite_bars(budgets: SuiteBudgets, totals: Totals, shown: Shown) -> list[Bar]:
    """Return the budgets of the whole suite."""
    figures = (
        BudgetViolation(kind.name, budget.limit, getattr(totals, kind.total), budget.hard)
        for kind, budget in budgets.iter_named()
    )
    return [_named(*_bar(figure), shown) for figure in figures]


def _named(label: str, bar: Bar, shown: Shown) -> Bar:
    return {"name": shown.name(label), **bar}


@lru_cache(4096, typed=True)
def _known(*figure: Any) -> tuple[str, Bar]:
    """Return the bar of these values; thousands of episodes have the same few."""
    return _bar(BudgetViolation(*figure))


def _bar(figure: BudgetViolation) -> tuple[str, Bar]:
    """Return a budget's label, as its test may have named it, and the rest of its bar."""
    limit, used = budget_figures(figure)
    bar: Bar = {"used": used, "limit": limit}
    if figure.observed is not None:
        bar["share"] = _share(figure.observed, figure.limit)
        if figure.observed > figure.limit:
            bar["over"] = True
    else:
        bar["used"] = NOT_MEASURED
    if not figure.hard:
        bar["soft"] = True
    return budget_label(figure), bar


def _share(used: float, limit: float) -> float:
    if limit == 0:
        return MOST_SHARE if used else 0.0
    return round(min(used / limit, MOST_SHARE), 4)
