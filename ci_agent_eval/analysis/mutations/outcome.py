"""Which changes the tests noticed: the played episodes, joined with their mutants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ci_agent_eval.analysis.mutations.derive import RecordedTest, find_base_nodeid
from ci_agent_eval.analysis.mutations.recorded_transcript import Mutant
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.mutations import (
    CoverageProblem,
    MutationCounts,
    MutationReport,
    MutationResult,
    MutationStatus,
    ScenarioMutations,
)
from ci_agent_eval.contract.playback import PLAYBACK_KEY, PlaybackRecord
from ci_agent_eval.contract.wording import one_line

PlayedEpisodes = Mapping[tuple[str, int], Episode]
"""The episodes of a playback, by the node id without its iteration, and the iteration."""


def index_played(episodes: Iterable[Episode]) -> PlayedEpisodes:
    """Index the episodes of a playback; the last attempt counts."""
    ordered = sorted(episodes, key=lambda one: one.key)
    return {(find_base_nodeid(one), one.iteration): one for one in ordered}


def build_mutation_report(
    tests: Sequence[RecordedTest], played: PlayedEpisodes, suite: str
) -> MutationReport:
    """Return every scenario with its changes and whether they were noticed."""
    scenarios = tuple(_judge_test(test, played) for test in tests)
    found = Counter[str](result.status for scenario in scenarios for result in scenario.results)
    counts = MutationCounts(**found)
    return MutationReport(suite=suite, counts=counts, score=counts.score, scenarios=scenarios)


def _judge_test(test: RecordedTest, played: PlayedEpisodes) -> ScenarioMutations:
    episode, unchanged = test.episode, played.get((test.nodeid, 1))
    problem = _find_problem(test, played)
    reason = unchanged.reason if problem == "playback_failed" and unchanged else None
    results: tuple[MutationResult, ...] = ()
    if problem is None and unchanged is not None:
        results = tuple(
            _judge_mutant(mutant, unchanged, played[test.nodeid, number])
            for number, mutant in enumerate(test.mutants, start=2)
        )
    return ScenarioMutations(
        scenario_id=episode.scenario_id,
        nodeid=test.nodeid,
        file=episode.file,
        line=episode.line,
        problem=problem,
        reason=reason if reason is None else one_line(reason),
        results=results,
        not_applicable=test.not_applicable if problem is None else (),
        left_out=dict(test.left_out) if problem is None else {},
    )


def _find_problem(test: RecordedTest, played: PlayedEpisodes) -> CoverageProblem | None:
    """Return why the changes of a test say nothing about it."""
    if not test.has_passed:
        return "recording_failed"
    if not test.mutants:
        return "no_change"
    plays = [played.get((test.nodeid, number + 1)) for number in range(len(test.mutants) + 1)]
    unchanged = plays[0]
    if unchanged is None or None in plays:
        return "not_played"
    return _find_playback_problem(unchanged)


def _find_playback_problem(unchanged: Episode) -> CoverageProblem | None:
    """Return why the playback of an unchanged recording is none."""
    record = get_playback_record(unchanged)
    if record.own_turns or (not record.answers and unchanged.is_passing()):
        return "own_agent"
    if unchanged.traffic is not None and unchanged.traffic.refused:
        return "asks_model"
    if not unchanged.is_passing():
        return "playback_failed"
    return None if record.is_exact else "other_answers"


def get_playback_record(episode: Episode) -> PlaybackRecord:
    """Return how the test used its play; an empty record if it ended before."""
    return PlaybackRecord.model_validate(episode.metadata.get(PLAYBACK_KEY, {}))


def _judge_mutant(mutant: Mutant, unchanged: Episode, played: Episode) -> MutationResult:
    """Judge a change; a test that skipped itself did not notice it."""
    if not played.is_passing() and played.outcome != "skipped":
        return _build_result(mutant, "noticed", _list_failures(played))
    warnings = [name for name in _list_warnings(played) if name not in _list_warnings(unchanged)]
    if warnings:
        return _build_result(mutant, "warned", warnings)
    is_judged = get_playback_record(played).is_judged
    return _build_result(mutant, "unjudged" if is_judged else "unnoticed", ())


def _build_result(mutant: Mutant, status: MutationStatus, by: Iterable[str]) -> MutationResult:
    names = tuple(dict.fromkeys(map(one_line, by)))
    return MutationResult(mutation=mutant.mutation, status=status, noticed_by=names)


def _list_failures(played: Episode) -> Sequence[str]:
    """Return the failed assertions and exceeded hard budgets, or else the error."""
    found = [assertion.name for assertion in played.failed_assertions]
    found += [f"budget {violation.budget}" for violation in played.violations if violation.hard]
    return found or [played.reason or played.outcome]


def _list_warnings(played: Episode) -> Sequence[str]:
    """Return the assertions that only warn, and the exceeded soft budgets."""
    failed = [a.name for a in played.assertions if not a.passed and a.severity == "warning"]
    return [*failed, *(f"budget {v.budget}" for v in played.violations if not v.hard)]
