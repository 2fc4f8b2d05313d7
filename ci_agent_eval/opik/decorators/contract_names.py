"""The episode contract under the names of Opik's pull request.

Differences from Opik: budgets may be unmeasured, unknown keys are errors, and an episode without
assertions and evidence does not pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ci_agent_eval.contract.budgets import Budget, Budgets
from ci_agent_eval.contract.episode import Assertion, Episode, Score
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import Trajectory, summarize_trajectory
from ci_agent_eval.opik.decorators.returned_episode import as_episode

EpisodeAssertion = Assertion
EpisodeScore = Score

RecordedStep = Mapping[str, Any]
"""A step of an agent as recorded by its test; a step with an `action` is a tool call."""


class EpisodeBudgetMetric(Budget):
    """The used amount of a budget, and its limit."""

    @property
    def passed(self) -> bool:
        """Whether the budget was measured and kept."""
        return self.used is not None and self.used <= self.limit


class EpisodeBudgets(Budgets):
    """The budgets of an episode."""

    def all_metrics(self) -> dict[str, EpisodeBudgetMetric]:
        """Return every budget that is set, by name."""
        fields = EpisodeBudgetMetric.model_fields
        return {
            name: EpisodeBudgetMetric(**{field: getattr(budget, field) for field in fields})
            for name, budget in self.iter_named()
        }


class EpisodeResult(Episode):
    """A return value for tests with `@llm_episode`; its metadata may be any value."""

    budgets: EpisodeBudgets = EpisodeBudgets()

    def __init__(self, **fields: Any) -> None:
        given = {name: value for name, value in fields.items() if value is not None}
        if "metadata" in given:
            given["metadata"] = to_jsonable(given["metadata"])
        if isinstance(budgets := given.get("budgets"), Budgets):
            given["budgets"] = dict(budgets)  # which may lack the methods of EpisodeBudgets
        super().__init__(**given)

    @classmethod
    def from_any(
        cls,
        value: Any,
        *,
        fallback_scenario_id: str | None = None,
        fallback_thread_id: str | None = None,
    ) -> Episode:
        """Convert a test's return value to an episode. Raises InputError."""
        return as_episode(
            value, scenario_id=fallback_scenario_id or "", thread_id=fallback_thread_id
        )


def build_trajectory_summary(trajectory: Sequence[RecordedStep] | Trajectory) -> dict[str, Any]:
    """Count the steps and the tool calls of an agent."""
    if isinstance(trajectory, Trajectory):
        return dict(summarize_trajectory(trajectory))
    calls = [step for step in trajectory if _is_action(step.get("action"))]
    return {"steps_count": len(trajectory), "tool_calls_count": len(calls)}


def _is_action(action: object) -> bool:
    return isinstance(action, str) and bool(action.strip())


def make_max_turns_assertion(
    conversation_history: Sequence[Mapping[str, Any]],
    max_turns: int,
    *,
    name: str = "max_turns",
) -> Assertion:
    """Assert that a history of alternating messages has at most `max_turns` turns."""
    used = len(conversation_history) // 2
    return Assertion(
        name=name, passed=used <= max_turns, reason=f"turns_used={used}, limit={max_turns}"
    )


def make_tool_call_budget(
    trajectory: Sequence[RecordedStep] | Trajectory, limit: int
) -> EpisodeBudgetMetric:
    """Build the budget of an agent's tool calls, measured from its steps."""
    used = build_trajectory_summary(trajectory)["tool_calls_count"]
    return EpisodeBudgetMetric(used=used, limit=limit, unit="count")
