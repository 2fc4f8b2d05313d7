"""The test of one scenario's tool calls, held against SciPy and simulated runs."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from ci_agent_eval.analysis.comparison.sequence_test import (
    SequenceCounts,
    compute_change_p_values,
    estimate_sequence_correlation,
)
from tests.tables import each_row

A, B, C = ("look_up",), ("look_up", "ask"), ("ask",)
LEVEL = 0.025


def scenario(*runs):
    """Return the counts of A, B and C in each run; the last run is the head."""
    found = [Counter(dict(zip((A, B, C), run, strict=False))) for run in runs]
    return SequenceCounts(tuple(found[:-1]), found[-1])


def only(found, correlation=0.0):
    (p_value,) = compute_change_p_values([found], correlation, LEVEL)
    return p_value


@each_row(
    ("before", "after"),
    [((5, 0), (1, 4)), ((45, 5), (2, 3)), ((9, 3, 8), (3, 1, 6)), ((20, 0, 1), (15, 3, 2))],
)
def test_without_correlation_it_is_the_exact_chi_square_test(before, after):
    """All tables with the same totals, with their probabilities by SciPy."""
    pooled = np.add(before, after)
    law = stats.multivariate_hypergeom(pooled, sum(after))

    def chi_square(head):
        return sum(n * n / all_ for n, all_ in zip(head, pooled, strict=True) if all_)

    heads = [h for h in np.ndindex(*(pooled + 1)) if sum(h) == sum(after)]
    exact = sum(law.pmf(h) for h in heads if chi_square(h) >= chi_square(after) - 1e-9)
    error = math.sqrt(exact * (1 - exact) / 1999)
    assert only(scenario(before, after)) == pytest.approx(exact, abs=3 * error + 1 / 2000)


def test_correlated_iterations_show_less():
    found = scenario((10, 0), (4, 6))
    p_values = [only(found, correlation) for correlation in (0.0, 0.05, 0.2, 0.6)]
    assert p_values == sorted(p_values)
    assert p_values[0] < 0.02
    assert p_values[-1] > 0.2


def test_correlated_iterations_do_not_hide_a_sequence_that_is_new():
    """Repeated iterations must not exceed what both sides have of a rare sequence."""
    assert only(scenario((16, 4, 0), (0, 0, 20)), 0.05) < 0.002


def test_one_sequence_or_only_single_ones_cannot_show_a_change():
    assert only(scenario((5, 0), (5, 0))) is None
    assert only(scenario((1, 0, 0), (0, 1, 0))) is None


def test_scenarios_that_cannot_show_a_change_do_not_count():
    """5 of 5 → 0 of 5 beside forty scenarios with no, one or many episodes that differ."""
    changed = scenario((5, 0), (0, 5))
    constant, little = scenario((5, 0), (5, 0)), scenario((5, 0), (4, 1))
    assert compute_change_p_values([changed, *[constant] * 40], 0.0, LEVEL)[0] < LEVEL
    assert compute_change_p_values([changed, *[little] * 40], 0.0, LEVEL)[0] < 2 * LEVEL
    varied = scenario((3, 2), (2, 3))
    assert compute_change_p_values([changed, *[varied] * 40], 0.0, LEVEL)[0] > 8 * LEVEL


def test_one_certain_change_among_many_tests_gets_more_permutations():
    changed, varied = scenario((100, 0), (0, 10)), scenario((60, 40), (6, 4))
    found = compute_change_p_values([changed, *[varied] * 200], 0.0, LEVEL)
    assert found[0] < LEVEL < min(found[1:])


@each_row("correlation", [0.0, 0.1, 0.3])
def test_the_correlation_of_the_base_runs_is_estimated(correlation):
    draw = np.random.default_rng(1)
    spread = 1 / correlation - 1 if correlation else 1e9

    def run():
        return draw.multinomial(5, draw.dirichlet(np.array([0.5, 0.3, 0.2]) * spread))

    found = estimate_sequence_correlation(
        [scenario(*(run() for _ in range(11))) for _ in range(60)]
    )
    # Raised by a third of itself with ten runs, as far as their five iterations reach.
    assert found == pytest.approx(correlation * (1 + (4 / 9) ** 2 / 3), abs=0.03)
