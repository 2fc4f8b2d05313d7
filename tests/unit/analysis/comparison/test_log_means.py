"""Variances on logarithms, held against SciPy and worked examples."""

from __future__ import annotations

import math
from statistics import fmean, variance

import pytest
from scipy import stats

from ci_agent_eval.analysis.comparison.log_means import (
    MetricSides,
    compute_logs,
    estimate_day,
    estimate_run_shift,
    shrink_variances,
)
from ci_agent_eval.analysis.comparison.pool import RunValues
from ci_agent_eval.analysis.distributions import (
    VariancePart,
    combine_parts,
    compute_margin,
    compute_rise_p_value,
)


def sides(*before, after):
    runs = (RunValues(n, tuple((v,) for v in run)) for n, run in enumerate(before))
    return MetricSides(tuple(runs), tuple((v,) for v in after))


def logs(*before, after):
    return compute_logs(sides(*before, after=after))


def test_welch_s_degrees_of_freedom_are_satterthwaite_s():
    one, other = [1.0, 2.5, 2.0, 4.0], [3.0, 3.5, 9.0, 5.0, 6.5, 2.0]
    parts = [VariancePart(variance(v) / len(v), len(v) - 1) for v in (one, other)]
    found = combine_parts(parts)
    expected = stats.ttest_ind(other, one, equal_var=False, alternative="greater")
    assert found.degrees == pytest.approx(expected.df)
    rise = fmean(other) - fmean(one)
    assert compute_rise_p_value(rise, found) == pytest.approx(expected.pvalue)
    low = expected.confidence_interval(0.975).low
    assert rise - compute_margin(found, 0.025) == pytest.approx(low)


def test_one_scenario_alone_has_its_own_variance():
    one, other = [1.0, 2.5, 2.0, 4.0], [3.0, 3.5, 9.0]
    (found,) = shrink_variances([(one, other)])
    expected = stats.ttest_ind(other, one, alternative="greater")
    part = VariancePart(found.variance * (1 / 4 + 1 / 3), found.degrees)
    assert (found.degrees, expected.df) == (5, 5)
    assert compute_rise_p_value(fmean(other) - fmean(one), part) == pytest.approx(expected.pvalue)


def test_a_scenario_s_variance_is_shrunk_to_the_suite_s():
    calm, wild = ([1.0, 1.0, 1.0], [1.0, 1.0]), ([0.0, 4.0, 8.0], [2.0, 10.0])
    suite = [calm] * 9 + [wild]
    pooled = (16 + 16 + 32) / 30
    found = shrink_variances(suite)
    assert found[0] == pytest.approx(((10 * pooled) / 13, 13))
    assert found[9] == pytest.approx(((10 * pooled + 64) / 13, 13))


def test_single_iterations_show_no_variance():
    assert shrink_variances([([1.0], [2.0])] * 5) is None


def test_a_zero_counts_as_the_smallest_value_and_zeros_alone_as_nothing():
    found = logs([0.0, 0.5, 2.0], after=[1.0])
    assert found.base == pytest.approx((math.log(0.5), math.log(0.5), math.log(2)))
    assert logs([0.0, 0.0], after=[1.0]) is None
    assert logs([1.0], after=[0.0]) is None


def test_a_run_of_a_part_of_the_suite_does_not_count_as_a_day():
    whole = [logs([1.0, 1.2], [1.1, 1.0], after=[1.0]) for _ in range(9)]
    part = logs([1.0, 1.2], [1.1, 1.0], [9.0, 8.0], after=[1.0])
    assert estimate_day([*whole, part]).runs == 2


def test_the_shift_of_runs_is_the_anova_s_component():
    runs = [[1.0, 1.4, 1.2], [2.0, 2.2, 1.9], [0.7, 0.9, 1.1]]
    found = logs(*([math.exp(v) for v in run] for run in runs), after=[1.0])
    f = stats.f_oneway(*runs).statistic
    within = fmean(variance(run) for run in runs)
    assert estimate_run_shift([found]) == pytest.approx((f - 1) * within / 3)
    assert estimate_run_shift([logs([1.0, 2.0], after=[1.0])]) == 0
