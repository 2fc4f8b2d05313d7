"""How much the pass rates of an unchanged suite vary from run to run.

Two runs of the same agent differ by more than chance between iterations: a provider changes its
model or is overloaded, and a scenario's iterations share a data set. The runs of the base show it.
`docs/decisions/0042-run-variation.md` explains the choices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, harmonic_mean
from typing import NamedTuple

from ci_agent_eval.analysis.distributions import VariancePart, compute_variance

ASSUMED_CORRELATION = 0.03
"""Correlation of a run's iterations, as far as the runs show none.

5 points at a pass rate of 0.9.
"""

ASSUMED_WEIGHT = 24
"""Degrees of freedom of the assumed correlation."""

_MAX_CORRELATION = 0.9

ASSUMED_DAY = 0.02
"""Standard deviation of a day's shift of the suite, as far as the base shows none."""

ASSUMED_DAY_WEIGHT = 4
"""Degrees of freedom of the assumed shift."""


class PassCounts(NamedTuple):
    """Passed and judged iterations of a scenario in one run."""

    passed: int
    judged: int

    @property
    def rate(self) -> float:
        """Passed over judged."""
        return self.passed / self.judged


class ScenarioCounts(NamedTuple):
    """A scenario's counts in each run of the base, and in the head; all judged."""

    before: tuple[PassCounts, ...]
    """By run, latest first; only runs with judged iterations."""
    after: PassCounts
    sequential: PassCounts | None = None
    """All judged iterations of the head, if their number was decided by their outcomes."""

    @property
    def evidence(self) -> PassCounts:
        """The head's iterations that the test of the scenario counts."""
        return self.after if self.sequential is None else self.sequential

    @property
    def pooled(self) -> PassCounts:
        """The base's runs together."""
        passed, judged = zip(*self.before, strict=True)
        return PassCounts(sum(passed), sum(judged))


def estimate_run_correlation(scenarios: Sequence[ScenarioCounts]) -> float:
    """Estimate the correlation of a run's iterations, 0 to 1, pooled over the scenarios.

    The analysis of variance estimator (R. A. Fisher, "Statistical Methods for Research Workers"
    (1934), section 40), shrunk to the assumed one, and raised by its uncertainty: few runs may by
    chance have been alike. The constants were chosen by simulation, see benchmarks/README.md.
    """
    repeated = [s for s in scenarios if len(s.before) > 1]
    if not any(run.judged > 1 for s in scenarios for run in s.before):
        return ASSUMED_CORRELATION
    found = _compare_base_runs(repeated) if repeated else _compare_better_heads(scenarios)
    if found is None or not found.freedom:
        return ASSUMED_CORRELATION
    # A day shifts all scenarios, so the runs of the base count and not the scenarios.
    seen = max(len(s.before) for s in repeated) - 1 if repeated else found.freedom
    return found.raise_by(found.shrink(ASSUMED_CORRELATION, ASSUMED_WEIGHT), 0.5 / math.sqrt(seen))


def estimate_base_correlation(bases: Sequence[Sequence[PassCounts]]) -> float:
    """Estimate the same before there is a head: with one run of the base it is assumed."""
    if all(len(runs) == 1 for runs in bases):
        return ASSUMED_CORRELATION
    return estimate_run_correlation([ScenarioCounts(tuple(runs), runs[0]) for runs in bases])


class MeanSquares(NamedTuple):
    """Mean squares of an analysis of variance, between and within runs."""

    between: float
    within: float
    size: float
    """Iterations of a run."""
    freedom: float

    def shrink(self, assumed: float, weight: float) -> float:
        """Return the correlation, shrunk to the assumed one of so many degrees of freedom."""
        total = self.between + (self.size - 1) * self.within
        seen = (self.between - self.within) / total if total > 0 else 0.0
        weighed = self.freedom * seen + weight * assumed
        return max(0.0, weighed / (self.freedom + weight))

    def raise_by(self, correlation: float, share: float) -> float:
        """Return the correlation raised by up to a share of it, the more the larger the runs.

        The tests of few iterations are careful enough, because few p-values are possible.
        """
        raised = correlation * (1 + share * min(((self.size - 1) / 9) ** 2, 1))
        return min(raised, _MAX_CORRELATION)


