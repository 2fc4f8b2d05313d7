"""What an agent did: turns, and the tool calls inside them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from ci_agent_eval.contract.base import Amount, Count, FrozenModel
from ci_agent_eval.contract.finish_reasons import normalize_finish_reason

Role = Literal["user", "assistant", "system", "tool"]

CallSource = Literal["live", "replayed", "scripted"]
"""Where a reply came from: a model, a recording of one, or a script."""


class TokenUsage(FrozenModel):
    """Tokens of one turn; `cached` is the part of `input` read from a cache."""

    input: Count = 0
    output: Count = 0
    cached: Count = 0

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input + self.output


class ToolCall(FrozenModel):
    """One tool call and what came of it; a call has a result or an error, or neither yet."""

    id: str | None = None
    name: str
    arguments: JsonValue = None
    result: JsonValue = None
    error: str | None = None
    duration_ms: Amount | None = None
    steered_by: str | None = None
    """The handler of steering that held the call back: it never ran, `result` is its message."""

    @property
    def failed(self) -> bool:
        """Whether it did not do what it was asked: it broke, or it was held back."""
        return self.error is not None or self.steered_by is not None


class Turn(FrozenModel):
    """One message of the conversation; an agent's turn carries its cost and latency."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    latency_ms: Amount | None = None
    tokens: TokenUsage | None = None
    cost_usd: Amount | None = None
    source: CallSource | None = None
    finish_reason: Annotated[str, AfterValidator(normalize_finish_reason)] | None = Field(
        default=None,
        description="why the provider says the model stopped: stop, length, content_filter, "
        "tool_call, or the provider's own word; unset: it did not say",
    )

    @property
    def is_completed(self) -> bool:
        """Whether the agent answered: a turn that never got a reply is empty."""
        return self.role == "assistant" and bool(self.content.strip() or self.tool_calls)


class Trajectory(FrozenModel):
    """The turns of an episode in order."""

    turns: tuple[Turn, ...] = ()

    @property
    def agent_turns(self) -> tuple[Turn, ...]:
        """The turns the agent itself took (role `assistant`)."""
        return tuple(turn for turn in self.turns if turn.role == "assistant")

    def tool_calls(self) -> Iterator[ToolCall]:
        """Every tool call in order."""
        for turn in self.turns:
            yield from turn.tool_calls

    @property
    def latencies_ms(self) -> tuple[float, ...]:
        """The latencies of the agent's turns that were measured."""
        return tuple(t.latency_ms for t in self.agent_turns if t.latency_ms is not None)

    @property
    def total_tokens(self) -> int | None:
        """Tokens of all agent turns; None where any of them was not measured."""
        usages = [turn.tokens for turn in self.agent_turns]
        if not usages or None in usages:
            return None
        return sum(usage.total for usage in usages if usage is not None)

    @property
    def cost_usd(self) -> float | None:
        """Cost of all agent turns; None where any of them is unpriced."""
        costs = [turn.cost_usd for turn in self.agent_turns]
        if not costs or None in costs:
            return None
        # Exact, so that neither order nor the version of Python changes a digit.
        return math.fsum(cost for cost in costs if cost is not None)


class TrajectorySummary(FrozenModel, extra="allow"):
    """The short form of a trajectory: counts, and whatever else a producer adds."""

    steps_count: Count = Field(default=0, description="turns the agent took")
    tool_calls_count: Count = Field(default=0, description="tool calls made")


def summarize_trajectory(trajectory: Trajectory) -> TrajectorySummary:
    """Count the agent's turns and its tool calls."""
    return TrajectorySummary(
        steps_count=len(trajectory.agent_turns),
        tool_calls_count=sum(1 for _ in trajectory.tool_calls()),
    )
