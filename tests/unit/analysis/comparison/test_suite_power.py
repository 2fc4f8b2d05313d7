"""The false alarms and the power of suites that are resampled from their baseline."""

from __future__ import annotations

import numpy as np
import pytest

from ci_agent_eval.analysis.comparison import suite_power
from ci_agent_eval.analysis.comparison.run_variation import PassCounts, ScenarioCounts
from ci_agent_eval.analysis.comparison.suite_power import RatedScenario, simulate_alarms
from ci_agent_eval.analysis.false_alarms import SuitePlan

LEVEL = 0.05


def rated(*passes, judged=5, required=1.0):
    return RatedScenario(tuple(PassCounts(n, judged) for n in passes), required)


def flaky(count, required=1.0):
    """Return scenarios of which a third fails once in each run: days do not differ."""
    passes = (4, 5, 5)
    return [
        RatedScenario(tuple(PassCounts(passes[(n + run) % 3], 5) for run in range(3)), required)
        for n in range(count)
    ]


def simulate(scenarios, suite_min_pass_rate=None):
    return simulate_alarms(scenarios, LEVEL, suite_min_pass_rate, resamples=40)


def test_a_suite_that_always_passed_has_no_false_alarms():
    found = simulate([rated(5, 5, 5)] * 10)
    assert (found.by_required_rates, found.by_comparison, found.own_runs_red) == (0, 0, 0)
    assert (found.quiet_min_pass_rate, found.quiet_suite_min_pass_rate) == (1.0, 1.0)
    assert (found.scenarios, found.runs, found.pass_rate) == (10, 3, 1.0)


def test_a_flaky_suite_misses_a_strict_rate_and_not_a_mild_one():
    strict, mild = simulate(flaky(30)), simulate(flaky(30, required=0.2))
    assert (strict.by_required_rates, strict.by_either) == (40, 40)
    assert mild.by_required_rates == 0
    assert strict.by_comparison == mild.by_comparison == mild.by_either <= 4


def test_the_suite_s_own_rate_takes_the_place_of_each_scenario_s():
    found = simulate(flaky(30), 0.5)
    assert found.by_required_rates == 0
    assert 0.8 < found.quiet_suite_min_pass_rate < 0.93
    assert simulate(flaky(30), 0.99).by_required_rates > 36


def test_larger_drops_are_tried_until_one_is_found():
    found = simulate(flaky(30)).drops
    assert [drop.drop for drop in found] == list(suite_power.DROPS[: len(found)])
    assert found[-1].red >= 0.8 * 20
    assert all(drop.red < 0.8 * 20 for drop in found[:-1])


def test_a_run_of_the_base_that_fell_is_red_against_the_others():
    found = simulate([rated(20, 20, 20, 2, judged=20)] * 10)
    assert found.own_runs_red == 1


def test_one_run_shows_no_own_runs():
    found = simulate([rated(4)] * 10)
    assert (found.runs, found.own_runs_red) == (1, 0)


def test_the_same_baseline_gives_the_same_figures():
    scenarios = [rated(4, 5, 3)] * 10
    assert simulate(scenarios) == simulate(scenarios)


def test_the_noise_of_iterations_is_no_difference_between_runs():
    random = np.random.default_rng(1)
    passes = random.binomial(5, 0.8, (200, 6))
    rates = suite_power._estimate_rates([rated(*map(int, row)) for row in passes])
    observed = (passes / 5).var(axis=1, ddof=1).mean()
    assert rates.var(axis=1, ddof=1).mean() < 0.15 * observed


def test_a_shift_of_all_scenarios_stays_a_difference_between_runs():
    random = np.random.default_rng(1)
    days = np.array([0.9, 0.6, 0.8, 0.5, 0.9, 0.7])
    passes = random.binomial(5, np.broadcast_to(days, (200, 6)))
    rates = suite_power._estimate_rates([rated(*map(int, row)) for row in passes])
    assert rates.mean(axis=0) == pytest.approx(days, abs=0.06)


def test_red_is_by_a_scenario_or_by_the_suite():
    same = ScenarioCounts((PassCounts(9, 10),), PassCounts(9, 10))
    broken = ScenarioCounts((PassCounts(10, 10),), PassCounts(0, 10))
    lower = ScenarioCounts((PassCounts(9, 10),), PassCounts(7, 10))
    assert not suite_power.is_red([same] * 20, LEVEL)
    assert suite_power.is_red([broken, *[same] * 19], LEVEL)
    assert suite_power.is_red([lower] * 20, LEVEL)


@pytest.mark.parametrize("runs", [1, 3])
def test_more_iterations_find_smaller_drops(runs):
    few, many = (
        suite_power.find_smallest_drop(SuitePlan(50, iterations, 0.9), runs, LEVEL / 2, 0.0)
        for iterations in (1, 10)
    )
    assert 0.02 < many < few


def test_days_that_differ_hide_small_drops():
    plan = SuitePlan(50, 20, 0.9)
    calm, moody = (suite_power.find_smallest_drop(plan, 10, LEVEL / 2, day) for day in (0.0, 0.02))
    assert calm < moody


def test_too_few_scenarios_have_no_suite_test():
    assert suite_power.find_smallest_drop(SuitePlan(4, 10, 0.9), 3, LEVEL / 2) is None
