"""Count the iterations that have no episode; summarize adaptive ones. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ci_agent_eval.analysis.loaded_results import (
    EpisodeRecord,
    LoadedResults,
    OutcomeTally,
    tally_outcomes,
)
from ci_agent_eval.contract.findings import FindingKind
from ci_agent_eval.contract.results import AdaptiveStop, Session, StopCause

AdaptiveStops = Mapping[tuple[str, str], AdaptiveStop]
"""Why the iterations of each scenario ended, by scenario id and agent."""


class AdaptiveSummary(NamedTuple):
    """The adaptive iterations of a scenario."""

    minimum: int
    """Iterations that always run."""
    maximum: int
    rated: OutcomeTally
    """Outcomes of the minimum, which alone count for rates: how many more there are depends on
    their outcomes."""
    stop: StopCause | None = None
    """Why there are no more; None: the run did not record it."""
    required: float | None = None
    """Required pass rate by which the run decided; None: none applied."""


def collect_stops(sessions: Iterable[Session]) -> AdaptiveStops:
    """Return the recorded stops of all sessions: of each shard its own scenarios."""
    return {
        (stop.scenario_id, stop.agent or ""): stop
        for session in sessions
        for stop in session.adaptive_stops
    }


def summarize_adaptive(
    final: Sequence[EpisodeRecord], stop: AdaptiveStop | None
) -> AdaptiveSummary | None:
    """Summarize the decisive attempts of a scenario; None: their number is fixed."""
    adaptive = [record for record in final if record.minimum_iterations is not None]
    if not adaptive:
        return None
    tests = max(Counter(record.iteration for record in adaptive).values())
    return AdaptiveSummary(
        minimum=max(record.minimum_iterations or 0 for record in adaptive) * tests,
        maximum=max(record.iterations for record in adaptive) * tests,
        rated=tally_outcomes(r.outcome for r in final if r.is_rated),
        stop=None if stop is None else stop.cause,
        required=None if stop is None else stop.required,
    )


NotRunCounter = Callable[[Sequence[EpisodeRecord]], int]
"""Takes the last attempts at a scenario; returns how many of its iterations have no episode."""

_CUT_SHORT: frozenset[FindingKind] = frozenset(
    {"interrupted", "stopped", "shards", "unreadable_file"}
)
"""Findings that report missing episodes for the whole run and fail the gate."""


def collect_restrictions(loaded: LoadedResults) -> tuple[str, ...]:
    """Return the sorted options that restricted any of the runs on purpose."""
    return tuple(sorted({each for session in loaded.sessions for each in session.restrictions}))


def collect_left_out(loaded: LoadedResults) -> tuple[str, ...]:
    """Return the sorted scenarios without an episode that the runs left out."""
    named = {name for session in loaded.sessions for name in session.left_out}
    return tuple(sorted(named - {record.scenario_id for record in loaded.episodes}))


def build_not_run_counter(loaded: LoadedResults) -> NotRunCounter:
    """Return a function that counts the iterations that did not run.

    It returns 0 for a run that was cut short, which has a finding. In a run that was restricted
    on purpose, only iterations count that were removed for another reason.
    """
    if any(finding.blocking and finding.kind in _CUT_SHORT for finding in loaded.findings):
        return lambda _: 0
    if not collect_restrictions(loaded):
        return _count_missing
    removed: Counter[str] = Counter()
    for session in loaded.sessions:
        removed.update({one.scenario_id: one.iterations for one in session.removed})
    return lambda final: removed[final[0].scenario_id]


def _count_missing(final: Sequence[EpisodeRecord]) -> int:
    expected = [record for record in final if record.is_rated]
    return count_declared_iterations(expected) - len(expected)


def count_declared_iterations(final: Sequence[EpisodeRecord]) -> int:
    """Return how many iterations the tests of a scenario declare, at least the number that ran.

    Of adaptive iterations only the minimum counts, and `final` has no others.

    The number of tests that declare N iterations is the highest count of one iteration number.
    """
    declared: Counter[int] = Counter()
    for (of, _), tests in Counter(
        (_get_declared(record), record.iteration) for record in final
    ).items():
        declared[of] = max(declared[of], tests)
    left = Counter(map(_get_declared, final))
    return sum(max(of * tests, left[of]) for of, tests in declared.items())


def _get_declared(record: EpisodeRecord) -> int:
    return record.minimum_iterations or record.iterations
