"""Pool the iterations of several runs of a scenario, each piece of evidence once.

A replayed iteration repeats its recording. Ten runs that replay one recording are one sample of
the agent, so counting them as ten would overstate the confidence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from ci_agent_eval.analysis.comparison.model import BaselineRun
from ci_agent_eval.analysis.comparison.resampling import IterationValues, MetricStatistic
from ci_agent_eval.analysis.comparison.run_variation import PassCounts
from ci_agent_eval.analysis.loaded_results import EpisodeRecord, OutcomeTally, tally_outcome
from ci_agent_eval.contract.attempts import get_decisive_attempt
from ci_agent_eval.contract.measurement import compute_latency_statistic

IterationAttempts = tuple[EpisodeRecord, ...]
"""All attempts at one iteration, in order."""


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
    "p95_latency_ms": Metric("p95", lambda record: record.latencies_ms),
}
"""The metrics, by their names in `ScenarioMetrics`."""


class RunSample(NamedTuple):
    """The judged iterations of one run that count."""

    run: int
    """Place of the run, 0 for the latest."""
    counts: PassCounts
    scores: tuple[float, ...]
    """Scores of an evaluation, 0 to 1, by iteration."""


@dataclass(frozen=True, slots=True)
class IterationPool:
    """The iterations of a scenario that count, from all its runs."""

    episodes: tuple[EpisodeRecord, ...]
    """All attempts that were not skipped."""
    tally: OutcomeTally
    """Outcomes of the iterations, by their decisive attempts."""
    repeated: int = 0
    """Number of iterations left out because a later run replays the same recording."""
    flaky: int = 0
    """Number of iterations that passed only on a retry."""
    runs: tuple[RunSample, ...] = ()
    """Each run with judged iterations, latest first."""

    def collect_values(self, name: str) -> IterationValues | None:
        """Return each episode's values of a metric; None: an episode has none.

        Missing latencies are ignored, and so are episodes that ended in an error, perhaps before
        anything could be measured.
        """
        metric = METRICS[name]
        found = [(record.outcome, metric.values(record)) for record in self.episodes]
        lacks_one = any(not values for outcome, values in found if outcome != "error")
        if metric.statistic == "mean" and lacks_one:
            return None
        return tuple(values for _, values in found if values) or None

    def aggregate(self, name: str) -> float | None:
        """Return the mean of a metric to ten decimals, or its p95; None: not measured."""
        measurements = self.collect_values(name)
        if measurements is None:
            return None
        values = [value for one in measurements for value in one]
        if METRICS[name].statistic == "p95":
            return compute_latency_statistic(values, "p95")
        return round(math.fsum(values) / len(values), 10)


def find_distinct_runs(runs: Sequence[BaselineRun]) -> list[int]:
    """Return the indexes of the runs, latest first, without exact copies of a later run."""
    found: list[int] = []
    for place, run in enumerate(runs):
        if all(run.episodes != runs[other].episodes for other in found):
            found.append(place)
    return found


def pool_iterations(runs: Iterable[Sequence[EpisodeRecord]]) -> IterationPool:
    """Pool the episodes of a scenario's runs, given with the latest run first.

    A replayed iteration counts as often as in the run that repeats it most often.
    """
    kept: list[IterationAttempts] = []
    samples: list[RunSample] = []
    seen: Counter[tuple[object, ...]] = Counter()
    repeated = 0
    for place, episodes in enumerate(runs):
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
        seen |= in_run
    ran = (record for attempts in kept for record in attempts if record.outcome != "skipped")
    final = [get_decisive_attempt(attempts) for attempts in kept]
    tally = sum((tally_outcome(record.outcome) for record in final), OutcomeTally())
    flaky = sum(1 for record in final if record.outcome == "passed" and record.attempt > 1)
    return IterationPool(tuple(ran), tally, repeated, flaky, tuple(samples))


def _sample_run(place: int, iterations: Sequence[IterationAttempts]) -> Iterator[RunSample]:
    final = [get_decisive_attempt(attempts) for attempts in iterations]
    tally = sum((tally_outcome(record.outcome) for record in final), OutcomeTally())
    if tally.judged:
        judged = (record for record in final if record.outcome in {"passed", "failed"})
        scores = tuple(record.evaluation.score for record in judged if record.evaluation)
        yield RunSample(place, PassCounts(tally.passed, tally.judged), scores)


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
        (f.outcome, f.turns, f.steps, f.tokens, f.cost_usd, f.latencies_ms, f.model)
        for f in attempts
    )
