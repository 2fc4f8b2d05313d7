"""The trajectory of an agent: turns with their tool calls."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from ci_agent_eval.contract.base import Amount, Count, FrozenModel
from ci_agent_eval.contract.finish_reasons import normalize_finish_reason

Role = Literal["user", "assistant", "system", "tool"]

CallSource = Literal["live", "replayed", "scripted"]
"""Origin of a reply: a model, its recording, or a script."""


class TokenUsage(FrozenModel):
    """Tokens of one turn; `cached` is the part of `input` read from a cache."""

    input: Count = 0
    output: Count = 0
    cached: Count = 0

    @property
    def total(self) -> int:
        """Input plus output tokens."""
        return self.input + self.output


class ToolCall(FrozenModel):
    """One tool call; it has a result, an error, or neither while it is open."""

    id: str | None = None
    name: str
    arguments: JsonValue = None
    result: JsonValue = None
    error: str | None = None
    duration_ms: Amount | None = None
    steered_by: str | None = None
    """Steering handler that blocked the call; the tool never ran and `result` is its message."""

    @property
    def has_failed(self) -> bool:
        """Whether it raised an error or was blocked by steering."""
        return self.error is not None or self.steered_by is not None


class Turn(FrozenModel):
    """One message of the conversation; agent turns have cost and latency."""

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
        """Whether the agent answered; a turn without a reply is empty."""
        return self.role == "assistant" and bool(self.content.strip() or self.tool_calls)


class Trajectory(FrozenModel):
    """The turns of an episode in order."""

    turns: tuple[Turn, ...] = ()

    @property
    def agent_turns(self) -> tuple[Turn, ...]:
        """The agent's turns (role `assistant`)."""
        return tuple(turn for turn in self.turns if turn.role == "assistant")

    def tool_calls(self) -> Iterator[ToolCall]:
        """Yield every tool call in order."""
        for turn in self.turns:
            yield from turn.tool_calls

    @property
    def latencies_ms(self) -> tuple[float, ...]:
        """Measured latencies of the agent's turns."""
        return tuple(t.latency_ms for t in self.agent_turns if t.latency_ms is not None)

    @property
    def total_tokens(self) -> int | None:
        """Tokens of all agent turns; None if any turn was not measured."""
        usages = [turn.tokens for turn in self.agent_turns]
        if not usages or None in usages:
            return None
        return sum(usage.total for usage in usages if usage is not None)

    @property
    def cost_usd(self) -> float | None:
        """Cost of all agent turns; None if any turn is unpriced."""
        costs = [turn.cost_usd for turn in self.agent_turns]
        if not costs or None in costs:
            return None
        # Exact, so that the result does not depend on the order or the Python version.
        return math.fsum(cost for cost in costs if cost is not None)


class TrajectorySummary(FrozenModel, extra="allow"):
    """Counts of a trajectory, and any keys that a producer adds."""

    steps_count: Count = Field(default=0, description="turns the agent took")
    tool_calls_count: Count = Field(default=0, description="tool calls made")


def summarize_trajectory(trajectory: Trajectory) -> TrajectorySummary:
    """Count the agent's turns and its tool calls."""
    return TrajectorySummary(
        steps_count=len(trajectory.agent_turns),
        tool_calls_count=sum(1 for _ in trajectory.tool_calls()),
    )
