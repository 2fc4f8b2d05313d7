"""Agreement with people, and pass rates that are corrected for a judge's errors."""

from __future__ import annotations

import math
import random

import pytest

from ci_agent_eval.analysis.judges.agreement import (
    LabelPair,
    calibrate_judge,
    correct_pass_rate,
)
from ci_agent_eval.analysis.judges.position_bias import (
    compute_sign_test,
    measure_position_bias,
)
from tests.unit.analysis.judges.synthetic import compare_pairs, label_suite

RUNS = 300


def lowest_share(share, runs=RUNS):
    """Four standard errors below a share of simulations."""
    return share - 4 * math.sqrt(share * (1 - share) / runs)


def kappa_of(rate, sensitivity, specificity):
    agreement = rate * sensitivity + (1 - rate) * specificity
    passes = rate * sensitivity + (1 - rate) * (1 - specificity)
    chance = rate * passes + (1 - rate) * (1 - passes)
    return agreement, (agreement - chance) / (1 - chance)


@pytest.mark.parametrize("count", [30, 100])
@pytest.mark.parametrize(
    ("rate", "sensitivity", "specificity"), [(0.6, 0.9, 0.8), (0.8, 0.97, 0.7), (0.5, 0.6, 0.6)]
)
def test_agreement_and_kappa_lie_in_their_intervals(count, rate, sensitivity, specificity):
    rng, truth = random.Random(11), kappa_of(rate, sensitivity, specificity)
    hits, defined = [0, 0], 0
    for _ in range(RUNS):
        found = calibrate_judge(
            label_suite(
                rng, count=count, rate=rate, sensitivity=sensitivity, specificity=specificity
            )
        )
        hits[0] += found.agreement.low <= truth[0] <= found.agreement.high
        if found.kappa is not None:
            defined += 1
            hits[1] += found.kappa.low <= truth[1] <= found.kappa.high
    # Wilson's interval covers 93 % or more at these sizes, and so does kappa's.
    assert hits[0] / RUNS >= lowest_share(0.93)
    assert hits[1] / defined >= lowest_share(0.93)


def test_the_figures_of_a_table():
    # 40 and 40 agree, 5 and 15 do not: kappa 0.6.
    pairs = [
        *[LabelPair(True, True)] * 40,
        *[LabelPair(True, False)] * 15,
        *[LabelPair(False, True)] * 5,
        *[LabelPair(False, False)] * 40,
    ]
    found = calibrate_judge(pairs)
    assert (found.agreement.rate, found.agreement.count) == (0.8, 100)
    assert found.passing.rate == pytest.approx(40 / 55)
    assert found.failing.rate == pytest.approx(40 / 45)
    chance = (55 * 45 + 45 * 55) / 10_000
    assert found.kappa.kappa == pytest.approx((0.8 - chance) / (1 - chance))
    assert found.kappa.low < found.kappa.kappa < found.kappa.high


def test_few_labels_that_all_agree_prove_little():
    found = calibrate_judge([LabelPair(True, True)] * 3 + [LabelPair(False, False)] * 3)
    assert (found.kappa.kappa, found.kappa.high) == (1, 1)
    assert found.kappa.low < 0.3  # the asymptotic interval would be 1 to 1


def test_a_judge_that_passes_everything_agrees_by_chance():
    found = calibrate_judge([LabelPair(True, True)] * 16 + [LabelPair(False, True)] * 4)
    assert (found.agreement.rate, found.kappa.kappa) == (0.8, 0)
    assert found.kappa.low < 0 < found.kappa.high
    assert correct_pass_rate(18, 20, found) is not None  # of the shrunk rates, and wide


def test_labels_of_one_kind_have_no_kappa():
    found = calibrate_judge([LabelPair(True, True)] * 9)
    assert (found.kappa, found.failing) == (None, None)
    assert correct_pass_rate(9, 9, found) is None
    with pytest.raises(ValueError, match="at least one label"):
        calibrate_judge([])


def test_one_clause_of_the_labels_decides_the_agreement():
    """As in openai-cookbook #2940: the same verdicts agree with one reading of the labels only."""
    verdicts = [True] * 50 + [False] * 40
    strict = [True] * 25 + [False] * 65
    assert calibrate_judge(
        [LabelPair(*pair) for pair in zip(strict, verdicts, strict=True)]
    ).agreement.rate == pytest.approx(65 / 90)
    assert calibrate_judge([LabelPair(v, v) for v in verdicts]).agreement.rate == 1


@pytest.mark.parametrize("rate", [0.3, 0.8, 0.95])
def test_the_corrected_rate_is_that_of_people(rate):
    """A lenient judge: its raw pass rate misses the truth, the corrected one covers it."""
    rng, covered, raw = random.Random(12), 0, 0.0
    for _ in range(RUNS):
        labels = label_suite(rng, count=80, rate=0.5, sensitivity=0.95, specificity=0.7)
        judged = label_suite(rng, count=150, rate=rate, sensitivity=0.95, specificity=0.7)
        passed = sum(pair.verdict for pair in judged)
        found = correct_pass_rate(passed, 150, calibrate_judge(labels))
        covered += found.low <= rate <= found.high
        raw += passed / 150 - rate
    assert covered / RUNS >= lowest_share(0.95)
    assert raw / RUNS == pytest.approx(0.3 * (1 - rate) - 0.05 * rate, abs=0.02)


def test_a_judge_no_better_than_chance_corrects_nothing():
    pairs = [LabelPair(label, verdict) for label in (True, False) for verdict in (True, False)]
    assert correct_pass_rate(5, 10, calibrate_judge(pairs * 10)) is None


def test_a_position_bias_is_found_and_none_is_invented():
    rng, found, invented = random.Random(13), 0, 0
    for _ in range(RUNS):
        found += measure_position_bias(compare_pairs(rng, 60, bias=0.2)).is_found
        invented += measure_position_bias(compare_pairs(rng, 60, bias=0.0)).is_found
    assert found / RUNS > 0.8
    assert invented / RUNS <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / RUNS)


def test_the_direction_of_a_bias_is_counted():
    found = measure_position_bias(compare_pairs(random.Random(14), 100, bias=0.5))
    assert found.first > 5 * max(found.second, 1)
    assert found.contradictions.count == 100
    assert measure_position_bias(()) is None


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (1, 1), (9, 10), (3, 12), (6, 12)])
def test_the_sign_test_is_the_exact_binomial_one(successes, trials):
    from scipy.stats import binomtest

    expected = binomtest(successes, trials, 0.5).pvalue if trials else 1.0
    assert compute_sign_test(successes, trials) == pytest.approx(expected)
