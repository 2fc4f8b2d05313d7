"""Table of the budget kinds; everything that handles budgets iterates over it.

A new row is accepted, measured, judged, reported and part of the schema without further
changes. Every start of pytest imports this module, so it imports nothing at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from ci_agent_eval.contract.stops import AgentStop
    from ci_agent_eval.contract.trajectory import Trajectory, TrajectorySummary

BudgetFormat = Literal["count", "money", "milliseconds", "seconds"]
"""How a budget's figures are formatted."""

_UNITS: dict[BudgetFormat, str] = {"milliseconds": "ms", "seconds": "s"}


class BudgetKind(NamedTuple):
    """A kind of episode budget, measured from the trajectory."""

    name: str
    """Its key in markers, files and reports."""
    label: str
    """Label in reports."""
    description: str
    """Description in the schema."""
    measure: Callable[[Trajectory], float | None] | None = None
    """Returns the used amount of a trajectory; None: not measured."""
    samples: Callable[[Trajectory], Sequence[float]] | None = None
    """Instead of `measure`: returns the values; the budget limits one statistic of them."""
    measure_summary: Callable[[TrajectorySummary], float] | None = None
    """Returns the used amount of a trajectory summary; unset: a summary does not hold it."""
    format: BudgetFormat = "count"
    stop_reason: AgentStop | None = None
    """Stop reason of an engine run that exceeds it; None: the run continues and is judged later."""


class SuiteBudgetKind(NamedTuple):
    """A kind of budget for the whole suite."""

    name: str
    """Key in settings, files and reports; with hyphens, the name of the pytest option."""
    label: str
    """Label in reports."""
    description: str
    """Description in the schema."""
    total: str
    """Attribute of the summary's `Totals` that it limits."""
    format: BudgetFormat = "count"
    is_whole: bool = False
    """Whether the limit is a whole number."""
    spent: Literal["cost_usd", "tokens", "elapsed_s"] | None = None
    """Measurement at which a running suite stops; None: only the report judges the budget."""
    metavar: str = "N"
    option_help: str = ""
    """Help text of the pytest option."""

    @property
    def unit(self) -> str | None:
        """Unit of the figures, None if there is none."""
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
