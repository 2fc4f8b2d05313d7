"""Why a run was stopped at a budget of its suite, and the sentence that every report gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from ci_agent_eval.contract.base import Amount
from ci_agent_eval.contract.budget_kinds import SUITE_BUDGET_KINDS, Format

_MOST_DIGITS = 12

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
    """The budget of the suite that a run exceeded, with both figures."""

    budget: SuiteBudgetName
    used: Amount
    limit: Amount

    @property
    def sentence(self) -> str:
        """Which budget was exceeded, and by what.

        It stands here because pytest shows it while the suite runs, where no renderer is.
        """
        used, limit = _FORMATS[_KINDS[self.budget].format](self.used, self.limit)
        return f"suite budget {self.budget} exceeded: {used} of {limit}"


def _format_dollars(used: float, limit: float) -> tuple[str, str]:
    told, whole = _format_distinct(used, limit, digits=2)
    return f"${told}", f"${whole}"


def _format_seconds(used: float, limit: float) -> tuple[str, str]:
    told, whole = _format_distinct(used, limit, digits=1)
    return f"{told} s", f"{whole} s"


def _format_milliseconds(used: float, limit: float) -> tuple[str, str]:
    told, whole = _format_distinct(used, limit, digits=1)
    return f"{told} ms", f"{whole} ms"


def _format_plain(used: float, limit: float) -> tuple[str, str]:
    return f"{used:.15g}", f"{limit:.15g}"


_FORMATS: dict[Format, Callable[[float, float], tuple[str, str]]] = {
    "count": _format_plain,
    "money": _format_dollars,
    "milliseconds": _format_milliseconds,
    "seconds": _format_seconds,
}


def _format_distinct(used: float, limit: float, *, digits: int) -> tuple[str, str]:
    """Return two figures with as few digits as show the limit whole, and that it is exceeded."""
    for places in range(digits, _MOST_DIGITS):
        told, whole = f"{used:.{places}f}", f"{limit:.{places}f}"
        if float(whole) == limit and float(told) > limit:
            return told, whole
    return repr(used), repr(limit)
