"""Decisions on adaptive iterations: e-values held against SciPy, and when a scenario stops."""

from __future__ import annotations

import math

import pytest
from scipy import integrate, special, stats

from ci_agent_eval.analysis.adaptive_iterations import (
    Demands,
    IterationCounts,
    PredictedRate,
    compute_evidence_above,
    compute_evidence_below,
    compute_evidence_limit,
    compute_regression_evidence,
    decide_required_rate,
    find_stop,
)
from ci_agent_eval.contract.iteration_range import IterationRange
from tests.tables import each_row

COUNTS = [(0, 1), (3, 0), (0, 7), (9, 2), (41, 19), (60, 0), (1, 59)]
LIMITS = IterationRange(60, 3)
PREDICTED = PredictedRate(90.0, 10.0)


@each_row("rate", [0.05, 0.5, 0.9, 0.99])
@each_row(("passed", "failed"), COUNTS)
def test_evidence_is_the_mean_likelihood_over_the_rates_that_contradict(passed, failed, rate):
    def likelihood(q):
        return q**passed * (1 - q) ** failed

    for found, low, high in (
        (compute_evidence_below(passed, failed, rate), 0.0, rate),
        (compute_evidence_above(passed, failed, rate), rate, 1.0),
    ):
        peak = min(max(passed / (passed + failed), low), high)
        mean, _ = integrate.quad(likelihood, low, high, points=[peak], epsabs=0, limit=200)
        assert found == pytest.approx(mean / (high - low) / likelihood(rate), rel=1e-6)


@each_row(("passed", "failed"), COUNTS)
def test_evidence_of_a_regression_is_relative_to_the_prediction_of_the_baseline(passed, failed):
    alpha, beta = PREDICTED
    low = special.betainc(1 + passed, 1 + failed, PREDICTED.mean)
    log_expected = math.log(low) + special.betaln(1 + passed, 1 + failed)
    log_expected -= math.log(PREDICTED.mean) + special.betaln(alpha + passed, beta + failed)
    log_expected += special.betaln(alpha, beta)
    found = compute_regression_evidence(passed, failed, PREDICTED)
    assert found == pytest.approx(math.exp(log_expected), rel=1e-9)


@each_row("total", [1, 5, 30])
def test_the_mean_evidence_is_at_most_one_if_nothing_is_wrong(total):
    passes = range(total + 1)
    for rate in (0.9, 0.95, 1 - 1e-9):
        chances = stats.binom.pmf(passes, total, rate)
        below = [compute_evidence_below(s, total - s, 0.9) for s in passes]
        assert sum(chances * below) <= 1 + 1e-9
        above = [compute_evidence_above(s, total - s, rate) for s in passes]
        assert sum(chances * above) <= 1 + 1e-6
    chances = stats.betabinom.pmf(passes, total, *PREDICTED)
    drops = [compute_regression_evidence(s, total - s, PREDICTED) for s in passes]
    assert sum(chances * drops) == pytest.approx(1)


@each_row("rate", [0.2, 0.6, 0.85])
def test_the_evidence_of_endless_iterations_has_a_limit(rate):
    passed = round(rate * 200_000)
    found = compute_regression_evidence(passed, 200_000 - passed, PREDICTED)
    limit = compute_evidence_limit(rate, PREDICTED)
    assert math.log(found) == pytest.approx(math.log(limit), rel=1e-2)
    assert compute_evidence_limit(0.95, PREDICTED) == 0


@each_row(
    ("passed", "failed", "required", "expected"),
    [
        (0, 1, 1.0, "below_required"),
        (59, 1, 1.0, "below_required"),
        (21, 0, 1.0, None),
        (22, 0, 1.0, "reaches_required"),
        (0, 3, 0.9, "below_required"),
        (2, 1, 0.9, None),
        (30, 2, 0.9, "reaches_required"),
        (8, 1, 0.9, None),
        (0, 5, 0.1, None),
        (0, 5, 0.0, "reaches_required"),
    ],
)
def test_a_required_rate_is_decided(passed, failed, required, expected):
    assert decide_required_rate(passed, failed, required) == expected


NOT_REQUIRED = Demands(None, PREDICTED, 2000.0)
BOTH = Demands(0.9, PREDICTED, 2000.0)
LIKE_RUNS_THAT_DIFFER = Demands(None, PredictedRate(8.0, 2.0), 2000.0)


@each_row(
    ("counts", "demands", "expected"),
    [
        ((3, 0, 0), Demands(None), "undemanding"),
        ((0, 3, 0), Demands(0.0), "undemanding"),
        ((3, 0, 0), Demands(1.0), None),
        ((2, 1, 0), Demands(1.0), "below_required"),
        ((22, 0, 0), Demands(1.0), "reaches_required"),
        ((50, 10, 0), Demands(0.9), "maximum"),
        ((2, 1, 0), NOT_REQUIRED, None),
        ((3, 0, 0), NOT_REQUIRED, "no_regression"),
        ((20, 0, 0), NOT_REQUIRED, "no_regression"),
        ((4, 8, 0), NOT_REQUIRED, "regression"),
        ((6, 3, 0), LIKE_RUNS_THAT_DIFFER, "inconclusive"),
        # Either demand alone may fail it, both have to be met.
        ((4, 8, 0), BOTH, "below_required"),
        ((20, 0, 0), BOTH, "reaches_required"),
        ((0, 0, 3), Demands(1.0), "not_judged"),
        ((3, 0, 3), Demands(1.0), None),
        ((3, 0, 4), Demands(1.0), "not_judged"),
        ((1, 0, 2), Demands(1.0), None),
    ],
)
def test_a_scenario_stops(counts, demands, expected):
    assert find_stop(IterationCounts(*counts), demands, LIMITS) == expected
