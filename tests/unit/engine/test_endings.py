from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import get_args

import pytest

from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.stops import AgentStop, StopReason
from ci_agent_eval.contract.trajectory import ToolCall, Trajectory, Turn
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.engine.limits import RunLimits, find_exceeded_limit
from ci_agent_eval.engine.result import AgentResult
from ci_agent_eval.engine.stops import STOPS_BY_ERROR
from ci_agent_eval.errors import InputError
from tests.tables import each_row


def result_of(stop_reason, *turns, **options):
    return AgentResult(Trajectory(turns=turns), stop_reason, **options)


ANSWER = Turn(role="assistant", content="Well,")


@each_row("stop_reason", get_args(StopReason))
def test_only_a_completed_run_can_pass(stop_reason):
    result = result_of(stop_reason, ANSWER)
    assert (result.outcome == "passed") is result.success is (stop_reason == "completed")
    infrastructure = {"server_error", "model_error", "cancelled"}
    assert (result.outcome == "error") is (stop_reason in infrastructure)


@each_row("stop_reason", get_args(AgentStop))
def test_an_end_that_is_allowed_passes_and_is_no_success(stop_reason):
    result = result_of(stop_reason, ANSWER, allowed_stops=frozenset({stop_reason}))
    assert (result.outcome, result.success) == ("passed", False)


@each_row(
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
    stop = find_exceeded_limit(limits, Usage(tool_calls=4, tokens=30, cost_usd=1.0))
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


@each_row("field", ["max_turns", "tool_calls", "tokens", "cost_usd"])
def test_a_wrong_limit_is_named(field):
    with pytest.raises(InputError, match=rf"^RunLimits\.{field}: "):
        RunLimits(**{field: -1})


def test_a_result_of_no_turns_measures_nothing():
    result = AgentResult(Trajectory(), "server_error", "it died")
    assert (result.token_usage, result.cost_usd, result.final_response) == (None, None, "")
    assert (result.success, result.outcome) == (False, "error")
    assert result.tool_call_arg("any", "thing") is None


def test_every_error_with_a_stop_exists():
    for name in STOPS_BY_ERROR:
        module, _, kind = name.rpartition(".")
        assert issubclass(getattr(import_module(module), kind), Exception)


def test_a_failed_assertion_shows_a_short_result():
    result = AgentResult(Trajectory(), "server_error", "it died", agent="bank")
    assert repr(result) == "<result of agent 'bank': server_error, turns: 0, tool calls: none>"


def test_a_tool_that_nobody_offers_may_not_be_asked_for():
    turn = Turn(role="assistant", tool_calls=(ToolCall(name="transfer"),))
    result = AgentResult(Trajectory(turns=(turn,)), "completed", available_tools=("find",))
    assert result.tool_was_called("transfer")
    assert not result.tool_was_called("find")
    assert not result.tool_was_called("wipe")  # a policy names tools that are rightly not offered
    for name in ("tranfer", "Transfer", "transfre"):
        with pytest.raises(AssertionError, match="did you mean 'transfer'"):
            result.tool_was_called(name)
    assert not replace(result, available_tools=()).tool_was_called("tranfer")  # they are unknown
