"""Pool the iterations of several runs of a scenario, each piece of evidence once.

A replayed iteration repeats its recording. Ten runs that replay one recording are one sample of
the agent, so counting them as ten would overstate the confidence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from ci_agent_eval.analysis.comparison.model import BaselineRun
from ci_agent_eval.analysis.comparison.run_variation import PassCounts
from ci_agent_eval.analysis.loaded_results import (
    EpisodeRecord,
    OutcomeTally,
    tally_outcomes,
)
from ci_agent_eval.contract.episode import get_decisive_attempt
from ci_agent_eval.contract.measurement import compute_latency_statistic

IterationAttempts = tuple[EpisodeRecord, ...]
"""All attempts at one iteration, in order."""


MetricStatistic = Literal["mean", "p95"]
"""`mean` of one value for each iteration, or `p95` of all values of the iterations."""

IterationValues = tuple[tuple[float, ...], ...]
"""The measured values of each iteration."""


class RunValues(NamedTuple):
    """The values of a metric in one run."""

    run: int
    """Place of the run, 0 for the latest."""
    iterations: IterationValues


ToolSequence = tuple[str, ...]
"""Names of the called tools, in order."""


class Metric(NamedTuple):
    """A metric of episodes."""

    statistic: MetricStatistic
    values: Callable[[EpisodeRecord], tuple[float, ...]]
    """The values that an episode measured; empty: not measured."""


def _convert_optional(value: float | None) -> tuple[float, ...]:
    return () if value is None else (value,)


METRICS: Mapping[str, Metric] = {
    "cost_usd": Metric("mean", lambda record: _convert_optional(record.cost_usd)),
    "tokens": Metric("mean", lambda record: _convert_optional(record.tokens)),
    "tool_calls": Metric("mean", lambda record: (record.tool_calls,)),
    "turns": Metric("mean", lambda record: (record.turns,)),
    "p95_latency_ms": Metric("p95", lambda record: record.latencies_ms),
}
"""The metrics, by their names in `Comparison`."""


class RunSample(NamedTuple):
    """The judged iterations of one run that count."""

    run: int
    """Place of the run, 0 for the latest."""
    counts: PassCounts
    scores: tuple[float, ...]
    """Scores of an evaluation, 0 to 1, by iteration."""
    sequences: Mapping[ToolSequence, int]
    """Number of iterations with each sequence of tool calls."""
    sequential: PassCounts | None = None
    """All judged iterations, if their number was decided by their outcomes; `counts` are then of
    those that always run."""


MetricRuns = tuple[RunValues, ...]
"""The values of a metric in each run that measured it, latest first."""


class IterationPool(NamedTuple):
    """The iterations of a scenario that count, from all its runs."""

    tally: OutcomeTally
    """Outcomes of the iterations, by their decisive attempts."""
    values: Mapping[str, MetricRuns]
    """The values of each metric of `METRICS` that was measured, by attempts that were not skipped.

    Missing latencies are ignored, and so are episodes that ended in an error, perhaps before
    anything could be measured. Of another metric no episode may lack a value.
    """
    repeated: int = 0
    """Number of iterations left out because a later run replays the same recording."""
    flaky: int = 0
    """Number of iterations that passed only on a retry."""
    runs: tuple[RunSample, ...] = ()
    """Each run with judged iterations, latest first."""
    judged: tuple[EpisodeRecord, ...] = ()
    """The decisive attempt of each judged iteration."""

    def aggregate(self, name: str) -> float | None:
        """Return the mean of a metric to ten decimals, or its p95; None: not measured."""
        if name not in self.values:
            return None
        values = [v for run in self.values[name] for one in run.iterations for v in one]
        if METRICS[name].statistic == "p95":
            return compute_latency_statistic(values, "p95")
        return round(math.fsum(values) / len(values), 10)


PoolPair = tuple[IterationPool, IterationPool]
"""A scenario's iterations in the baseline and in the head."""


def find_distinct_runs(runs: Sequence[BaselineRun]) -> list[int]:
    """Return the indexes of the runs, latest first, without exact copies of a later run."""
    found: list[int] = []
    for place, run in enumerate(runs):
        if all(run.episodes != runs[other].episodes for other in found):
            found.append(place)
    return found


