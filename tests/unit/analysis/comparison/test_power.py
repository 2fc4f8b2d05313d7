"""How many iterations are enough, held against the power of each number of them."""

from __future__ import annotations

import pytest
from scipy import stats

from ci_agent_eval.analysis.comparison.power import POWER, find_needed_iterations
from ci_agent_eval.analysis.comparison.run_variation import PassCounts, ScenarioCounts
from ci_agent_eval.analysis.comparison.scenario_test import compute_drop_p_value
from tests.samples import run_sample


def counts(passed_before, before, passed, after):
    return ScenarioCounts((PassCounts(passed_before, before),), PassCounts(passed, after))


def power(iterations, passed_before, before, rate, level):
    """The chance that so many iterations, passing at a rate, are called a drop."""
    return sum(
        stats.binom.pmf(passed, iterations, rate)
        for passed in range(iterations + 1)
        if compute_drop_p_value(counts(passed_before, before, passed, iterations), 0.0) < level
    )


@pytest.mark.parametrize(
    ("counts", "level"),
    run_sample(
        [
            ((50, 50, 4, 5), 0.05),
            ((20, 20, 3, 5), 0.05 / 20),
            ((100, 100, 8, 10), 0.001),
            ((1, 1, 0, 1), 0.05),
            ((18, 20, 7, 10), 0.05),
            ((5, 10, 2, 10), 0.05),
        ],
        {0, 4},
    ),
)
def test_from_the_number_named_on_the_drop_shows_four_times_in_five(counts, level):
    passed_before, before, passed, after = counts
    needed = find_needed_iterations(*counts, level)
    rate = passed / after
    assert power(needed - 1, passed_before, before, rate, level) < POWER
    for iterations in range(needed, needed + 40, 13):
        assert power(iterations, passed_before, before, rate, level) >= POWER


@pytest.mark.parametrize("counts", [(20, 20, 19, 20), (3, 3, 2, 5)])
def test_no_number_is_enough_where_the_baseline_has_too_few(counts):
    assert find_needed_iterations(*counts, 0.05) is None


def test_more_than_were_run_are_needed():
    assert find_needed_iterations(1000, 1000, 5, 10, 0.05) > 10
