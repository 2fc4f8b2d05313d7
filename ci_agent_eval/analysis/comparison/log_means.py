"""The values of a metric on logarithms, and how much they vary between iterations and runs.

On logarithms a relative change is a difference, and a few very large values weigh less.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from ci_agent_eval.analysis.comparison.pool import (
    METRICS,
    IterationValues,
    MetricRuns,
    PoolPair,
)
from ci_agent_eval.analysis.comparison.run_variation import (
    DayVariation,
    average_runs,
    estimate_day_variation,
)
from ci_agent_eval.analysis.distributions import VariancePart
from ci_agent_eval.analysis.loaded_results import ScenarioKey

ASSUMED_DAY = 0.05
"""Standard deviation of a day's shift of the logarithms, as far as the base shows none."""

SHARED_DEGREES = 10
"""Degrees of freedom with which the suite's variance counts in each scenario's."""


@dataclass(frozen=True)
class MetricSides:
    """The values of a metric of one scenario on both sides."""

    before: MetricRuns
    after: IterationValues

    @cached_property
    def base(self) -> IterationValues:
        """The iterations of all runs of the base."""
        return tuple(one for run in self.before for one in run.iterations)

    @cached_property
    def logs(self) -> ScenarioLogs | None:
        """The mean logarithms; None: a side has no value above 0."""
        return compute_logs(self)


Measurements = Mapping[str, Mapping[ScenarioKey, MetricSides]]
"""The values of each metric in the scenarios that measured it on both sides."""


def collect_measurements(pools: Mapping[ScenarioKey, PoolPair]) -> Measurements:
    """Return the values of all metrics."""
    return {
        name: {
            key: MetricSides(before.values[name], after.values[name][0].iterations)
            for key, (before, after) in pools.items()
            if name in before.values and name in after.values
        }
        for name in METRICS
    }


class ScenarioLogs(NamedTuple):
    """The mean logarithm of each iteration of a scenario."""

    before: tuple[tuple[int, tuple[float, ...]], ...]
    """Of each run of the base, with its place."""
    after: tuple[float, ...]

    @property
    def base(self) -> tuple[float, ...]:
        """The iterations of all runs of the base."""
        return tuple(value for _, values in self.before for value in values)

    @property
    def rise(self) -> float:
        """Head minus base."""
        return fmean(self.after) - fmean(self.base)

    @property
    def is_constant(self) -> bool:
        """Whether no iteration differs from another one of its side."""
        return len(set(self.base)) == len(set(self.after)) == 1


def compute_logs(sides: MetricSides) -> ScenarioLogs | None:
    """Return the logarithms of a scenario; None: a side has no value above 0.

    A value of 0 counts as the smallest one above 0 of both sides.
    """
    values = [[v for one in side for v in one] for side in (sides.base, sides.after)]
    if any(max(side) <= 0 for side in values):
        return None
    least = min(v for side in values for v in side if v > 0)
    return ScenarioLogs(
        tuple((run, _average_logs(iterations, least)) for run, iterations in sides.before),
        _average_logs(sides.after, least),
    )


def _average_logs(iterations: IterationValues, least: float) -> tuple[float, ...]:
    return tuple(
        math.log(max(one[0], least))
        if len(one) == 1
        else math.fsum([math.log(max(value, least)) for value in one]) / len(one)
        for one in iterations
    )


def estimate_day(scenarios: Sequence[ScenarioLogs]) -> DayVariation:
    """Estimate the variance of a day's shift of the whole suite.

    Where no iteration differs from another one, as in a replay, there is no shift either.
    Runs that lack more than half of the scenarios were of a part of the suite and do not count.
    """
    past = [dict(scenario.before) for scenario in scenarios]
    if is_deterministic(scenarios):
        return DayVariation(0.0, math.inf, max(map(len, past)))
    counts = Counter(run for runs in past for run in runs)
    usual = sorted(run for run, count in counts.items() if count * 2 >= len(past))
    means = [[fmean(runs[run]) for run in usual] for runs in past if runs.keys() >= set(usual)]
    return estimate_day_variation(average_runs(means or [[0.0]]), ASSUMED_DAY)


def is_deterministic(scenarios: Sequence[ScenarioLogs]) -> bool:
    """Return whether iterations were repeated and none differs from another one of its side."""
    are_repeated = any(len(s.base) + len(s.after) > 2 for s in scenarios)
    return are_repeated and all(scenario.is_constant for scenario in scenarios)


def shrink_variances(scenarios: Sequence[Sequence[Sequence[float]]]) -> list[VariancePart] | None:
    """Return the variance of an iteration in each scenario, shrunk to the suite's.

    Each scenario has the values of its sides. None: no iteration was repeated. G. K. Smyth,
    Statistical Applications in Genetics and Molecular Biology 3 (2004), article 3.
    """
    squares = [math.fsum(_sum_squares(side) for side in sides) for sides in scenarios]
    degrees = [sum(len(side) - 1 for side in sides) for sides in scenarios]
    total = sum(degrees)
    if not total:
        return None
    pooled = math.fsum(squares) / total
    found = []
    for own, extra in zip(squares, degrees, strict=True):
        shared = min(SHARED_DEGREES, total - extra)
        found.append(VariancePart((shared * pooled + own) / (shared + extra), shared + extra))
    return found


def estimate_run_shift(scenarios: Sequence[ScenarioLogs]) -> float:
    """Return how much the runs of the base vary within a scenario, beyond their iterations.

    The variance component of a one-way analysis of variance; 0 with one run.
    """
    between = within = size = 0.0
    runs = extra = 0
    for values in ([v for _, v in s.before] for s in scenarios if len(s.before) > 1):
        counts = [len(run) for run in values]
        usual = math.fsum(v for run in values for v in run) / sum(counts)
        between += math.fsum(len(run) * (fmean(run) - usual) ** 2 for run in values)
        within += math.fsum(map(_sum_squares, values))
        size += sum(counts) - sum(count**2 for count in counts) / sum(counts)
        runs += len(counts) - 1
        extra += sum(counts) - len(counts)
    return max(0.0, (between / runs - within / extra) / (size / runs)) if runs and extra else 0.0


def _sum_squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum([(value - mean) ** 2 for value in values])
