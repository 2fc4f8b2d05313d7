"""The suite budget at which a run was stopped, with its description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from ci_agent_eval.contract.base import Amount
from ci_agent_eval.contract.budget_kinds import SUITE_BUDGET_KINDS, BudgetFormat

_MAX_DIGITS = 12

_KINDS = {kind.name: kind for kind in SUITE_BUDGET_KINDS}


def _check_budget_name(name: str) -> str:
    if name not in _KINDS:
        raise ValueError(f"no budget of a suite is called {name!r}")
    return name


SuiteBudgetName = Annotated[
    str,
    AfterValidator(_check_budget_name),
    WithJsonSchema({"type": "string", "enum": list(_KINDS)}),
]


@dataclass(frozen=True, slots=True)
class SuiteStop:
    """The suite budget that a run exceeded, with the used amount and the limit."""

    budget: SuiteBudgetName
    used: Amount
    limit: Amount

    @property
    def sentence(self) -> str:
        """Description of the exceeded budget.

        Defined here because pytest shows it while the suite runs, without a renderer.
        """
        used, limit = _FORMATS[_KINDS[self.budget].format](self.used, self.limit)
        return f"suite budget {self.budget} exceeded: {used} of {limit}"


def _format_dollars(used: float, limit: float) -> tuple[str, str]:
    used_text, limit_text = _format_distinct(used, limit, digits=2)
    return f"${used_text}", f"${limit_text}"


def _format_seconds(used: float, limit: float) -> tuple[str, str]:
    used_text, limit_text = _format_distinct(used, limit, digits=1)
    return f"{used_text} s", f"{limit_text} s"


def _format_milliseconds(used: float, limit: float) -> tuple[str, str]:
    used_text, limit_text = _format_distinct(used, limit, digits=1)
    return f"{used_text} ms", f"{limit_text} ms"


def _format_plain(used: float, limit: float) -> tuple[str, str]:
    return f"{used:.15g}", f"{limit:.15g}"


_FORMATS: dict[BudgetFormat, Callable[[float, float], tuple[str, str]]] = {
    "count": _format_plain,
    "money": _format_dollars,
    "milliseconds": _format_milliseconds,
    "seconds": _format_seconds,
}


def _format_distinct(used: float, limit: float, *, digits: int) -> tuple[str, str]:
    """Format two figures with as few digits as show that the limit is exceeded."""
    for places in range(digits, _MAX_DIGITS):
        used_text, limit_text = f"{used:.{places}f}", f"{limit:.{places}f}"
        if float(limit_text) == limit and float(used_text) > limit:
            return used_text, limit_text
    return repr(used), repr(limit)
