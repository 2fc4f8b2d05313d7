"""Iterations that tests declare and that left no episode. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ci_agent_eval.analysis.loaded_results import EpisodeRecord, LoadedResults
from ci_agent_eval.contract.findings import FindingKind

NotRunCounter = Callable[[Sequence[EpisodeRecord]], int]
"""Takes the last attempts at a scenario; returns how many of its iterations left no episode."""

_CUT_SHORT: frozenset[FindingKind] = frozenset(
    {"interrupted", "stopped", "shards", "unreadable_file"}
)
"""Findings that say of the whole run that episodes are missing, and fail the gate by themselves."""


def collect_restrictions(loaded: LoadedResults) -> tuple[str, ...]:
    """Return what restricted any of the runs on purpose, sorted."""
    return tuple(sorted({each for session in loaded.sessions for each in session.restrictions}))


def build_not_run_counter(loaded: LoadedResults) -> NotRunCounter:
    """Return what counts the iterations that did not run.

    A run that was cut short says so as a whole. In one that was restricted on purpose, only
    iterations count that something else took away.
    """
    if any(finding.blocking and finding.kind in _CUT_SHORT for finding in loaded.findings):
        return lambda _: 0
    if not collect_restrictions(loaded):
        return lambda final: count_declared_iterations(final) - len(final)
    removed: Counter[str] = Counter()
    for session in loaded.sessions:
        removed.update({one.scenario_id: one.iterations for one in session.removed})
    return lambda final: removed[final[0].scenario_id]


def count_declared_iterations(final: Sequence[EpisodeRecord]) -> int:
    """Return how many iterations the tests of a scenario declare; no fewer than there are.

    As many tests declare N iterations as have left the same one of them.
    """
    declared: Counter[int] = Counter()
    for (of, _), tests in Counter(
        (record.iterations, record.iteration) for record in final
    ).items():
        declared[of] = max(declared[of], tests)
    left = Counter(record.iterations for record in final)
    return sum(max(of * tests, left[of]) for of, tests in declared.items())
