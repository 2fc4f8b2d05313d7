"""The kinds of budgets: one row for each, which everything that handles budgets iterates over.

A new kind is a new row. It is then accepted, measured, judged, shown in every report and in
the schema; nothing else names kinds one by one. Imported at every start of pytest, so that it
imports nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ci_agent_eval.contract.stops import AgentStop
    from ci_agent_eval.contract.trajectory import Trajectory, TrajectorySummary

Format = Literal["count", "money", "milliseconds", "seconds"]
"""How figures of a budget are written."""

_UNITS: dict[Format, str] = {"milliseconds": "ms", "seconds": "s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetKind:
    """A kind of budget that an episode may have, which is measured from its trajectory."""

    name: str
    """Its key in markers, files and reports."""
    label: str
    """What reports call it."""
    description: str
    """What the schema says of it."""
    measure: Callable[[Trajectory], float | None] | None = None
    """Returns what a trajectory used; None: not measured."""
    samples: Callable[[Trajectory], Sequence[float]] | None = None
    """In place of `measure`: the figures of which the budget limits one statistic."""
    measure_summary: Callable[[TrajectorySummary], float] | None = None
    """Returns what the short form of a trajectory says of it; unset: nothing."""
    format: Format = "count"
    stop_reason: AgentStop | None = None
    """How a run of the engine ends that is beyond it; None: it goes on, and is judged later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteBudgetKind:
    """A kind of budget that the suite as a whole may have."""

    name: str
    """Its key in settings, files and reports, and with hyphens its option of pytest."""
    label: str
    """What reports call it."""
    description: str
    """What the schema says of it."""
    total: str
    """The attribute of the summary's `Totals` that it limits."""
    format: Format = "count"
    is_whole: bool = False
    """Whether its limit is a whole number."""
    spent: Literal["cost_usd", "tokens", "elapsed_s"] | None = None
    """What a running suite knows of it, and stops at; None: only the report judges it."""
    metavar: str = "N"
    option_help: str = ""
    """What `pytest --help` says of it, where a running suite stops at it."""

    @property
    def unit(self) -> str | None:
        """The unit of its figures, where they have one that is written."""
        return _UNITS.get(self.format)


BUDGET_KINDS: tuple[BudgetKind, ...] = (
    BudgetKind(
        name="max_turns",
        label="turns",
        description="turns of the agent",
        measure=lambda trajectory: float(len(trajectory.agent_turns)),
        measure_summary=lambda summary: float(summary.steps_count),
        stop_reason="max_turns",
    ),
    BudgetKind(
        name="tool_calls",
        label="tool calls",
        description="tool calls",
        measure=lambda trajectory: float(sum(len(turn.tool_calls) for turn in trajectory.turns)),
        measure_summary=lambda summary: float(summary.tool_calls_count),
        stop_reason="tool_call_limit",
    ),
    BudgetKind(
        name="latency_ms",
        label="latency",
        description="latency of agent turns",
        samples=lambda trajectory: trajectory.latencies_ms,
        format="milliseconds",
    ),
    BudgetKind(
        name="token_usage",
        label="tokens",
        description="tokens, input and output",
        measure=lambda trajectory: trajectory.total_tokens,
        stop_reason="token_limit",
    ),
    BudgetKind(
        name="cost_usd",
        label="cost",
        description="cost in US dollars",
        measure=lambda trajectory: trajectory.cost_usd,
        format="money",
        stop_reason="cost_limit",
    ),
)

SUITE_BUDGET_KINDS: tuple[SuiteBudgetKind, ...] = (
    SuiteBudgetKind(
        name="total_cost_usd",
        label="total cost",
        description="cost in US dollars",
        total="cost_usd",
        format="money",
        spent="cost_usd",
        metavar="USD",
        option_help=(
            "stop the run when its episodes, their judges and simulated users have cost more"
        ),
    ),
    SuiteBudgetKind(
        name="total_tokens",
        label="total tokens",
        description="tokens, input and output",
        total="tokens",
        is_whole=True,
        spent="tokens",
        option_help="stop the run when they have used more tokens",
    ),
    SuiteBudgetKind(
        name="total_wall_time_s",
        label="total wall time",
        description="seconds of all sessions",
        total="wall_time_s",
        format="seconds",
        spent="elapsed_s",
        metavar="SECONDS",
        option_help="stop the run when it has taken longer",
    ),
)
