"""The test of the suite as a whole, held against SciPy and worked examples."""

from __future__ import annotations

import math
from statistics import fmean, variance

import pytest
from scipy import stats

from ci_agent_eval.analysis.comparison.suite_change import SuiteSample, compute_suite_change


def change(*samples):
    return compute_suite_change("pass_rate", samples, gates=True)


def sample(before, after):
    return SuiteSample(tuple(before), fmean(before), after)


def test_with_one_run_it_is_the_paired_t_test_with_an_assumed_day():
    afters = [0.5, 0.6, 0.7, 0.9, 0.4, 0.8]
    found = change(*(sample([0.9], after) for after in afters))
    differences = [after - 0.9 for after in afters]
    own, day = variance(differences) / 6, 2 * 0.02**2
    degrees = (own + day) ** 2 / (own**2 / 5 + day**2 / 4)
    t = fmean(differences) / math.sqrt(own + day)
    assert found.p_value == pytest.approx(stats.t.cdf(t, degrees), rel=1e-6)
    margin = stats.t.ppf(0.975, degrees) * math.sqrt(own + day)
    assert found.interval == pytest.approx(
        (fmean(differences) - margin, fmean(differences) + margin)
    )
    assert (found.runs, found.day_variation, found.scenarios) == (1, 0.02, 6)


def test_few_scenarios_are_no_suite():
    assert change(*[sample([1.0], 0.0)] * 4) is None


def test_the_same_drop_everywhere_is_a_drop():
    assert change(*[sample([0.8], 0.6)] * 10).p_value < 0.0025


def test_bad_days_of_the_base_excuse_a_drop():
    """All scenarios fell by 10 points; runs of the base have done so, too."""
    calm = change(*[sample([0.8, 0.8, 0.81, 0.79], 0.7)] * 10)
    moody = change(*[sample([0.9, 0.7, 0.8, 0.75], 0.7)] * 10)
    assert calm.p_value < 0.01
    assert moody.p_value > 0.05


def test_more_runs_of_the_base_find_a_drop_that_one_finds():
    """The runs differ by more than the assumed day, and less than the head from all of them."""
    alone = change(*[sample([0.92], 0.82)] * 30)
    several = change(*[sample([0.95, 0.92, 0.89], 0.82)] * 30)
    assert alone.p_value == pytest.approx(stats.t.cdf(-10 / math.sqrt(8), 4), rel=1e-6)
    assert several.day_variation**2 == pytest.approx((4 * 2**2 + 2 * (3**2 - 0.3)) / 6 / 100**2)
    assert several.p_value <= alone.p_value < 0.025


def test_the_noise_of_few_iterations_is_no_bad_day():
    """Runs with 2, 7 and 3 failures of 50 are chance; 18 in the head are not."""
    failures = [{(run * 3 + k * 7) % 50 for k in range(n)} for run, n in enumerate((2, 7, 3))]
    head = {k * 3 % 50 for k in range(18)}
    found = change(
        *(
            sample([float(i not in run) for run in failures], float(i not in head))
            for i in range(50)
        )
    )
    assert found.p_value < 0.025
