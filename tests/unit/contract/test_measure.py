"""Latency statistics against their definition, and the violations that follow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.budgets import STATISTICS, Budgets
from ci_agent_eval.contract.measurement import (
    compute_latency_statistic,
    convert_to_ms,
    find_budget_violations,
    measure_budgets,
)
from ci_agent_eval.contract.trajectory import Trajectory


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        ("p50", 10),
        ("p90", 18),
        ("p95", 19),
        ("p99", 20),
        ("max", 20),
        ("mean", 10.5),
        ("total", 210),
    ],
)
def test_statistics_of_one_to_twenty(statistic, expected):
    assert compute_latency_statistic(range(20, 0, -1), statistic) == expected


@pytest.mark.parametrize("statistic", STATISTICS)
def test_nothing_measured_is_none(statistic):
    assert compute_latency_statistic([], statistic) is None


@given(st.lists(st.floats(0, 1e9), min_size=1), st.sampled_from(["p50", "p90", "p95", "p99"]))
def test_a_percentile_is_the_smallest_value_that_covers_its_share(values, statistic):
    share = int(statistic[1:])
    found = compute_latency_statistic(values, statistic)
    assert found in values
    assert sum(v <= found for v in values) * 100 >= share * len(values)
    assert sum(v < found for v in values) * 100 < share * len(values)


def test_a_limit_without_a_measurement_is_a_violation():
    (violation,) = find_budget_violations(Budgets.model_validate({"cost_usd": 0.5}))
    assert violation.observed is None
    assert violation.over_by is None


def test_a_limit_that_is_just_reached_is_kept():
    budgets = Budgets.model_validate({"tool_calls": {"used": 4, "limit": 4}})
    assert find_budget_violations(budgets) == ()


def test_overshoot_is_a_share_of_the_limit_and_unknown_for_a_limit_of_zero():
    budgets = Budgets.model_validate(
        {"tool_calls": {"used": 6, "limit": 4}, "custom": {"retries": {"used": 1, "limit": 0}}}
    )
    over = {v.budget: v.over_by for v in find_budget_violations(budgets)}
    assert over == {"tool_calls": 0.5, "retries": None}


def test_a_custom_budget_of_the_same_name_does_not_keep_ours_from_being_measured():
    budgets = Budgets.model_validate({"max_turns": 3, "custom": {"max_turns": {"limit": 9}}})
    spoken = Trajectory.model_validate({"turns": [{"role": "assistant", "content": "hi"}]})
    assert [
        (name, budget.used) for name, budget in measure_budgets(budgets, spoken).iter_named()
    ] == [
        ("max_turns", 1),
        ("max_turns", None),
    ]


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.0, 0.0), (1.2345678, 1234.568), (-0.5, 0.0), (90.0, 90_000.0)]
)
def test_elapsed_seconds_become_milliseconds_and_never_negative(seconds, expected):
    assert convert_to_ms(seconds) == expected
