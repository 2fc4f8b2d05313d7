"""Conversion of a test's return value to an episode, merged into the running one."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import SkipTest

from ci_agent_eval.contract.base import describe_unknown_key, describe_validation_error
from ci_agent_eval.contract.budgets import Budget, Budgets
from ci_agent_eval.contract.episode import Assertion, Episode, Score
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import Trajectory, summarize_trajectory
from ci_agent_eval.errors import AgentEvalError, InputError
from ci_agent_eval.recording.active_episode import get_active_episode

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

RETURN_HELP = "return an Episode, a mapping, a JSON text, a dataclass, or an object with to_dict()"


class ReturnedEpisodeError(AgentEvalError):
    """Raised if the returned episode's outcome is an infrastructure error."""


def bind_arguments(
    test: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the arguments of a call by name, with defaults."""
    bound = inspect.signature(test).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


def deliver_episode(
    returned: object, *, scenario_id: object = None, thread_id: object = None
) -> Any:
    """Merge a returned episode into the running one, and return None for pytest.

    Without a running episode the value is returned unchanged, as from any function. Raises
    InputError if the value is not an episode.
    """
    running = get_active_episode()
    if running is None or running.recorder is None:
        return returned
    episode = as_episode(
        returned,
        scenario_id=running.recorder.scenario_id if scenario_id is None else str(scenario_id),
        thread_id=None if thread_id is None else str(thread_id),
    )
    running.recorder.merge_episode(episode)
    reason = episode.reason or "the returned episode gives no reason"
    if episode.outcome == "error":
        raise ReturnedEpisodeError(reason)
    if episode.outcome == "skipped" and not running.recorder.failed_checks:
        raise SkipTest(reason)  # pytest's own exception for it would need pytest
    return None


def as_episode(value: object, *, scenario_id: str, thread_id: str | None = None) -> Episode:
    """Convert a test's return value to an episode; the ids are used if it has none.

    Raises InputError, which names the wrong key.
    """
    if isinstance(value, Episode):
        return value
    given = {key: item for key, item in _read_fields(value).items() if item is not None}
    fallbacks = {"scenario_id": scenario_id, "thread_id": thread_id}
    fields = {**fallbacks, **{str(key): to_jsonable(item) for key, item in given.items()}}
    for key in fields:
        if key not in Episode.model_fields:
            known = tuple(Episode.model_fields)
            raise InputError(f"the returned episode: {describe_unknown_key(key, known)}")
    try:
        return Episode.model_validate(fields)
    except ValueError as error:
        raise InputError(f"the returned episode: {describe_validation_error(error)}") from None


def _read_fields(value: object) -> Mapping[Any, Any]:
    if value is None:
        raise InputError(f"@llm_episode: the test returned nothing; {RETURN_HELP}")
    if isinstance(value, str | bytes | bytearray):
        return _parse_json(value)
    found = _as_mapping(value)
    if found is None:
        if inspect.iscoroutine(value):
            value.close()
        kind = type(value).__name__
        raise InputError(f"@llm_episode: the test returned no episode but {kind!r}; {RETURN_HELP}")
    return found


def _as_mapping(value: Any) -> Mapping[Any, Any] | None:
    """Return an object's fields, or None if it has none of an episode's."""
    if isinstance(value, Mapping | type):
        return None if isinstance(value, type) else value
    for name in ("to_dict", "model_dump"):  # the latter is pydantic's, and so Opik's
        if callable(make := getattr(value, name, None)):
            made = make()
            return made if isinstance(made, Mapping) else None
    names = [field for field in Episode.model_fields if hasattr(value, field)]
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    return {name: getattr(value, name) for name in names} or None


def _parse_json(text: str | bytes | bytearray) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"@llm_episode: the text that the test returned is not JSON: {error}"
        ) from None
    if not isinstance(found, dict):
        raise InputError(
            f"@llm_episode: the JSON that the test returned is not an object; {RETURN_HELP}"
        )
    return found


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
