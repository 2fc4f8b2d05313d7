"""Variance components and intervals: right on average, and in their intervals as often as said.

A share of n simulations has a standard error of sqrt(p (1 - p) / n); bounds are 4 of them wide.
"""

from __future__ import annotations

import math
import random

import pytest

from ci_agent_eval.analysis.judges.variance import (
    JudgedEpisode,
    compute_score_interval,
    estimate_components,
    estimate_flips,
)
from tests.unit.analysis.judges.synthetic import judge_suite, vote_suite

RUNS = 300


def share_error(share, runs=RUNS):
    return 4 * math.sqrt(share * (1 - share) / runs)


def test_the_judge_s_and_the_agent_s_variance_lie_in_their_intervals():
    rng, covered, sums = random.Random(1), [0, 0], [0.0, 0.0]
    for _ in range(RUNS):
        found = estimate_components(judge_suite(rng, agent_sd=0.08, judge_sd=0.05), ())
        for place, (part, truth) in enumerate(((found.judge, 0.05**2), (found.agent, 0.08**2))):
            covered[place] += part.low <= truth <= part.high
            sums[place] += part.variance / truth
    for hits, total in zip(covered, sums, strict=True):
        assert abs(hits / RUNS - 0.95) <= share_error(0.95) + 0.01  # 1 point: 20 groups are few
        # The relative standard error of a variance of 40 degrees of freedom is 0.22.
        assert abs(total / RUNS - 1) < 4 * 0.3 / math.sqrt(RUNS)


def test_an_agent_without_variance_is_not_blamed_for_its_judge():
    rng, zero = random.Random(2), 0
    for _ in range(RUNS):
        found = estimate_components(judge_suite(rng, agent_sd=0.0, judge_sd=0.1), ())
        zero += found.agent.low == 0
    assert zero / RUNS >= 0.975 - share_error(0.975)


def test_verdicts_that_flip_have_their_variance_too():
    # The mean of p (1 - p) over transcripts with these rates.
    rates, rng, covered = (0.5, 0.9, 1.0, 1.0), random.Random(3), 0
    truth = (0.25 + 0.09) / 4
    for _ in range(RUNS):
        suite = vote_suite(rng, episodes=40, repeats=5, rates=rates)
        judge = estimate_components(suite, ()).judge
        covered += judge.low <= truth <= judge.high
    assert covered / RUNS >= 0.95 - share_error(0.95) - 0.01


def test_flips_are_estimated_without_bias_and_covered():
    rates, rng, covered, total = (0.5, 0.9, 1.0, 1.0), random.Random(4), 0, 0.0
    truth = 2 * (0.25 + 0.09) / 4
    for _ in range(RUNS):
        found = estimate_flips(vote_suite(rng, episodes=60, repeats=3, rates=rates))
        covered += found.low <= truth <= found.high
        total += found.rate
    assert total / RUNS == pytest.approx(truth, abs=4 * 0.04 / math.sqrt(RUNS))
    assert covered / RUNS >= 0.95 - share_error(0.95)


@pytest.mark.parametrize(
    ("shape", "basis"),
    [
        ({"scenarios": 10, "iterations": 3, "repeats": 1}, "iterations"),
        ({"scenarios": 5, "iterations": 4, "repeats": 3}, "iterations"),
        ({"scenarios": 16, "iterations": 2, "repeats": 2}, "iterations"),
        ({"scenarios": 20, "iterations": 1, "repeats": 2, "scenario_sd": 0.05}, "scenarios"),
    ],
)
def test_the_interval_of_a_score_includes_the_judge_s_noise(shape, basis):
    rng, covered = random.Random(5), 0
    for _ in range(RUNS):
        suite = judge_suite(rng, agent_sd=0.04, judge_sd=0.1, **shape)
        found = compute_score_interval(suite)
        assert found.basis == basis
        covered += found.low <= 0.5 <= found.high
    assert covered / RUNS >= 0.95 - share_error(0.95)


def test_answers_of_one_transcript_are_no_independent_evidence():
    """An interval from all answers, as if each were an episode, is far too narrow."""
    rng, covered, naive = random.Random(6), 0, 0
    for _ in range(RUNS):
        suite = judge_suite(rng, scenarios=8, iterations=2, repeats=10, agent_sd=0.1, judge_sd=0.02)
        apart = [JudgedEpisode(one.scenario, [score]) for one in suite for score in one.scores]
        found, wrong = compute_score_interval(suite), compute_score_interval(apart)
        covered += found.low <= 0.5 <= found.high
        naive += wrong.low <= 0.5 <= wrong.high
    assert covered / RUNS >= 0.95 - share_error(0.95)
    assert naive / RUNS < 0.6


def test_the_judge_s_share_of_the_interval_shrinks_with_repeats():
    shares = [
        compute_score_interval(
            judge_suite(random.Random(7), scenarios=200, repeats=n, agent_sd=0.05, judge_sd=0.1)
        ).judge_share
        for n in (2, 8)
    ]
    assert shares == pytest.approx([0.01 / 2 / (0.0025 + 0.005), 0.00125 / 0.00375], abs=0.08)


def test_what_was_not_measured_is_unknown():
    once = [JudgedEpisode("a", [0.5]), JudgedEpisode("a", [0.7])]
    found = estimate_components(once, once)
    assert (found.judge, found.agent, found.flips) == (None, None, None)
    assert compute_score_interval(once).judge_share is None
    assert estimate_components([JudgedEpisode("a", [0.5, 0.7])], ()).agent is None


def test_equal_scores_do_not_prove_that_there_is_no_variance():
    same = [JudgedEpisode(str(n % 4), [1.0, 1.0]) for n in range(8)]
    found, interval = estimate_components(same, same), compute_score_interval(same)
    assert (found.judge.variance, found.judge.low) == (0, 0)
    assert found.judge.high > 0.1
    assert (found.flips.rate, found.flips.low) == (0, 0)
    assert (interval.mean, interval.basis, interval.high) == (1, "range", 1)
    assert interval.low == pytest.approx(0.676, abs=0.001)  # Wilson's, 8 of 8


def test_one_episode_is_a_range():
    found = compute_score_interval([JudgedEpisode("a", [0.8])])
    assert (found.mean, found.basis) == (0.8, "range")
    assert found.low < 0.3
    with pytest.raises(ValueError, match="at least one episode"):
        compute_score_interval([])
