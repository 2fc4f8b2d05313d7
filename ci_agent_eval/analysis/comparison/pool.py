"""What several runs of a scenario tell together: its iterations, each piece of evidence once.

A replayed iteration repeats what was recorded. Ten runs that replay one recording are no ten
answers of the agent, and counting them as such would make chance look certain.
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
from ci_agent_eval.analysis.loaded_results import EpisodeRecord, OutcomeTally, tally_outcome
from ci_agent_eval.contract.attempts import get_decisive_attempt
from ci_agent_eval.contract.measurement import compute_latency_statistic

IterationAttempts = tuple[EpisodeRecord, ...]
"""Every attempt at one iteration, the first one first."""


class Metric(NamedTuple):
    """Something that episodes measure."""

    statistic: MetricStatistic
    values: Callable[[EpisodeRecord], tuple[float, ...]]
    """What an episode measured of it; empty: it was not measured."""


def _optional_value(value: float | None) -> tuple[float, ...]:
    return () if value is None else (value,)


METRICS: Mapping[str, Metric] = {
    "cost_usd": Metric("mean", lambda record: _optional_value(record.cost_usd)),
    "tokens": Metric("mean", lambda record: _optional_value(record.tokens)),
    "tool_calls": Metric("mean", lambda record: (record.tool_calls,)),
    "p95_latency_ms": Metric("p95", lambda record: record.latencies_ms),
}
"""The figures of a side, by their names."""


@dataclass(frozen=True, slots=True)
class IterationPool:
    """The iterations of a scenario that count, of all its runs."""

    episodes: tuple[EpisodeRecord, ...]
    """Every attempt that was not skipped."""
    tally: OutcomeTally
    """Each iteration once, by the attempt that decides."""
    repeated: int = 0
    """Iterations left out, because a later run replayed the same."""
    flaky: int = 0
    """Iterations that passed only on a retry."""

    def measurements(self, name: str) -> IterationValues | None:
        """Return what each episode measured of a figure; None: one has no measurement.

        Of latencies those count that are there. An error may have ended an episode before
        there was anything to measure.
        """
        figure = METRICS[name]
        found = [(record.outcome, figure.values(record)) for record in self.episodes]
        lacks_one = any(not values for outcome, values in found if outcome != "error")
        if figure.statistic == "mean" and lacks_one:
            return None
        return tuple(values for _, values in found if values) or None

    def aggregate(self, name: str) -> float | None:
        """Return a figure of all of them, a mean to ten decimals; None: it was not measured."""
        measured = self.measurements(name)
        if measured is None:
            return None
        values = [value for one in measured for value in one]
        if METRICS[name].statistic == "p95":
            return compute_latency_statistic(values, "p95")
        return round(math.fsum(values) / len(values), 10)


def find_distinct_runs(runs: Sequence[BaselineRun]) -> list[int]:
    """Return the places of runs that are no copies: the same to the last figure as a later one."""
    found: list[int] = []
    for place, run in enumerate(runs):
        if all(run.episodes != runs[other].episodes for other in found):
            found.append(place)
    return found


def pool_iterations(runs: Iterable[Sequence[EpisodeRecord]]) -> IterationPool:
    """Put the episodes of a scenario's runs together, the latest run first.

    What a run replays counts as often as in the run that replays it most often.
    """
    kept: list[IterationAttempts] = []
    seen: Counter[tuple[object, ...]] = Counter()
    repeated = 0
    for episodes in runs:
        here: Counter[tuple[object, ...]] = Counter()
        for attempts in _group_iterations(episodes):
            said = _build_replay_key(attempts)
            if said is not None:
                here[said] += 1
                if here[said] <= seen[said]:
                    repeated += 1
                    continue
            kept.append(attempts)
        seen |= here
    ran = (record for attempts in kept for record in attempts if record.outcome != "skipped")
    final = [get_decisive_attempt(attempts) for attempts in kept]
    tally = sum((tally_outcome(record.outcome) for record in final), OutcomeTally())
    flaky = sum(1 for record in final if record.outcome == "passed" and record.attempt > 1)
    return IterationPool(tuple(ran), tally, repeated, flaky)


def _group_iterations(episodes: Sequence[EpisodeRecord]) -> Iterator[IterationAttempts]:
    ordered = sorted(episodes, key=lambda record: (*_iteration_key(record), record.attempt))
    for _, attempts in groupby(ordered, key=_iteration_key):
        yield tuple(attempts)


def _iteration_key(record: EpisodeRecord) -> tuple[str, int]:
    return record.nodeid or "", record.iteration


def _build_replay_key(attempts: IterationAttempts) -> tuple[object, ...] | None:
    """Return all that a recording brings back, its latencies too; None: a model answered."""
    if any(not record.calls.replayed or record.calls.live for record in attempts):
        return None
    return tuple(
        (f.outcome, f.turns, f.steps, f.tokens, f.cost_usd, f.latencies_ms, f.model)
        for f in attempts
    )
