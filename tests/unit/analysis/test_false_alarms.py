"""How often an unchanged suite fails, against SciPy and published figures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_agent_eval.analysis import false_alarms
from ci_agent_eval.analysis.false_alarms import SuitePlan


def chance(scenarios, iterations, rate, required, **fields):
    plan = SuitePlan(scenarios, iterations, rate, required, **fields)
    return false_alarms.compute_false_alarm_chance(plan)


@pytest.mark.parametrize(
    ("scenarios", "iterations", "required", "percent"),
    [(10, 1, 1, 40), (50, 1, 1, 92), (200, 1, 1, 100), (50, 3, 0.66, 31), (50, 5, 0.8, 68),
     (50, 5, 0.6, 5.6), (50, 10, 0.8, 44), (50, 20, 0.8, 12)],
)  # fmt: skip
def test_suites_that_pass_95_percent_of_the_time(scenarios, iterations, required, percent):
    assert 100 * chance(scenarios, iterations, 0.95, required) == pytest.approx(percent, abs=0.6)


@given(
    st.integers(1, 400),
    st.floats(0, 1),
    st.decimals(0, 1, places=2),
)
def test_shortfalls_are_binomial(iterations, rate, required):
    found = false_alarms.compute_shortfall_chance(iterations, rate, float(required))
    least = math.ceil(required * iterations)
    assert found == pytest.approx(stats.binom.cdf(least - 1, iterations, rate), abs=1e-9)


def test_all_of_100_iterations_at_29_percent_need_29_passes():
    assert false_alarms.compute_shortfall_chance(100, 0.29, 0.29) == pytest.approx(
        stats.binom.cdf(28, 100, 0.29)
    )


def test_a_suite_s_rate_is_of_all_iterations_together():
    expected = stats.binom.cdf(89, 100, 0.95)
    assert chance(50, 2, 0.95, 1.0, suite_min_pass_rate=0.9) == pytest.approx(expected)


def test_a_suite_that_always_passes_is_quiet():
    assert chance(200, 20, 1.0, 1.0) == 0.0


def test_a_suite_that_never_passes_always_fails():
    assert chance(5, 1, 0.0, 1.0) == 1.0


@given(
    st.integers(1, 100),
    st.integers(1, 20),
    st.sampled_from([0.5, 0.8, 0.95, 0.99]),
    st.sampled_from([0.5, 0.8, 1.0]),
)
def test_each_suggestion_is_quiet_and_changes_one_requirement(
    scenarios, iterations, rate, required
):
    plan = SuitePlan(scenarios, iterations, rate, required)
    for change in false_alarms.list_quiet_plans(plan):
        assert false_alarms.compute_false_alarm_chance(change) <= 0.05
        assert (change.scenarios, change.pass_rate) == (scenarios, rate)
        assert change.min_pass_rate <= required
        assert change.iterations >= iterations
        assert change != plan


def test_suggestions_for_a_suite_of_50_with_one_iteration():
    found = list(false_alarms.list_quiet_plans(SuitePlan(50, 1, 0.95)))
    assert [(p.iterations, p.min_pass_rate, p.suite_min_pass_rate) for p in found] == [
        (30, 0.8, None),
        (4, 0.5, None),
        (1, 1.0, 0.9),
    ]


def test_more_iterations_do_where_less_is_required_than_is_passed():
    found = list(false_alarms.list_quiet_plans(SuitePlan(50, 5, 0.95, 0.8)))
    assert (30, 0.8) in [(p.iterations, p.min_pass_rate) for p in found]
