"""What an episode has spent so far: its agents, its judges and its simulated users. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ci_agent_eval.contract.episode import SideUsage
from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.storage.ledger.limits import RunUsage


def sum_spending(turns: Iterable[Turn], *sides: SideUsage | None) -> RunUsage:
    """Return what is known of it: what has no price, or does not tell its tokens, adds nothing.

    The same figures that the report adds up for the budgets of a suite.
    """
    agents = [turn for turn in turns if turn.role == "assistant"]
    beside = [side for side in sides if side is not None]
    costs = [*(turn.cost_usd for turn in agents), *(side.cost_usd for side in beside)]
    tokens = [*(turn.tokens for turn in agents), *(side.tokens for side in beside)]
    return RunUsage(
        math.fsum(cost for cost in costs if cost is not None),
        sum(usage.total for usage in tokens if usage is not None),
    )
