"""The budgets of an episode: built, set and merged."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ci_agent_eval.contract.base import describe_validation_error
from ci_agent_eval.contract.budgets import Budget, Budgets, LatencyBudget, get_budget_class
from ci_agent_eval.errors import InputError


def build_budget(
    name: str, *, limit: float, used: float | None, hard: bool, **options: object
) -> Budget:
    """Build a budget of any name, without the options that are None. Raises InputError."""
    given = {name: value for name, value in options.items() if value is not None}
    values = {"limit": limit, "hard": hard, **given}
    if used is not None:  # a latency budget with `used` is of the whole episode
        values["used"] = used
    return build_value(f"budget {name!r}", get_budget_class(name).model_validate, obj=values)


def merge_budgets(own: Budgets, returned: Budgets) -> Budgets:
    """Merge two sets of budgets; a budget in both gets our limit and the larger usage."""
    budgets = dict(returned.iter_named())
    for name, budget in own.iter_named():
        other = budgets.get(name)
        used = budget.used if other is None else _find_larger(budget.used, other.used)
        budgets[name] = budget.model_copy(update={"used": used})
    known = {name: budgets.pop(name) for name in Budgets.model_fields if name in budgets}
    return Budgets.model_validate({**known, "custom": budgets})


def add_budget(budgets: Budgets, name: str, budget: Budget) -> Budgets:
    """Set a budget by its name; one that is already set can only become stricter.

    Raises InputError for another statistic.
    """
    is_custom = name not in Budgets.model_fields or name == "custom"
    before = budgets.custom.get(name) if is_custom else getattr(budgets, name)
    if before is not None:
        budget = _tighten(name, before, budget)
    if not is_custom:
        return budgets.model_copy(update={name: budget})
    return budgets.model_copy(update={"custom": {**budgets.custom, name: budget}})


def _tighten(name: str, before: Budget, budget: Budget) -> Budget:
    """Return a budget with the lower limit and the larger usage of both."""
    changes: dict[str, object] = {
        "limit": min(before.limit, budget.limit),
        "used": _find_larger(before.used, budget.used),
        "hard": before.hard or budget.hard,
    }
    if isinstance(before, LatencyBudget) and isinstance(budget, LatencyBudget):
        if budget.statistic != before.statistic and "statistic" in budget.model_fields_set:
            raise InputError(
                f"budget {name!r}: it is already set for {before.statistic}, and cannot be set "
                f"for {budget.statistic} too; choose one statistic"
            )
        is_lenient = before.only_if_significant and budget.only_if_significant
        changes |= {"statistic": before.statistic, "only_if_significant": is_lenient}
    return budget.model_copy(update=changes)


def _find_larger(one: float | None, other: float | None) -> float | None:
    return max((used for used in (one, other) if used is not None), default=None)


def add_needed_turns(budgets: Budgets, needed: int) -> Budgets:
    """Set the usage of `max_turns` to the turns a run needed, including the denied one."""
    turns = budgets.max_turns
    if turns is None or needed <= (turns.used or 0):
        return budgets
    used = turns.model_copy(update={"used": float(needed)})
    return budgets.model_copy(update={"max_turns": used})


Value = TypeVar("Value")

Clock = Callable[[], float]
"""Monotonic seconds from any fixed point."""


class Refusing(Protocol):
    """A recorder that keeps the sentences of the records that it refused."""

    @property
    def refused(self) -> list[str]:
        """The sentences so far, to which more are added."""


Recorder = TypeVar("Recorder", bound=Refusing)
Parameters = ParamSpec("Parameters")


def note_refusals(
    method: Callable[Concatenate[Recorder, Parameters], Value],
) -> Callable[Concatenate[Recorder, Parameters], Value]:
    """Let a method note the InputError that it raises: the agent may catch it."""

    @functools.wraps(method)
    def record(self: Recorder, /, *args: Parameters.args, **options: Parameters.kwargs) -> Value:
        try:
            return method(self, *args, **options)
        except InputError as error:
            if str(error) not in self.refused:
                self.refused.append(str(error))
            raise

    return record


def build_value(where: str, model: Callable[..., Value], /, **values: Any) -> Value:
    """Build a contract value. Raises InputError, which names `where` and the problem."""
    try:
        return model(**values)
    except ValueError as error:
        raise InputError(f"{where}: {describe_validation_error(error)}") from None
