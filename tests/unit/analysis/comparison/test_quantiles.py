"""Quantiles of a suite: each scenario counts once, and limits hold the truth."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_agent_eval.analysis.comparison.metric_changes import SuiteValues
from ci_agent_eval.contract.measurement import compute_latency_statistic
from tests.tables import each_row


def singles(values):
    return tuple((value,) for value in values)


@given(st.lists(st.integers(1, 50).map(float), min_size=1, max_size=60))
def test_of_one_scenario_it_is_the_nearest_rank(values):
    found = SuiteValues([singles(values)]).find_quantile(0.95)
    assert found == compute_latency_statistic(values, "p95")


def test_a_scenario_counts_once_however_many_values_it_has():
    suite = SuiteValues([singles([1.0] * 98 + [2.0] * 2), singles([10.0])])
    assert [suite.find_quantile(share) for share in (0.49, 0.5, 0.51)] == [1.0, 2.0, 10.0]


def test_the_lower_limit_of_independent_values_is_woodruff_s():
    draw = random.Random(1)
    values = sorted(draw.lognormvariate(0, 1) for _ in range(1000))
    suite = SuiteValues([singles(values)])
    found = suite.find_distance(0.95, 0.025, upper=False)
    t = stats.t.ppf(0.975, 999)
    share = 0.95 - t * math.sqrt(0.95 * 0.05 / 999)
    expected = math.log(values[949] / values[math.ceil(share * 1000) - 1]) / t
    assert math.sqrt(found.variance) == pytest.approx(expected)
    assert found.degrees == 999


def test_turns_of_an_iteration_are_one_cluster():
    """Slow iterations are slow in all their turns: as uncertain as one turn each."""
    draw = random.Random(2)
    values = [draw.lognormvariate(0, 1) for _ in range(400)]
    alone, alike = (
        SuiteValues([tuple((v,) * turns for v in values)]).find_distance(0.5, 0.025, upper=True)
        for turns in (1, 5)
    )
    assert alike == alone


@each_row(("count", "is_known"), [(71, False), (72, True)])
def test_a_p95_has_no_upper_limit_below_72_values(count, is_known):
    suite = SuiteValues([singles(float(n) for n in range(1, count + 1))])
    assert (suite.find_distance(0.95, 0.025, upper=True) is not None) is is_known
    assert suite.find_distance(0.95, 0.025, upper=False) is not None


def test_single_iterations_vary_as_their_scenarios_do():
    values = [float(n) for n in range(1, 201)]
    suite = SuiteValues([singles([value]) for value in values])
    found = suite.find_distance(0.5, 0.025, upper=True)
    margin = stats.t.ppf(0.975, 199) * math.sqrt(0.25 / 199)
    expected = math.log(math.ceil((0.5 + margin) * 200) / 100) / stats.t.ppf(0.975, 199)
    assert math.sqrt(found.variance) == pytest.approx(expected)