def _compare_base_runs(scenarios: Sequence[ScenarioCounts]) -> MeanSquares | None:
    extra = sum(len(s.before) - 1 for s in scenarios)
    between = sum(
        run.judged * (run.rate - s.pooled.rate) ** 2 for s in scenarios for run in s.before
    )
    within = _compute_within([run for s in scenarios for run in s.before])
    size = math.fsum(_find_usual_size(s) for s in scenarios) / extra
    freedom = extra / len(scenarios) * _count_effective(scenarios)
    return None if within is None else MeanSquares(between / extra, within, size, freedom)


def _find_usual_size(scenario: ScenarioCounts) -> float:
    """Return the size of a run times the runs but one, for runs of different sizes."""
    judged = scenario.pooled.judged
    return judged - sum(run.judged**2 for run in scenario.before) / judged


def _compare_better_heads(scenarios: Sequence[ScenarioCounts]) -> MeanSquares | None:
    """Compare a single run of the base with the head, by the scenarios that improved.

    A regression must not widen its own yardstick. One pair of runs shows little, the less the
    fewer iterations it has, and counts accordingly.
    """
    sizes = [harmonic_mean([s.before[0].judged, s.after.judged]) for s in scenarios]
    rises = [max(s.after.rate - s.before[0].rate, 0.0) for s in scenarios]
    between = sum(size * rise**2 for size, rise in zip(sizes, rises, strict=True)) / len(scenarios)
    within = _compute_within([run for s in scenarios for run in (*s.before, s.after)])
    size = fmean(sizes)
    freedom = _count_effective(scenarios) / 2 * (size - 1) / 19
    return None if within is None else MeanSquares(between, within, size, freedom)


def _compute_within(runs: Sequence[PassCounts]) -> float | None:
    extra = sum(run.judged - 1 for run in runs)
    squares = math.fsum(run.judged * run.rate * (1 - run.rate) for run in runs)
    return squares / extra if extra else None


def _count_effective(scenarios: Sequence[ScenarioCounts]) -> float:
    """Return how many scenarios show variation: one that always passes shows none."""
    weights = [s.pooled.rate * (1 - s.pooled.rate) for s in scenarios]
    squares = math.fsum(weight**2 for weight in weights)
    return math.fsum(weights) ** 2 / squares if squares else 0.0


class DayVariation(NamedTuple):
    """The variance of a run's shift that is common to all scenarios."""

    variance: float
    degrees: float
    runs: int
    """Runs of the base that showed it; 1: it is assumed."""

    @property
    def shift(self) -> VariancePart:
        """The variance that it adds to the difference of the head and the base's mean."""
        return VariancePart(self.variance * (1 + 1 / max(self.runs, 1)), self.degrees)


SHARED_DAY = DayVariation(0.0, math.inf, 1)
"""The shift between two sides that ran in turn."""


class RunMeans(NamedTuple):
    """The mean of each run over the scenarios, and the variance that scenarios alone explain."""

    means: tuple[float, ...]
    own_variance: float

    @property
    def variance(self) -> float:
        """Variance of the means; 0 for one run."""
        return compute_variance(self.means) if len(self.means) > 1 else 0.0


def average_runs(scenarios: Sequence[Sequence[float]]) -> RunMeans:
    """Average each run over the scenarios; each has a value for every run."""
    count = len(scenarios)
    means = tuple(fmean(run) for run in zip(*scenarios, strict=True))
    if len(means) < 2:
        return RunMeans(means, 0.0)
    return RunMeans(means, math.fsum(compute_variance(values) for values in scenarios) / count**2)


def estimate_day_variation(runs: RunMeans, assumed: float = ASSUMED_DAY) -> DayVariation:
    """Estimate the variance of a day's shift, with `assumed` as the standard deviation unseen."""
    count, prior = len(runs.means), assumed**2
    if count < 2:
        return DayVariation(prior, ASSUMED_DAY_WEIGHT, count)
    degrees = ASSUMED_DAY_WEIGHT + count - 1
    seen = runs.variance - runs.own_variance
    pooled = (ASSUMED_DAY_WEIGHT * prior + (count - 1) * seen) / degrees
    return DayVariation(max(0.0, pooled), degrees, count)
