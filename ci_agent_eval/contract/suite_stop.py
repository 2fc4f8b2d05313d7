"""Why a run was stopped at a budget of its suite, and the sentence that every report gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.contract.base import Amount

SuiteBudgetName = Literal["total_cost_usd", "total_tokens", "total_wall_time_s"]

_MOST_DIGITS = 12


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
        used, limit = _FORMATS.get(self.budget, _plain)(self.used, self.limit)
        return f"suite budget {self.budget} exceeded: {used} of {limit}"


def _dollars(used: float, limit: float) -> tuple[str, str]:
    told, whole = _told_apart(used, limit, digits=2)
    return f"${told}", f"${whole}"


def _seconds(used: float, limit: float) -> tuple[str, str]:
    told, whole = _told_apart(used, limit, digits=1)
    return f"{told} s", f"{whole} s"


def _plain(used: float, limit: float) -> tuple[str, str]:
    return f"{used:.15g}", f"{limit:.15g}"


_FORMATS = {"total_cost_usd": _dollars, "total_wall_time_s": _seconds}


def _told_apart(used: float, limit: float, *, digits: int) -> tuple[str, str]:
    """Return two figures with as few digits as show the limit whole, and that it is exceeded."""
    for places in range(digits, _MOST_DIGITS):
        told, whole = f"{used:.{places}f}", f"{limit:.{places}f}"
        if float(whole) == limit and float(told) > limit:
            return told, whole
    return repr(used), repr(limit)