def pool_iterations(runs: Iterable[tuple[int, Sequence[EpisodeRecord]]]) -> IterationPool:
    """Pool the episodes of a scenario's runs, given with their places, the latest run first.

    A replayed iteration counts as often as in the run that repeats it most often.
    """
    kept: list[IterationAttempts] = []
    samples: list[RunSample] = []
    seen: Counter[tuple[object, ...]] = Counter()
    repeated = 0
    by_run: list[tuple[int, list[EpisodeRecord]]] = []
    for place, episodes in runs:
        before = len(kept)
        in_run: Counter[tuple[object, ...]] = Counter()
        for attempts in _group_iterations(episodes):
            replay_key = _build_replay_key(attempts)
            if replay_key is not None:
                in_run[replay_key] += 1
                if in_run[replay_key] <= seen[replay_key]:
                    repeated += 1
                    continue
            kept.append(attempts)
        samples += _sample_run(place, kept[before:])
        ran = (record for attempts in kept[before:] for record in attempts if record.is_rated)
        by_run.append((place, [record for record in ran if record.outcome != "skipped"]))
        seen |= in_run
    final = [get_decisive_attempt(attempts) for attempts in kept]
    judged = tuple(record for record in final if record.outcome in {"passed", "failed"})
    rated = [record for record in final if record.is_rated]
    tally = tally_outcomes(record.outcome for record in rated)
    flaky = sum(1 for record in rated if record.outcome == "passed" and record.attempt > 1)
    values = _collect_values(by_run)
    return IterationPool(tally, values, repeated, flaky, tuple(samples), judged)


def _collect_values(
    by_run: Sequence[tuple[int, Sequence[EpisodeRecord]]],
) -> dict[str, MetricRuns]:
    collected = ((name, _collect_metric(metric, by_run)) for name, metric in METRICS.items())
    return {name: runs for name, runs in collected if runs}


def _collect_metric(
    metric: Metric, by_run: Sequence[tuple[int, Sequence[EpisodeRecord]]]
) -> MetricRuns:
    """Return the values of each run that measured a metric; empty: an episode lacks a value."""
    found: list[RunValues] = []
    for place, episodes in by_run:
        values = [metric.values(record) for record in episodes]
        if metric.statistic == "mean" and any(
            not measured and record.outcome != "error"
            for measured, record in zip(values, episodes, strict=True)
        ):
            return ()
        if iterations := tuple(filter(None, values)):
            found.append(RunValues(place, iterations))
    return tuple(found)


def _sample_run(place: int, iterations: Sequence[IterationAttempts]) -> Iterator[RunSample]:
    final = [get_decisive_attempt(attempts) for attempts in iterations]
    judged = [record for record in final if record.outcome in {"passed", "failed"}]
    rated = [record for record in judged if record.is_rated]
    if rated:
        scores = tuple(record.evaluation.score for record in rated if record.evaluation)
        is_adaptive = any(record.minimum_iterations is not None for record in judged)
        sequences = Counter(record.tools for record in rated)
        sequential = _count_passes(judged) if is_adaptive else None
        yield RunSample(place, _count_passes(rated), scores, sequences, sequential)


def _count_passes(judged: Sequence[EpisodeRecord]) -> PassCounts:
    return PassCounts(sum(record.outcome == "passed" for record in judged), len(judged))


def _group_iterations(episodes: Sequence[EpisodeRecord]) -> Iterator[IterationAttempts]:
    ordered = sorted(episodes, key=lambda record: (*_get_iteration_key(record), record.attempt))
    for _, attempts in groupby(ordered, key=_get_iteration_key):
        yield tuple(attempts)


def _get_iteration_key(record: EpisodeRecord) -> tuple[str, int]:
    return record.nodeid or "", record.iteration


def _build_replay_key(attempts: IterationAttempts) -> tuple[object, ...] | None:
    """Return all data that a replay repeats, even its latencies; None: a model answered."""
    if any(not record.calls.replayed or record.calls.live for record in attempts):
        return None
    return tuple(
        (f.outcome, f.turns, f.tools, f.tokens, f.cost_usd, f.latencies_ms, f.model)
        for f in attempts
    )
