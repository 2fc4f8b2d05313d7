"""Changes of the suite's metrics, held against SciPy and worked examples."""

from __future__ import annotations

import math
import random
from statistics import fmean, variance

import pytest
from scipy import stats

from ci_agent_eval.analysis.comparison.log_means import MetricSides
from ci_agent_eval.analysis.comparison.metric_changes import (
    MeasuredSuite,
    SuiteRatio,
    compare_means,
    compare_quantiles,
    compare_typical_values,
    find_certainty,
)
from ci_agent_eval.analysis.comparison.pool import RunValues
from ci_agent_eval.analysis.comparison.run_variation import DayVariation
from tests.tables import each_row

NO_DAY = DayVariation(0.0, math.inf, 1)


def sides(before, after):
    return MetricSides((RunValues(0, tuple((v,) for v in before)),), tuple((v,) for v in after))


def suite(scenarios, before, after, *, rise=1.0, seed=1, spread=0.3):
    draw = random.Random(seed)
    usual = [draw.lognormvariate(0, 1) for _ in range(scenarios)]
    return [
        sides(
            [one * draw.lognormvariate(0, spread) for _ in range(before)],
            [rise * one * draw.lognormvariate(0, spread) for _ in range(after)],
        )
        for one in usual
    ]


def limits(found, level=0.025):
    return [found.compute_limit(level, upper=upper) for upper in (False, True)]


def test_the_typical_value_is_compared_by_a_t_test_of_the_scenarios():
    scenarios = suite(12, 4, 3)
    found = compare_typical_values(MeasuredSuite(scenarios, NO_DAY))
    rises = [
        fmean(math.log(v) for (v,) in s.after) - fmean(math.log(v) for (v,) in s.base)
        for s in scenarios
    ]
    expected = stats.ttest_1samp(rises, 0).confidence_interval(0.95)
    assert limits(found) == pytest.approx([math.expm1(end) for end in expected])
    base = fmean(fmean(math.log(v) for (v,) in s.base) for s in scenarios)
    assert found.before == pytest.approx(math.exp(base))


def test_an_assumed_day_widens_every_interval():
    scenarios = suite(30, 5, 5)
    for compare in (compare_means, compare_typical_values, lambda s: compare_quantiles(s, 0.5)):
        narrow = limits(compare(MeasuredSuite(scenarios, NO_DAY)))
        wide = limits(compare(MeasuredSuite(scenarios)))
        assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_the_mean_is_compared_by_the_delta_method():
    """One scenario: the variance of a ratio of two independent means."""
    before, after = [1.0, 1.4, 0.8, 1.1], [2.0, 2.6, 1.9, 2.2, 2.4]
    found = compare_means(MeasuredSuite([sides(before, after)], NO_DAY))
    ratios = [[v / fmean(side) for v in side] for side in (before, after)]
    squares = sum(variance(side) * (len(side) - 1) for side in ratios) / 7
    margin = stats.t.ppf(0.975, 7) * math.sqrt(squares / 4 + squares / 5)
    rise = math.log(fmean(after) / fmean(before))
    assert limits(found) == pytest.approx([math.expm1(rise - margin), math.expm1(rise + margin)])


def test_one_scenario_that_costs_more_is_no_chance_however_many_do_not():
    scenarios = [sides([1.0] * 3, [1.0] * 3) for _ in range(49)] + [sides([1.0] * 3, [9.0] * 3)]
    found = compare_means(MeasuredSuite(scenarios))
    assert limits(found) == pytest.approx([0.16, 0.16])


def test_the_base_alone_decides_the_lower_limit():
    """Only its upper limit needs many values, not the head's lower one."""
    found = compare_quantiles(MeasuredSuite(suite(5, 40, 4, rise=4), NO_DAY), 0.95)
    low, high = limits(found)
    assert (low is not None, high) == (True, None)


def test_nothing_measured_is_no_change_and_nothing_spent_has_no_limits():
    assert compare_means(MeasuredSuite([])) is None
    assert compare_quantiles(MeasuredSuite([]), 0.95) is None
    assert compare_typical_values(MeasuredSuite([])) is None
    free = MeasuredSuite([sides([0.0, 0.0], [1.0, 2.0])])
    for found in (compare_means(free), compare_typical_values(free)):
        assert (found.before, found.after, *limits(found)) == (0.0, 1.5, None, None)


@each_row(
    ("rise", "word"),
    [
        (3.0, "certain"),
        (1 / 3, "certain"),
        (1.12, "likely"),
        (0.89, "likely"),
        (1.0, "inconclusive"),
    ],
)
def test_certain_changes_are_significant_and_likely_ones_nearly(rise, word):
    found = compare_means(MeasuredSuite(suite(12, 5, 5, rise=rise, seed=6), NO_DAY))
    (low, high), (near, far) = limits(found), limits(found, 0.2)
    assert find_certainty(found, 0.025) == word
    assert (low > 0 or high < 0) is (word == "certain")
    assert (near > 0 or far < 0) is (word != "inconclusive")


def test_from_nothing_is_certain_and_to_nothing_or_unknown_is_not():
    def unknown(_level, _upper):
        return None

    assert find_certainty(SuiteRatio(0.0, 1.0, unknown), 0.025) == "certain"
    assert find_certainty(SuiteRatio(1.0, 1.0, unknown), 0.025) == "inconclusive"
    assert find_certainty(SuiteRatio(1.0, 2.0, unknown), 0.025) == "inconclusive"
