"""Budgets as bars: the usage and its share of the limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.analysis.summary import Totals
from ci_agent_eval.contract.budget_kinds import BUDGET_KINDS
from ci_agent_eval.contract.budgets import STATISTICS, SuiteBudgets
from ci_agent_eval.contract.measurement import BudgetViolation
from ci_agent_eval.render.budget_overruns import budget_figures, budget_label
from ci_agent_eval.render.html.page_limits import PageText
from ci_agent_eval.render.numbers import NOT_MEASURED

BudgetBar = dict[str, Any]
"""`name`, `used` and `limit` in words, `share` of the limit (absent: not measured), `soft`."""

MOST_SHARE = 99.0
"""Larger shares are texts as this one; the bar is full long before."""


def build_episode_bars(
    budgets: Mapping[str, Any], record: EpisodeRecord, texts: PageText
) -> list[BudgetBar]:
    """Return the budgets of an episode as canonical JSON holds them."""
    return [
        _name_bar(*_build_cached_bar(*figure), texts)
        for figure in _list_budget_values(budgets, record, texts)
    ]


def _list_budget_values(
    budgets: Mapping[str, Any], record: EpisodeRecord, texts: PageText
) -> Iterator[tuple[Any, ...]]:
    """Yield for each budget whether it is exceeded, and the values of its `BudgetViolation`."""
    for kind in BUDGET_KINDS:
        if kind.name in budgets:
            is_sampled = kind.samples is not None
            is_over = not is_sampled or any(v.statistic for v in record.violations)
            turns = len(record.latencies_ms) if is_sampled else 0
            yield is_over, *_read_budget(kind.name, budgets[kind.name]), turns or None
    custom = sorted(budgets.get("custom", {}).items())
    for name, budget in texts.first(custom):
        yield True, *_read_budget(name, budget)


def _read_budget(name: str, budget: Mapping[str, Any]) -> tuple[Any, ...]:
    statistic = next((known for known in STATISTICS if known in budget), None)
    used = budget.get(statistic) if statistic else budget.get("used")
    hard = bool(budget.get("hard", True))
    return name, budget["limit"], used, hard, statistic, budget.get("unit")


def build_suite_bars(budgets: SuiteBudgets, totals: Totals, texts: PageText) -> list[BudgetBar]:
    """Return the budgets of the whole suite."""
    figures = (
        BudgetViolation(kind.name, budget.limit, getattr(totals, kind.total), budget.hard)
        for kind, budget in budgets.iter_named()
    )
    return [_name_bar(*_build_bar(figure), texts) for figure in figures]


def _name_bar(label: str, bar: BudgetBar, texts: PageText) -> BudgetBar:
    return {"name": texts.name(label), **bar}


@lru_cache(4096, typed=True)
def _build_cached_bar(is_over: bool, *figure: Any) -> tuple[str, BudgetBar]:
    """Return the bar of these values; cached, for thousands of episodes share them."""
    return _build_bar(BudgetViolation(*figure), is_over=is_over)


def _build_bar(figure: BudgetViolation, *, is_over: bool = True) -> tuple[str, BudgetBar]:
    """Return a budget's label, which may be foreign text, and the rest of its bar.

    A figure above its limit is over it unless the budget allows for chance.
    """
    limit, used = budget_figures(figure)
    bar: BudgetBar = {"used": used, "limit": limit}
    if figure.observed is not None:
        bar["share"] = _compute_share(figure.observed, figure.limit)
        if is_over and figure.observed > figure.limit:
            bar["over"] = True
    else:
        bar["used"] = NOT_MEASURED
    if not figure.hard:
        bar["soft"] = True
    return budget_label(figure), bar


def _compute_share(used: float, limit: float) -> float:
    if limit == 0:
        return MOST_SHARE if used else 0.0
    return round(min(used / limit, MOST_SHARE), 4)
