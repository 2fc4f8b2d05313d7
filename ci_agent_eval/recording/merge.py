"""An episode that was made elsewhere, taken into the one that is being recorded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.episode import Assertion, Episode, SideUsage
from ci_agent_eval.contract.trajectory import TokenUsage

Item = TypeVar("Item")


def find_new_parts(known: Sequence[Item], more: Sequence[Item]) -> list[Item]:
    """Return what is new: an episode may be made of the very parts that were recorded here."""
    return [part for part in more if not any(part is own for own in known)]


def merge_budgets(own: Budgets, returned: Budgets) -> Budgets:
    """Return the budgets of both; of one that both set, our limit and the returned figure."""
    budgets = dict(returned.iter_named())
    for name, budget in own.iter_named():
        other = budgets.get(name)
        used = budget.used if other is None or other.used is None else other.used
        budgets[name] = budget.model_copy(update={"used": used})
    known = {name: budgets.pop(name) for name in Budgets.model_fields if name in budgets}
    return Budgets.model_validate({**known, "custom": budgets})


def add_needed_turns(budgets: Budgets, needed: int) -> Budgets:
    """Return the budgets with the turns that a run needed, the one it was not given included."""
    turns = budgets.max_turns
    if turns is None or needed <= (turns.used or 0):
        return budgets
    used = turns.model_copy(update={"used": float(needed)})
    return budgets.model_copy(update={"max_turns": used})


def build_outcome_assertion(episode: Episode) -> list[Assertion]:
    """Return the assertion that a failed episode stands for which names none that failed."""
    if episode.outcome != "failed" or episode.failed_assertions:
        return []
    reason = episode.reason or "the episode says that it failed, and not why"
    return [Assertion(name="outcome", passed=False, reason=reason)]


def add_usage(own: SideUsage | None, more: SideUsage | None) -> SideUsage | None:
    """Return what both took; an unpriced one leaves the sum unknown."""
    if own is None or more is None:
        return own or more
    costs = (own.cost_usd, more.cost_usd)
    return SideUsage(
        calls=own.calls + more.calls,
        tokens=_add_tokens(own.tokens, more.tokens),
        cost_usd=None if None in costs else math.fsum(cost for cost in costs if cost is not None),
    )


def _add_tokens(own: TokenUsage | None, more: TokenUsage | None) -> TokenUsage | None:
    if own is None or more is None:
        return None
    sums = {name: getattr(own, name) + getattr(more, name) for name in TokenUsage.model_fields}
    return TokenUsage(**sums)
