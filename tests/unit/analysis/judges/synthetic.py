"""Synthetic agents and judges whose variance, bias and errors are known."""

from __future__ import annotations

import random

from ci_agent_eval.analysis.judges.agreement import LabelPair
from ci_agent_eval.analysis.judges.variance import JudgedEpisode
from ci_agent_eval.contract.episode import JudgeVote


def clip(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def judge_suite(
    rng: random.Random,
    *,
    scenarios: int = 20,
    iterations: int = 3,
    repeats: int = 3,
    mean: float = 0.5,
    agent_sd: float = 0.05,
    judge_sd: float = 0.05,
    scenario_sd: float = 0.0,
) -> list[JudgedEpisode]:
    """Scores of normal agents and judges, far enough from 0 and 1 that clipping is rare."""
    found = []
    for number in range(scenarios):
        level = rng.gauss(mean, scenario_sd)
        for _ in range(iterations):
            quality = rng.gauss(level, agent_sd)
            scores = [clip(rng.gauss(quality, judge_sd)) for _ in range(repeats)]
            found.append(JudgedEpisode(str(number), scores))
    return found


def vote_suite(
    rng: random.Random, *, episodes: int, repeats: int, rates: tuple[float, ...]
) -> list[JudgedEpisode]:
    """Verdicts that pass at the rate of their transcript."""
    return [
        JudgedEpisode(
            str(number),
            [float(rng.random() < rates[number % len(rates)]) for _ in range(repeats)],
        )
        for number in range(episodes)
    ]


def label_suite(
    rng: random.Random, *, count: int, rate: float, sensitivity: float, specificity: float
) -> list[LabelPair]:
    """Human labels, and verdicts of a judge with these shares of right verdicts."""
    found = []
    for _ in range(count):
        label = rng.random() < rate
        is_right = rng.random() < (sensitivity if label else specificity)
        found.append(LabelPair(label, label == is_right))
    return found


def compare_pairs(
    rng: random.Random, count: int, *, bias: float, noise: float = 0.15
) -> list[tuple[JudgeVote, JudgeVote]]:
    """Votes of a judge who prefers the first position by `bias` and errs by `noise`."""
    found = []
    for _ in range(count):
        own = rng.random() < 0.5
        chance = 1 - noise if own else noise
        scores = (
            float(rng.random() < clip(chance + bias)),
            float(rng.random() < clip(chance - bias)),
        )
        votes = (
            JudgeVote(judge="judge", passed=score == 1, score=score, position=position)
            for score, position in zip(scores, ("first", "second"), strict=True)
        )
        found.append(tuple(votes))
    return found
