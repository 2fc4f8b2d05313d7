from __future__ import annotations

from typing import get_args

import pytest

from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.episode import StopReason
from ci_agent_eval.contract.trajectory import Trajectory
from ci_agent_eval.engine.endings import ENDINGS, outcome_of
from ci_agent_eval.engine.limits import RunLimits, Spent, limit_reached
from ci_agent_eval.engine.result import AgentResult
from ci_agent_eval.errors import InputError


def test_every_stop_reason_of_the_contract_has_an_ending_with_a_reason():
    assert set(ENDINGS) == set(get_args(StopReason))
    assert all(ending.why for ending in ENDINGS.values())


@pytest.mark.parametrize("stop_reason", get_args(StopReason))
def test_only_a_completed_run_can_pass(stop_reason):
    outcome = outcome_of(stop_reason, answered=True)
    assert (outcome == "passed") is (stop_reason == "completed")
    world = {"server_error", "model_error", "cancelled"}
    assert (outcome == "error") is (stop_reason in world)


def test_a_timeout_before_any_answer_is_the_worlds():
    assert outcome_of("timeout", answered=False) == "error"
    assert outcome_of("timeout", answered=True) == "failed"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (RunLimits(), None),
        (RunLimits(tool_calls=4, tokens=30, cost_usd=1.0), None),
        (RunLimits(tool_calls=3), "tool_call_limit"),
        (RunLimits(tokens=29), "token_limit"),
        (RunLimits(cost_usd=0.99), "cost_limit"),
    ],
)
def test_a_limit_is_reached_by_what_goes_beyond_it(limits, reason):
    stop = limit_reached(limits, Spent(tool_calls=4, tokens=30, cost_usd=1.0))
    assert (stop.reason if stop else None) == reason


def test_hard_budgets_are_limits_and_soft_ones_are_not():
    budgets = Budgets.model_validate(
        {
            "max_turns": 4,
            "tool_calls": {"limit": 3, "hard": False},
            "token_usage": 2000,
            "cost_usd": 0.05,
            "custom": {"pages": 3},
        }
    )
    assert RunLimits.from_budgets(budgets) == RunLimits(max_turns=4, tokens=2000, cost_usd=0.05)


@pytest.mark.parametrize("field", ["max_turns", "tool_calls", "tokens", "cost_usd"])
def test_a_wrong_limit_is_named(field):
    with pytest.raises(InputError, match=rf"^RunLimits\.{field}: "):
        RunLimits(**{field: -1})


def test_a_result_of_no_turns_measures_nothing():
    result = AgentResult(Trajectory(), "server_error", "it died")
    assert (result.token_usage, result.cost_usd, result.final_response) == (None, None, "")
    assert (result.success, result.outcome) == (False, "error")
    assert result.tool_call_arg("any", "thing") is None
