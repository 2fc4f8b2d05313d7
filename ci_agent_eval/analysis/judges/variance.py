"""The variance of judged scores: the judge's apart from the agent's, and the interval of a mean.

A scenario has episodes (the agent's runs), an episode has scores (a judge's answers). The
variance between the scores of one episode is the judge's; the variance between the means of the
episodes of a scenario is the agent's, plus the judge's divided by the number of scores. These are
the estimates of a nested analysis of variance: S. R. Searle, G. Casella, C. E. McCulloch,
"Variance Components" (1992), chapter 3.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, NamedTuple

from ci_agent_eval.analysis.comparison.statistics import compute_variance
from ci_agent_eval.analysis.distributions import (
    VariancePart,
    compute_margin,
)
from ci_agent_eval.analysis.intervals import CONFIDENCE_LEVEL, compute_wilson_interval
from ci_agent_eval.analysis.judges.statistics_library import compute_chi_square_quantile


class JudgedEpisode(NamedTuple):
    """The scores of one episode, 0 to 1, one for each time that it was judged."""

    scenario: str
    scores: Sequence[float]


@dataclass(frozen=True, slots=True)
class VarianceEstimate:
    """A variance with its confidence interval."""

    variance: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RateEstimate:
    """A share with its confidence interval."""

    rate: float
    low: float
    high: float
    count: int
    """Number of values that it was estimated from."""


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """The variance of a score: the judge's and the agent's."""

    judge: VarianceEstimate | None
    """Between answers about the same transcript; None: no episode was judged twice."""
    agent: VarianceEstimate | None
    """Between episodes of a scenario; None: no scenario has two, or the judge's is unknown."""
    flips: RateEstimate | None
    """Chance that two answers about the same transcript differ in their verdict."""


IntervalBasis = Literal["iterations", "scenarios", "range"]


@dataclass(frozen=True, slots=True)
class ScoreInterval:
    """The mean score of scenarios, with an interval that includes the judge's variance."""

    mean: float
    low: float
    high: float
    judge_share: float | None
    """Share of the judge in the variance of the mean, 0 to 1; None: unknown."""
    basis: IntervalBasis
    """`iterations`: the variance within scenarios; `scenarios`: between them, because one has a
    single episode; `range`: no variance was seen, and the range of scores limits it."""


def estimate_components(
    episodes: Sequence[JudgedEpisode],
    verdicts: Sequence[JudgedEpisode],
    level: float = CONFIDENCE_LEVEL,
) -> VarianceComponents:
    """Estimate the variances of the scores, and the chance of a flip from the verdicts (0 or 1)."""
    judge = _estimate_within([list(one.scores) for one in episodes], level)
    agent = None if judge is None else _estimate_agent(episodes, judge, level)
    return VarianceComponents(judge, agent, estimate_flips(verdicts, level))


def _estimate_agent(
    episodes: Sequence[JudgedEpisode], judge: VarianceEstimate, level: float
) -> VarianceEstimate | None:
    """Subtract the judge's part from the variance between episodes.

    The interval of a difference of two estimates is MOVER's: G. Y. Zou, A. Donner, Statistics in
    Medicine 27 (2008), 1693-1702.
    """
    groups = [group for group in _group_by_scenario(episodes).values() if len(group) > 1]
    between = _estimate_within([[fmean(e.scores) for e in group] for group in groups], level)
    if between is None:
        return None
    # The judge's part of an episode's mean, averaged over the episodes.
    part = fmean(1 / len(one.scores) for group in groups for one in group)
    own, low, high = part * judge.variance, part * judge.low, part * judge.high
    difference = between.variance - own
    below = math.hypot(between.variance - between.low, high - own)
    above = math.hypot(between.high - between.variance, own - low)
    return VarianceEstimate(
        max(difference, 0.0), max(difference - below, 0.0), max(difference + above, 0.0)
    )


def _estimate_within(groups: Sequence[Sequence[float]], level: float) -> VarianceEstimate | None:
    """Return the pooled variance within groups of two values or more; None if there is none.

    Its interval is chi-square's, with the degrees of freedom that give the variance seen between
    the groups' own estimates (Satterthwaite's idea), because scores are not normal. They are at
    most those of normal values.
    """
    groups = [group for group in groups if len(group) > 1]
    if not groups:
        return None
    variances = [compute_variance(group) for group in groups]
    weights = [len(group) - 1 for group in groups]
    normal = sum(weights)
    pooled = math.fsum(w * v for w, v in zip(weights, variances, strict=True)) / normal
    if not pooled:
        # A group of scores from 0 to 1 has a variance of at most 1/2; few can have had any.
        return VarianceEstimate(0.0, 0.0, compute_wilson_interval(0, len(groups), level)[1] / 2)
    squares = math.fsum(
        (w / normal * (v - pooled)) ** 2 for w, v in zip(weights, variances, strict=True)
    )
    spread = squares * len(groups) / (len(groups) - 1) if len(groups) > 1 else 0.0
    degrees = min(2 * pooled**2 / spread, normal) if spread else normal
    tail, scaled = (1 - level) / 2, degrees * pooled
    return VarianceEstimate(
        pooled,
        scaled / compute_chi_square_quantile(1 - tail, degrees),
        scaled / compute_chi_square_quantile(tail, degrees),
    )


