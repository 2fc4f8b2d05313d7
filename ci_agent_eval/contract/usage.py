"""Usage of models as sums that grow while agents run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci_agent_eval.contract.trajectory import Turn

if TYPE_CHECKING:
    from ci_agent_eval.contract.episode import SideUsage


@dataclass(frozen=True, slots=True)
class Usage:
    """Turns, tool calls, tokens and cost; tokens and costs that are unknown count as zero.

    Tool calls count when the model requests them, before they run. A budget reports numbers that
    were not measured as missing.
    """

    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0
    """Input plus output."""
    cost_usd: float = 0.0

    @classmethod
    def from_turns(cls, turns: Iterable[Turn], *sides: SideUsage | None) -> Usage:
        """Add up the turns of agents, and the tokens and costs of judges and simulated users."""
        answers = [turn for turn in turns if turn.role == "assistant"]
        used = (side for side in sides if side is not None)
        measured: list[Turn | SideUsage] = [*answers, *used]
        return cls(
            len(answers),
            sum(len(turn.tool_calls) for turn in answers),
            sum(each.tokens.total for each in measured if each.tokens is not None),
            math.fsum(each.cost_usd for each in measured if each.cost_usd is not None),
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.turns + other.turns,
            self.tool_calls + other.tool_calls,
            self.tokens + other.tokens,
            self.cost_usd + other.cost_usd,
        )
