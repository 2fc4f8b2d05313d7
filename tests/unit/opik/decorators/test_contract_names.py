"""Opik's names for the contract, where its users would notice."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.budgets import Budget, Budgets
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.trajectory import ToolCall, Trajectory, Turn
from ci_agent_eval.errors import InputError
from ci_agent_eval.opik.decorators import (
    EpisodeAssertion,
    EpisodeBudgetMetric,
    EpisodeBudgets,
    EpisodeResult,
    build_trajectory_summary,
    make_max_turns_assertion,
)

STEPS = [{"action": "lookup"}, {"action": "  "}, {"action": None}, {}, {"action": "refund"}]


def test_steps_with_an_action_are_tool_calls():
    assert build_trajectory_summary(STEPS) == {"steps_count": 5, "tool_calls_count": 2}
    assert build_trajectory_summary([]) == {"steps_count": 0, "tool_calls_count": 0}


def test_a_trajectory_of_ours_is_counted_too():
    turn = Turn(role="assistant", tool_calls=(ToolCall(name="a"), ToolCall(name="b")))
    trajectory = Trajectory(turns=(Turn(role="user"), turn))
    assert build_trajectory_summary(trajectory) == {"steps_count": 1, "tool_calls_count": 2}


@pytest.mark.parametrize(("messages", "passed"), [(4, True), (6, False), (5, True), (0, True)])
def test_turns_are_pairs_of_messages(messages, passed):
    assertion = make_max_turns_assertion([{}] * messages, 2, name="short")
    assert (assertion.name, assertion.passed) == ("short", passed)
    assert assertion.reason == f"turns_used={messages // 2}, limit=2"


def test_every_budget_may_be_the_one_class_that_opik_has():
    metric = EpisodeBudgetMetric(used=3, limit=5, unit="ms")
    budgets = EpisodeBudgets(latency_ms=metric, token_usage=metric, custom={"mine": metric})
    shown = {name: (b.used, b.limit, b.unit) for name, b in budgets.all_metrics().items()}
    assert shown == dict.fromkeys(("latency_ms", "token_usage", "mine"), (3, 5, "ms"))
    assert budgets.latency_ms is not None
    assert budgets.latency_ms.statistic == "total"


def test_an_unmeasured_budget_is_not_kept():
    assert not EpisodeBudgetMetric(limit=5).passed


@pytest.mark.parametrize("kind", [dict, Budgets, EpisodeBudgets])
@pytest.mark.parametrize("summary", [{}, build_trajectory_summary(STEPS)])
def test_all_metrics_of_a_result_say_whether_they_passed(kind, summary):
    """As the helper of Opik's examples of `@llm_episode` counts them."""
    given = kind(
        max_turns=EpisodeBudgetMetric(used=2, limit=2),
        tool_calls=Budget(limit=1),
        latency_ms={"p95": 9, "limit": 5, "hard": False},
        custom={"retries": EpisodeBudgetMetric(limit=3)},
    )
    result = EpisodeResult(scenario_id="s", budgets=given, trajectory_summary=summary)
    passed = {name: metric.passed for name, metric in result.budgets.all_metrics().items()}
    expected = {"max_turns": True, "tool_calls": False, "latency_ms": False, "retries": False}
    assert passed == expected  # 2 tool calls of 1, or unmeasured
    assert EpisodeResult(scenario_id="s", budgets=None).budgets.all_metrics() == {}


def test_a_result_is_an_episode():
    failed = EpisodeAssertion(name="a", passed=False, reason="no")
    result = EpisodeResult(scenario_id="s", assertions=[failed])
    assert isinstance(result, Episode)
    assert not result.is_passing()
    with pytest.raises(AssertionError, match="a: no"):
        result.assert_is_passing()


def test_from_any_takes_what_stands_in():
    result = EpisodeResult.from_any(
        {"outcome": "passed"}, fallback_scenario_id="s", fallback_thread_id="t"
    )
    assert (result.scenario_id, result.thread_id) == ("s", "t")
    given = EpisodeResult.from_any(
        {"outcome": "passed", "scenario_id": "own"}, fallback_scenario_id="s"
    )
    assert given.scenario_id == "own"
    with pytest.raises(InputError, match="returned nothing"):
        EpisodeResult.from_any(None, fallback_scenario_id="s")
