"""The usage of model calls, counted while they run. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.model_traffic.conversations import find_usable_answer
from ci_agent_eval.model_traffic.recorder import ModelCall

ComputeCost = Callable[[ModelCall], float | None]
"""Returns the cost of a call in US dollars; None: unknown."""


@dataclass(frozen=True, slots=True)
class TrafficUsage:
    """Turns, tool calls, tokens and cost; tokens and costs that are unknown count as zero."""

    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    @classmethod
    def from_turns(cls, turns: Iterable[Turn]) -> TrafficUsage:
        """Add up the turns of agents."""
        answers = [turn for turn in turns if turn.role == "assistant"]
        return cls(
            len(answers),
            sum(len(turn.tool_calls) for turn in answers),
            sum(turn.tokens.total for turn in answers if turn.tokens is not None),
            math.fsum(turn.cost_usd for turn in answers if turn.cost_usd is not None),
        )

    def __add__(self, other: TrafficUsage) -> TrafficUsage:
        return TrafficUsage(
            self.turns + other.turns,
            self.tool_calls + other.tool_calls,
            self.tokens + other.tokens,
            self.cost_usd + other.cost_usd,
        )


@dataclass(eq=False)
class CallUsageCounter:
    """Counts the usage of calls; each ended call is read once."""

    compute_cost: ComputeCost
    _ended: dict[ModelCall, TrafficUsage] = field(default_factory=dict)

    def count(self, calls: Iterable[ModelCall], *, with_cost: bool = True) -> TrafficUsage:
        """Return the usage of the answers; a call without an answer is no turn.

        Without `with_cost` the cost is 0: the price table takes time to load.
        """
        known = tuple(calls)
        used = sum((self._measure(call) for call in known), TrafficUsage())
        if not with_cost:
            return used
        costs = (self.compute_cost(call) for call in known)
        return replace(used, cost_usd=math.fsum(cost for cost in costs if cost is not None))

    def _measure(self, call: ModelCall) -> TrafficUsage:
        if (known := self._ended.get(call)) is not None:
            return known
        answer = None if call.state == "open" else find_usable_answer(call)
        used = TrafficUsage()
        if answer is not None:
            tokens = 0 if answer.tokens is None else answer.tokens.total
            used = TrafficUsage(1, len(answer.tool_calls), tokens)
        if call.state != "open":
            self._ended[call] = used
        return used
