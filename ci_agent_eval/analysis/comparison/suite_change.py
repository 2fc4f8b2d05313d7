"""The test of the suite as a whole: whether the mean of all scenarios fell.

It finds a drop of a few points in every scenario, which no test of one scenario finds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

from ci_agent_eval.analysis.comparison.model import ComparePolicy, SuiteChange, SuiteMeasure
from ci_agent_eval.analysis.comparison.pool import PoolPair, RunSample
from ci_agent_eval.analysis.comparison.run_variation import (
    SHARED_DAY,
    DayVariation,
    average_runs,
    estimate_day_variation,
)
from ci_agent_eval.analysis.distributions import (
    VariancePart,
    combine_parts,
    compute_margin,
    compute_t_cdf,
    compute_variance,
    round_significant,
)

MIN_SCENARIOS = 5
"""Fewer scenarios are not tested as a suite."""


class SuiteSample(NamedTuple):
    """The values of a scenario, 0 to 1: of each run of the base, and of the head."""

    before: tuple[float, ...]
    """Latest run first; the same runs for each scenario of a suite."""
    usual: float
    """Mean of the base over all its iterations."""
    after: float


def compute_suite_change(
    measure: SuiteMeasure,
    samples: Sequence[SuiteSample],
    *,
    gates: bool,
    interleaved: bool = False,
) -> SuiteChange | None:
    """Compare the suite's mean with the base; None: too few scenarios.

    A paired t-test clustered by scenario (E. Miller, "Adding Error Bars to Evals", 2024,
    arXiv:2411.00640), with the variance of a day's shift added, which interleaved sides share.
    """
    if len(samples) < MIN_SCENARIOS:
        return None
    drop, own = _average_differences(samples)
    day = _estimate_day(samples, interleaved=interleaved)
    margin = compute_margin(_add_day(own, len(samples), day), 0.025)
    before, after = fmean(s.usual for s in samples), fmean(s.after for s in samples)
    return SuiteChange(
        measure=measure,
        before=round(before, 10),
        after=round(after, 10),
        interval=(round(drop - margin, 10), round(drop + margin, 10)),
        p_value=round_significant(compute_mean_drop_p_value(samples, interleaved=interleaved)),
        scenarios=len(samples),
        day_variation=round_significant(math.sqrt(day.variance)),
        runs=day.runs,
        gates=gates,
    )


def compute_mean_drop_p_value(
    samples: Sequence[SuiteSample], *, interleaved: bool = False
) -> float:
    """Return the one-sided p-value that the mean of at least two scenarios fell."""
    drop, own = _average_differences(samples)
    day = _estimate_day(samples, interleaved=interleaved)
    return _compute_p_value(drop, own, len(samples), day)


def _average_differences(samples: Sequence[SuiteSample]) -> tuple[float, float]:
    """Return the mean difference, head minus base, and its variance without a day's shift."""
    differences = [sample.after - sample.usual for sample in samples]
    return fmean(differences), compute_variance(differences) / len(samples)


def _estimate_day(samples: Sequence[SuiteSample], *, interleaved: bool) -> DayVariation:
    runs = average_runs([sample.before for sample in samples])
    return SHARED_DAY if interleaved else estimate_day_variation(runs)


def list_suite_changes(
    compared: Sequence[ComparedScenario], policy: ComparePolicy
) -> tuple[SuiteChange, ...]:
    """Compare each measure of the suite: strict scenarios that are required, and evaluations."""
    strict = [c for c in compared if not c.is_evaluation and c.is_required]
    evaluations = [c for c in compared if c.is_evaluation]
    gates = policy.evaluations_gate or any(c.is_required for c in evaluations)
    measures: tuple[tuple[SuiteMeasure, list[SuiteSample], bool], ...] = (
        ("pass_rate", _sample_rates(strict), True),
        ("evaluation_pass_rate", _sample_rates(evaluations), gates),
        ("evaluation_score", _sample_scores(evaluations), gates),
    )
    found = (
        compute_suite_change(measure, samples, gates=gates, interleaved=policy.interleaved)
        for measure, samples, gates in measures
    )
    return tuple(change for change in found if change is not None)


class ComparedScenario(NamedTuple):
    """A scenario's iterations on both sides, and how it counts."""

    pools: PoolPair
    is_evaluation: bool
    is_required: bool


def _sample_rates(compared: Sequence[ComparedScenario]) -> list[SuiteSample]:
    return sample_measure([c.pools for c in compared], list_outcomes)


def _sample_scores(compared: Sequence[ComparedScenario]) -> list[SuiteSample]:
    return sample_measure([c.pools for c in compared], lambda sample: sample.scores)


def list_outcomes(sample: RunSample) -> Sequence[float]:
    """Return 1 for each passed iteration, and 0 for each other judged one."""
    passed, judged = sample.counts
    return [1.0] * passed + [0.0] * (judged - passed)


def sample_measure(
    pools: Sequence[PoolPair], get_values: Callable[[RunSample], Sequence[float]]
) -> list[SuiteSample]:
    """Return a sample of each scenario that the head and every usual run of the base measured.

    Runs that lack more than half of the scenarios do not count: they ran a part of the suite.
    """
    sides = [
        ({s.run: v for s in before.runs if (v := get_values(s))}, after.runs)
        for before, after in pools
    ]
    measured = [(past, get_values(after[0])) for past, after in sides if past and after]
    counts = Counter(run for past, values in measured if values for run in past)
    usual = sorted(run for run, count in counts.items() if count * 2 >= len(measured))
    return [
        SuiteSample(
            tuple(fmean(past[run]) for run in usual),
            fmean(value for values in past.values() for value in values),
            fmean(values),
        )
        for past, values in measured
        if values and usual and all(run in past for run in usual)
    ]


def mark_drops(changes: Sequence[SuiteChange], level: float) -> tuple[SuiteChange, ...]:
    """Return the changes with the decision whether each is a significant drop."""
    return tuple(change._replace(fell=change.p_value < level) for change in changes)


def _add_day(own: float, scenarios: int, day: DayVariation) -> VariancePart:
    """Return the variance of the difference, increased by a day's shift."""
    return combine_parts([VariancePart(own, scenarios - 1), day.shift])


def _compute_p_value(drop: float, own: float, scenarios: int, day: DayVariation) -> float:
    if drop >= 0:
        return 1.0 if drop == 0 else 1 - _compute_p_value(-drop, own, scenarios, day)
    total, degrees = _add_day(own, scenarios, day)
    if total == 0:
        return 0.5**scenarios  # the sign test: each scenario fell by the same
    return compute_t_cdf(drop / math.sqrt(total), degrees)
