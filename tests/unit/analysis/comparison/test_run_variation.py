"""How much unchanged runs differ: the estimates find what was put in, and shrink without it."""

from __future__ import annotations

import random

import pytest

from ci_agent_eval.analysis.comparison.run_variation import (
    ASSUMED_CORRELATION,
    ASSUMED_DAY,
    PassCounts,
    ScenarioCounts,
    average_runs,
    estimate_day_variation,
    estimate_run_correlation,
)
from tests.tables import each_row


def suite(runs, iterations, correlation, scenarios=200):
    """Return a suite whose runs draw each rate anew: Beta of mean 0.8 and this correlation."""
    draw = random.Random(f"{runs} {iterations} {correlation}")

    def counts():
        rate = 0.8
        if correlation:
            size = 1 / correlation - 1
            rate = draw.betavariate(rate * size, (1 - rate) * size)
        return PassCounts(sum(draw.random() < rate for _ in range(iterations)), iterations)

    return [
        ScenarioCounts(tuple(counts() for _ in range(runs)), counts()) for _ in range(scenarios)
    ]


@each_row("runs", [1, 3, 10])
@each_row("correlation", [0.0, 0.05, 0.2])
def test_the_correlation_that_is_there_is_found(runs, correlation):
    found = estimate_run_correlation(suite(runs, 20, correlation))
    # One run shows half of it, in the scenarios that improved, so the assumption weighs more.
    least = correlation * (0.65 if runs == 1 else 0.8) - 0.005
    assert least <= found <= correlation * 1.4 + 0.02


def test_a_regression_does_not_widen_its_own_yardstick():
    steady = [ScenarioCounts((PassCounts(18, 20),), PassCounts(18, 20))] * 20
    fallen = [ScenarioCounts((PassCounts(18, 20),), PassCounts(2, 20))] * 5
    assert estimate_run_correlation([*steady, *fallen]) <= estimate_run_correlation(steady) + 0.01


def test_what_cannot_be_seen_is_assumed():
    single = [ScenarioCounts((PassCounts(1, 1),) * 3, PassCounts(1, 1))] * 5
    perfect = [ScenarioCounts((PassCounts(5, 5),), PassCounts(5, 5))] * 5
    assert estimate_run_correlation(single) == ASSUMED_CORRELATION
    assert estimate_run_correlation(perfect) == ASSUMED_CORRELATION


def test_a_day_is_assumed_with_one_run_and_seen_with_several():
    alone = estimate_day_variation(average_runs([[0.9], [0.8]]))
    assert (alone.variance, alone.degrees) == (ASSUMED_DAY**2, 4)
    shaken = estimate_day_variation(average_runs([[0.9, 0.7, 0.5], [0.8, 0.6, 0.4]]))
    # Every scenario moved alike: half of its variance is not explained by the scenarios.
    assert shaken.variance == pytest.approx((4 * ASSUMED_DAY**2 + 2 * (0.04 - 0.02)) / 6)
    assert shaken.degrees == 6


def test_runs_that_agree_shrink_the_assumed_day():
    calm = estimate_day_variation(average_runs([[0.9] * 10, [0.8] * 10]))
    assert 0 < calm.variance < ASSUMED_DAY**2