def estimate_flips(
    verdicts: Sequence[JudgedEpisode], level: float = CONFIDENCE_LEVEL
) -> RateEstimate | None:
    """Return the chance that two verdicts about the same transcript differ.

    Of R verdicts of which k passed, 2 k (R - k) / (R (R - 1)) of the pairs differ. Wilson's
    interval over the episodes is wide enough: no variable from 0 to 1 varies more than one that is
    0 or 1 (R. Bhatia, C. Davis, American Mathematical Monthly 107 (2000), 353-357).
    """
    repeated = [one.scores for one in verdicts if len(one.scores) > 1]
    if not repeated:
        return None
    shares = [
        2 * sum(one) * (len(one) - sum(one)) / (len(one) * (len(one) - 1)) for one in repeated
    ]
    mean = fmean(shares)
    low, high = compute_wilson_interval(mean * len(shares), len(shares), level)
    return RateEstimate(mean, low, high, len(shares))


def compute_score_interval(
    episodes: Sequence[JudgedEpisode], level: float = CONFIDENCE_LEVEL
) -> ScoreInterval:
    """Return the mean of the scenarios' means, each of equal weight, with its interval.

    The variance between an episode's mean and its scenario's contains the agent's and the
    judge's, so the interval is that of running and judging these scenarios again. If a scenario
    has a single episode, the scenarios' means are the sample (E. Miller, "Adding Error Bars to
    Evals" (2024), arXiv:2411.00640). Raises ValueError without episodes.
    """
    if not episodes:
        raise ValueError("a score needs at least one episode")
    groups = list(_group_by_scenario(episodes).values())
    means = [[fmean(episode.scores) for episode in group] for group in groups]
    mean = fmean(fmean(group) for group in means)
    part, basis = _estimate_variance_of_mean(means)
    if not part.variance:
        low, high = compute_wilson_interval(mean * len(episodes), len(episodes), level)
        return ScoreInterval(mean, low, high, None, "range")
    margin = compute_margin(part, (1 - level) / 2)
    share = _compute_judge_share(groups, part.variance, level)
    return ScoreInterval(mean, max(mean - margin, 0.0), min(mean + margin, 1.0), share, basis)


def _estimate_variance_of_mean(
    means: Sequence[Sequence[float]],
) -> tuple[VariancePart, IntervalBasis]:
    count = len(means)
    if all(len(group) > 1 for group in means):
        parts = (
            VariancePart(compute_variance(group) / (len(group) * count**2), len(group) - 1)
            for group in means
        )
        return _add_variances(list(parts)), "iterations"
    if count == 1:
        return VariancePart(0.0, 1), "range"
    between = compute_variance([fmean(group) for group in means])
    return VariancePart(between / count, count - 1), "scenarios"


def _add_variances(parts: Sequence[VariancePart]) -> VariancePart:
    """Add the variances of scenarios; their number of values is small.

    The degrees of freedom are those of B. L. Welch, Biometrika 34 (1947), 28-35. Satterthwaite's
    are a third of them for two values in each scenario, as the square of a variance of few values
    is too large on average.
    """
    total = math.fsum(part.variance for part in parts)
    squares = math.fsum(part.variance**2 / (part.degrees + 2) for part in parts)
    return VariancePart(total, max(total**2 / squares - 2, 1.0) if squares else 1.0)


def _compute_judge_share(
    groups: Sequence[Sequence[JudgedEpisode]], variance: float, level: float
) -> float | None:
    judge = _estimate_within([one.scores for group in groups for one in group], level)
    if judge is None:
        return None
    own = math.fsum(
        judge.variance / (len(one.scores) * (len(group) * len(groups)) ** 2)
        for group in groups
        for one in group
    )
    return min(own / variance, 1.0)


def _group_by_scenario(
    episodes: Sequence[JudgedEpisode],
) -> dict[str, list[JudgedEpisode]]:
    found: defaultdict[str, list[JudgedEpisode]] = defaultdict(list)
    for episode in episodes:
        found[episode.scenario].append(episode)
    return found
