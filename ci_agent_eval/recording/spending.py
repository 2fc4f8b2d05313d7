"""The cost and tokens of an episode: its agents, judges and simulated users. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ci_agent_eval.contract.episode import SideUsage
from ci_agent_eval.contract.trajectory import Turn


@dataclass(frozen=True, slots=True)
class SuiteUsage:
    """Cost and tokens of all model calls: agents, judges and simulated users."""

    cost_usd: float = 0.0
    """Cost of priced calls."""
    tokens: int = 0
    """Input and output tokens of calls that report them."""

    def __add__(self, other: SuiteUsage) -> SuiteUsage:
        return SuiteUsage(self.cost_usd + other.cost_usd, self.tokens + other.tokens)


def sum_spending(turns: Iterable[Turn], *sides: SideUsage | None) -> SuiteUsage:
    """Sum the known costs and tokens; a call without a price or token count adds nothing.

    The report adds up the same figures for the budgets of a suite.
    """
    agents = [turn for turn in turns if turn.role == "assistant"]
    known = [side for side in sides if side is not None]
    costs = [*(turn.cost_usd for turn in agents), *(side.cost_usd for side in known)]
    tokens = [*(turn.tokens for turn in agents), *(side.tokens for side in known)]
    return SuiteUsage(
        math.fsum(cost for cost in costs if cost is not None),
        sum(usage.total for usage in tokens if usage is not None),
    )


def lack_measurement(turns: Iterable[Turn]) -> bool:
    """Return whether a model answered, as far as is known, and no answer has tokens or cost."""
    answers = [turn for turn in turns if turn.role == "assistant"]
    return bool(answers) and all(
        turn.tokens is None and turn.cost_usd is None and turn.source in {None, "live"}
        for turn in answers
    )
