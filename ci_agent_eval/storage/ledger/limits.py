"""The budgets of a suite as limits on a run: pure arithmetic on what it has spent so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ci_agent_eval.contract.budget_kinds import SUITE_BUDGET_KINDS, SuiteBudgetKind
from ci_agent_eval.contract.suite_stop import SuiteStop

ROUNDING = 1e-9
"""Share by which a sum of many small costs may be off. What is over by less is the gate's alone."""


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What models have taken: agents', judges' and simulated users' together."""

    cost_usd: float = 0.0
    """Of what has a price."""
    tokens: int = 0
    """Input and output, of what tells them."""

    def __add__(self, other: RunUsage) -> RunUsage:
        return RunUsage(self.cost_usd + other.cost_usd, self.tokens + other.tokens)

    def __sub__(self, other: RunUsage) -> RunUsage:
        return RunUsage(self.cost_usd - other.cost_usd, self.tokens - other.tokens)


@dataclass(frozen=True, slots=True)
class SuiteLimits:
    """The most that a run may take, by the names of the suite's budgets."""

    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def elapsed_s(self) -> float | None:
        """The most seconds; None sets no limit."""
        return min(
            (limit for kind, limit in self._set() if kind.spent == "elapsed_s"), default=None
        )

    def find_exceeded(self, spent: RunUsage, elapsed_s: float) -> SuiteStop | None:
        """Return the first limit that is exceeded; None where none is."""
        for kind, limit in self._set():
            used: float = (
                elapsed_s if kind.spent == "elapsed_s" else getattr(spent, str(kind.spent))
            )
            if used > limit * (1 + ROUNDING):
                return SuiteStop(kind.name, used, limit)
        return None

    def _set(self) -> Iterator[tuple[SuiteBudgetKind, float]]:
        for kind in SUITE_BUDGET_KINDS:
            if kind.spent is not None and kind.name in self.limits:
                yield kind, self.limits[kind.name]
