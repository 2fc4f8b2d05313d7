"""Merging of a finished episode into the one that is being recorded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.episode import Assertion, Episode, SideUsage
from ci_agent_eval.contract.trajectory import TokenUsage

Item = TypeVar("Item")


def find_new_parts(known: Sequence[Item], returned: Sequence[Item]) -> list[Item]:
    """Return the items that are not yet known; items are compared by identity."""
    return [part for part in returned if not any(part is own for own in known)]


def merge_budgets(own: Budgets, returned: Budgets) -> Budgets:
    """Merge two sets of budgets; a budget in both gets our limit and the returned usage."""
    budgets = dict(returned.iter_named())
    for name, budget in own.iter_named():
        other = budgets.get(name)
        used = budget.used if other is None or other.used is None else other.used
        budgets[name] = budget.model_copy(update={"used": used})
    known = {name: budgets.pop(name) for name in Budgets.model_fields if name in budgets}
    return Budgets.model_validate({**known, "custom": budgets})


def add_needed_turns(budgets: Budgets, needed: int) -> Budgets:
    """Set the usage of `max_turns` to the turns a run needed, including the denied one."""
    turns = budgets.max_turns
    if turns is None or needed <= (turns.used or 0):
        return budgets
    used = turns.model_copy(update={"used": float(needed)})
    return budgets.model_copy(update={"max_turns": used})


def build_outcome_assertion(episode: Episode) -> list[Assertion]:
    """Return an assertion for a failed episode that has no failed assertion, else nothing."""
    if episode.outcome != "failed" or episode.failed_assertions:
        return []
    reason = episode.reason or "the episode says that it failed, and not why"
    return [Assertion(name="outcome", passed=False, reason=reason)]


def add_usage(own: SideUsage | None, other: SideUsage | None) -> SideUsage | None:
    """Add two usages; the cost is unknown if one of them has no price."""
    if own is None or other is None:
        return own or other
    costs = (own.cost_usd, other.cost_usd)
    return SideUsage(
        calls=own.calls + other.calls,
        tokens=_add_tokens(own.tokens, other.tokens),
        cost_usd=None if None in costs else math.fsum(cost for cost in costs if cost is not None),
    )


def _add_tokens(own: TokenUsage | None, other: TokenUsage | None) -> TokenUsage | None:
    if own is None or other is None:
        return None
    sums = {name: getattr(own, name) + getattr(other, name) for name in TokenUsage.model_fields}
    return TokenUsage(**sums)
