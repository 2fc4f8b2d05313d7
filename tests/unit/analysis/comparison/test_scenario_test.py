"""The test of one scenario: Fisher's without correlation, and careful where runs differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_agent_eval.analysis.adaptive_iterations import compute_regression_evidence
from ci_agent_eval.analysis.comparison.run_variation import (
    ASSUMED_CORRELATION,
    PassCounts,
    ScenarioCounts,
)
from ci_agent_eval.analysis.comparison.scenario_test import (
    compute_drop_p_value,
    compute_drop_p_values,
    predict_rate,
    predict_scenarios,
)
from tests.builders import baseline, episode, failing

side = st.integers(1, 40).flatmap(lambda n: st.builds(PassCounts, st.integers(0, n), st.just(n)))


def scenario(after, *before):
    return ScenarioCounts(tuple(PassCounts(*run) for run in before), PassCounts(*after))


def test_fisher_s_tea_drinker():
    # Fisher, The Design of Experiments (1935), section 7: 3 of 4 cups right, p = 17/70.
    assert compute_drop_p_value(scenario((1, 4), (3, 4)), 0.0) == pytest.approx(17 / 70)


@given(side, st.lists(side, min_size=1, max_size=4))
def test_without_correlation_it_is_fisher_s_exact_test(after, before):
    found = ScenarioCounts(tuple(before), after)
    table = [
        [after.passed, after.judged - after.passed],
        [found.pooled.passed, found.pooled.judged - found.pooled.passed],
    ]
    expected = stats.fisher_exact(table, alternative="less").pvalue
    assert compute_drop_p_value(found, 0.0) == pytest.approx(expected, rel=1e-8)


def test_the_more_a_run_s_iterations_are_alike_the_less_a_drop_says():
    found = scenario((2, 10), (10, 10), (9, 10), (10, 10))
    p_values = [compute_drop_p_value(found, correlation) for correlation in (0, 0.03, 0.13, 0.5)]
    assert p_values == sorted(p_values)
    assert p_values[0] < 0.001
    assert p_values[-1] > 0.05


def test_a_scenario_that_never_passed_cannot_fall():
    assert compute_drop_p_value(scenario((0, 5), (0, 5)), 0.05) == 1.0


def test_scenarios_that_cannot_show_a_drop_are_not_counted():
    """One of fifty is broken, and the others have no failures: five iterations are enough."""
    steady = [scenario((5, 5), (5, 5))] * 49
    *others, broken = compute_drop_p_values([*steady, scenario((0, 5), (5, 5))], 0.0, 0.025)
    assert set(others) == {None}
    assert broken == pytest.approx(1 / 252)


def test_scenarios_that_could_show_one_are_adjusted_for():
    doubtful = [scenario((3, 5), (2, 5))] * 3
    p_values = compute_drop_p_values([*doubtful, scenario((0, 5), (5, 5))], 0.0, 0.025)
    assert p_values[3] == pytest.approx(4 / 252)


def test_adaptive_iterations_are_judged_by_all_of_them_and_their_e_value():
    """Wang and Ramdas's e-BH: the reciprocals of e-values are adjusted as p-values."""
    base = (PassCounts(19, 20),) * 5
    broken = ScenarioCounts(base, PassCounts(1, 3), sequential=PassCounts(2, 9))
    fine = ScenarioCounts(base, PassCounts(3, 3), sequential=PassCounts(3, 3))
    predicted = predict_rate(base, 0.01)
    evidence = compute_regression_evidence(2, 7, predicted)
    assert compute_drop_p_value(broken, 0.01) == pytest.approx(1 / evidence)
    assert compute_drop_p_value(fine, 0.01) == 1.0
    found = compute_drop_p_values([broken, *[fine] * 19], 0.01, 0.025)
    assert found[0] == pytest.approx(20 / evidence)
    assert found[0] < 0.025


def test_a_baseline_predicts_each_of_its_scenarios():
    runs = [
        [
            *(episode("desk", iteration=i, duration_ms=n) for i in range(1, 5)),
            failing("broken", iteration=1, duration_ms=n),
        ]
        for n in range(3)
    ]
    (found,) = predict_scenarios(baseline(*runs))
    assert (found.scenario_id, found.agent) == ("desk", None)
    expected = predict_rate([PassCounts(4, 4)] * 3, ASSUMED_CORRELATION)
    assert (found.alpha, found.beta) == pytest.approx(expected, rel=0.2)


def test_p_values_of_other_measures_are_adjusted_with_those_of_the_drops():
    """A broken scenario, one that cannot show a drop, and three increases."""
    broken = ScenarioCounts((PassCounts(20, 20),), PassCounts(0, 5))
    perfect = ScenarioCounts((PassCounts(20, 20),), PassCounts(5, 5))
    others = [0.004, 0.3, 0.02]
    found = compute_drop_p_values([broken, perfect], 0.0, 0.025, others)
    raw = [compute_drop_p_value(broken, 0.0), *others]
    adjusted = [found[0], *found[2:]]
    assert found[1] is None
    assert adjusted == pytest.approx(list(stats.false_discovery_control(raw)))
