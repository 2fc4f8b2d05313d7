"""The budgets of an episode: built, set and merged."""

from __future__ import annotations

from ci_agent_eval.contract.budgets import Budget, Budgets, get_budget_class
from ci_agent_eval.recording.validation import build_value


def build_budget(
    name: str, *, limit: float, used: float | None, hard: bool, **options: object
) -> Budget:
    """Build a budget of any name, without the options that are None. Raises InputError."""
    given = {name: value for name, value in options.items() if value is not None}
    values = {"limit": limit, "used": used, "hard": hard, **given}
    return build_value(f"budget {name!r}", get_budget_class(name).model_validate, obj=values)


def merge_budgets(own: Budgets, returned: Budgets) -> Budgets:
    """Merge two sets of budgets; a budget in both gets our limit and the returned usage."""
    budgets = dict(returned.iter_named())
    for name, budget in own.iter_named():
        other = budgets.get(name)
        used = budget.used if other is None or other.used is None else other.used
        budgets[name] = budget.model_copy(update={"used": used})
    known = {name: budgets.pop(name) for name in Budgets.model_fields if name in budgets}
    return Budgets.model_validate({**known, "custom": budgets})


def add_budget(budgets: Budgets, name: str, budget: Budget) -> Budgets:
    """Set a budget by its name."""
    if name in Budgets.model_fields and name != "custom":
        return budgets.model_copy(update={name: budget})
    return budgets.model_copy(update={"custom": {**budgets.custom, name: budget}})


def add_needed_turns(budgets: Budgets, needed: int) -> Budgets:
    """Set the usage of `max_turns` to the turns a run needed, including the denied one."""
    turns = budgets.max_turns
    if turns is None or needed <= (turns.used or 0):
        return budgets
    used = turns.model_copy(update={"used": float(needed)})
    return budgets.model_copy(update={"max_turns": used})
