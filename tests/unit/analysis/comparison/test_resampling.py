"""How sure a change of cost or latency is: iterations are resampled, scenarios are not."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ci_agent_eval.analysis.comparison import resampling
from ci_agent_eval.analysis.comparison.resampling import (
    IterationPair,
    compute_change_interval,
    compute_increase_p_value,
)
from ci_agent_eval.contract.measurement import compute_latency_statistic

LEVEL = 0.05


def pair(before, after):
    return IterationPair(tuple((v,) for v in before), tuple((v,) for v in after))


def one(side):
    return [value for (value,) in side]


def suite(draw, scenarios, before, after, *, spread=0.1, rise=1.0):
    """Costs of a suite whose scenarios differ widely and whose iterations by a spread."""
    costs = [draw.lognormvariate(0, 1) for _ in range(scenarios)]
    return [
        pair(
            [cost * draw.lognormvariate(0, spread) for _ in range(before)],
            [rise * cost * draw.lognormvariate(0, spread) for _ in range(after)],
        )
        for cost in costs
    ]


def is_called(pairs, allowed=0.0):
    interval = compute_change_interval(pairs, "mean")
    p_value = compute_increase_p_value(pairs, "mean", allowed)
    return p_value < LEVEL and (interval is None or interval[0] > allowed)


def test_a_scenario_that_costs_more_is_seen_however_few_they_are():
    same, dear = pair([1.0] * 40, [1.0] * 20), pair([1.0] * 40, [9.0] * 20)
    pairs = [same] * 49 + [dear]
    assert compute_change_interval(pairs, "mean") == (0.16, 0.16)
    assert compute_increase_p_value(pairs, "mean", 0.1) < 0.01


def test_the_interval_is_as_wide_as_the_iterations_within_scenarios_differ():
    draw = random.Random(1)
    pairs = suite(draw, 20, 30, 30)
    low, high = compute_change_interval(pairs, "mean")
    sides = list(zip(*pairs, strict=True))
    before, after = (sum(stats.tmean(one(side)) for side in of) for of in sides)
    was, now = (sum(stats.sem(one(side)) ** 2 for side in of) for of in sides)
    width = 2 * 1.96 * (now + was * (after / before) ** 2) ** 0.5 / before
    assert high - low == pytest.approx(width, rel=0.1)
    assert low < after / before - 1 < high


@pytest.mark.parametrize(
    ("scenarios", "before", "after"),
    [(1, 1, 1), (1, 3, 3), (1, 50, 5), (2, 2, 2), (3, 1, 1), (5, 5, 5), (20, 1, 1)],
)
def test_with_no_change_a_rise_is_called_no_more_often_than_the_level(scenarios, before, after):
    draw = random.Random(f"{scenarios} {before} {after}")
    suites = 200
    alarms = sum(is_called(suite(draw, scenarios, before, after)) for _ in range(suites))
    # As many as the level allows, and what 200 suites may happen to have above it.
    assert alarms <= stats.binom.ppf(0.99, suites, LEVEL)


def test_single_iterations_of_many_scenarios_tell_a_rise_without_an_interval():
    pairs = suite(random.Random(2), 20, 1, 1, rise=1.5)
    assert compute_change_interval(pairs, "mean") is None
    assert is_called(pairs, 0.1)


def test_up_to_a_tenth_of_the_scenarios_may_have_run_once():
    many, once = pair([1.0, 2.0], [1.0, 2.0]), pair([1.0, 2.0], [1.0])
    assert compute_change_interval([many] * 9 + [once], "mean") is not None
    assert compute_change_interval([many] * 8 + [once] * 2, "mean") is None


def test_nothing_has_no_interval_and_what_was_free_none_either():
    assert compute_change_interval([], "mean") is None
    assert compute_increase_p_value([], "mean", 0.1) is None
    assert compute_change_interval([pair([0.0, 0.0], [1.0, 2.0])], "mean") is None


@given(st.randoms(use_true_random=False), st.sampled_from(["mean", "p95"]))
@settings(max_examples=15)
def test_no_order_of_scenarios_or_iterations_changes_anything(shuffle, statistic):
    pairs = suite(random.Random(3), 6, 7, 4)
    other = [IterationPair(*(tuple(shuffle.sample(side, len(side))) for side in p)) for p in pairs]
    shuffle.shuffle(other)
    assert compute_change_interval(other, statistic) == compute_change_interval(pairs, statistic)
    assert compute_increase_p_value(other, statistic, 0.1) == compute_increase_p_value(
        pairs, statistic, 0.1
    )


sides = st.lists(
    st.tuples(
        st.lists(st.integers(1, 9).map(float), min_size=1, max_size=4).map(tuple),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=30,
).filter(lambda side: any(weight for _, weight in side))


@given(sides)
def test_the_p95_of_a_resample_is_the_p95_of_what_was_drawn(side):
    import numpy as np

    iterations = tuple(values for values, _ in side)
    weights = np.array([[weight] for _, weight in side], dtype=np.int32)
    drawn = [v for values, weight in side for _ in range(weight) for v in values]
    assert resampling._compute_statistic(iterations, weights, "p95") == compute_latency_statistic(
        drawn, "p95"
    )


def test_a_rise_of_the_p95_is_told_from_chance():
    slow = [
        IterationPair(
            tuple((100.0 + n, 110.0 + n) for n in range(20)),
            tuple((150.0 + n, 165.0 + n) for n in range(20)),
        )
    ]
    low, high = compute_change_interval(slow, "p95")
    assert 0.3 < low <= high < 0.6
    assert compute_increase_p_value(slow, "p95", 0.2) < 0.01
    assert compute_increase_p_value(slow, "p95", 0.6) > 0.9
