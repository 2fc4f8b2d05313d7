"""Verify the earlier results that a run carried over; its own word for them counts nothing. Pure.

A carried-over episode counts only if the baseline's latest run has it, byte for byte, and if the
selection, recomputed from the two Git trees, calls its scenario unchanged. Its record is then
replaced by the baseline's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.analysis.loaded_results import (
    CarriedResults,
    EpisodeRecord,
    LoadedResults,
    hash_content,
)
from ci_agent_eval.contract.findings import CarryProblem, Finding, RefusedResults
from ci_agent_eval.contract.results import RESULTS_NAME, Session
from ci_agent_eval.dependencies.selection.model import Selection
from ci_agent_eval.results.baselines.episode_lines import decompress_line
from ci_agent_eval.results.baselines.request import EarlierRun
from ci_agent_eval.results.dependencies_file import hash_environment
from ci_agent_eval.results.loaded_redaction import EpisodeKey

_DAY_S = 86_400

_Problem = tuple[CarryProblem, str]
"""Why a scenario's earlier results do not count, and the detail."""


def verify_carried_results(
    loaded: LoadedResults, earlier: EarlierRun | None, selection: Selection, now: int | None
) -> LoadedResults:
    """Return the results with the earlier results that count, and findings about the others.

    `now` is the time in seconds since 1970; None: the age of the earlier run is not known.
    """
    checks = _CarryChecks(loaded, earlier, selection)
    problems = checks.find_problems()
    valid = checks.claimed.keys() - problems.keys()
    findings = tuple(sorted({*loaded.findings, *_build_findings(problems)}))
    if earlier is None or earlier.origin is None or not valid:
        return replace(loaded, findings=findings)
    age_s = None if now is None else max(now - earlier.origin.recorded_at, 0)
    return replace(
        loaded,
        episodes=tuple(checks.restore_record(record, valid) for record in loaded.episodes),
        sessions=_restore_stops(loaded.sessions, earlier, valid),
        findings=findings,
        carried=CarriedResults(
            commit=earlier.origin.commit,
            scenarios=frozenset(valid),
            run=earlier.origin.run,
            age_days=None if age_s is None else age_s // _DAY_S,
        ),
    )


def _build_findings(problems: Mapping[str, _Problem]) -> Iterator[Finding]:
    """Yield a finding for each problem, with all its scenarios."""
    grouped: dict[_Problem, list[str]] = defaultdict(list)
    for scenario, problem in sorted(problems.items()):
        grouped[problem].append(scenario)
    for (cause, detail), scenarios in grouped.items():
        data = RefusedResults(cause, tuple(scenarios), detail)
        yield Finding("carried_over", RESULTS_NAME, data)


def _restore_stops(
    sessions: Sequence[Session], earlier: EarlierRun, valid: Collection[str]
) -> tuple[Session, ...]:
    """Return the sessions with the earlier run's stops of the adaptive scenarios."""
    found = [
        session.model_copy(
            update={
                "adaptive_stops": tuple(
                    stop for stop in session.adaptive_stops if stop.scenario_id not in valid
                )
            }
        )
        for session in sessions
    ]
    stops = tuple(stop for stop in earlier.adaptive_stops if stop.scenario_id in valid)
    if stops and found:
        own = found[0].adaptive_stops
        found[0] = found[0].model_copy(update={"adaptive_stops": (*own, *stops)})
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _EarlierEpisode:
    record: EpisodeRecord
    content_hash: str


class _CarryChecks:
    """The carried-over results of a run, beside those of the earlier run."""

    def __init__(
        self, loaded: LoadedResults, earlier: EarlierRun | None, selection: Selection
    ) -> None:
        self._loaded = loaded
        self._earlier = earlier
        self._selection = selection
        self.claimed: dict[str, list[EpisodeRecord]] = defaultdict(list)
        """The earlier results in the files, by scenario."""
        self._ran: set[str] = set()
        for record in loaded.episodes:
            if record.carried_over is None:
                self._ran.add(record.scenario_id)
            else:
                self.claimed[record.scenario_id].append(record)
        # Each shard names all the scenarios that were left out.
        self._expected = {
            one.scenario_id: one.iterations
            for session in loaded.sessions
            for one in session.carried
        }
        dependencies = () if earlier is None else earlier.dependencies
        self._environments = set(map(hash_environment, dependencies))
        self._known = {} if earlier is None else _index_episodes(earlier, self.claimed.keys())

    def find_problems(self) -> dict[str, _Problem]:
        """Return why the earlier results of scenarios do not count, by scenario."""
        general = self._find_general_problem()
        found = {name: general or self._find_problem(name) for name in self.claimed}
        problems = {name: problem for name, problem in found.items() if problem is not None}
        missing: _Problem = ("missing", "")
        return problems | dict.fromkeys(self._list_required() - self.claimed.keys(), missing)

    def _list_required(self) -> set[str]:
        """Return the scenarios of which there must be earlier results.

        Of several shards, the first has them; an unfinished run has none.
        """
        return {
            one.scenario_id
            for session in self._loaded.sessions
            if session.state == "finished" and (session.shard is None or session.shard.index == 1)
            for one in session.carried
        }

    def restore_record(self, record: EpisodeRecord, valid: Collection[str]) -> EpisodeRecord:
        """Return the baseline's record in place of an earlier result that counts."""
        if record.carried_over is None or record.scenario_id not in valid:
            return record
        known = self._known[record.scenario_id][record.key].record
        return replace(known, carried_over=record.carried_over, content_hash=record.content_hash)

    def _find_general_problem(self) -> _Problem | None:
        """Return why no earlier result counts."""
        earlier, full_run = self._earlier, self._selection.full_run
        if earlier is None:
            return "no_baseline", ""
        if not earlier.is_trusted:
            return "untrusted", ""
        if earlier.origin is None:
            return "no_dependencies", earlier.problem
        if full_run is not None and full_run.cause == "expired":
            return "expired", full_run.detail
        return None

    def _find_problem(self, name: str) -> _Problem | None:
        if name not in self._expected:
            return "unexpected", ""
        if name in self._ran:
            return "also_ran", ""
        if name not in self._selection.unchanged:
            full_run = self._selection.full_run
            return "not_proven_unchanged", "" if full_run is None else full_run.cause
        if set(self._loaded.environments) != self._environments:
            return "other_environment", ""
        if not self._is_equal(name):
            return "differs", ""
        rated = sum(1 for one in self._known[name].values() if one.record.is_rated)
        return ("too_few", "") if rated < self._expected[name] else None

    def _is_equal(self, name: str) -> bool:
        """Return whether the episodes are exactly those of the earlier run."""
        assert self._earlier is not None  # noqa: S101 - see _find_general_problem
        origin, known = self._earlier.origin, self._known.get(name, {})
        claimed = self.claimed[name]
        return {one.key for one in claimed} == known.keys() and all(
            one.carried_over == origin and one.content_hash == known[one.key].content_hash
            for one in claimed
        )


def _index_episodes(
    earlier: EarlierRun, wanted: Collection[str]
) -> Mapping[str, Mapping[EpisodeKey, _EarlierEpisode]]:
    """Return the earlier run's episodes of some scenarios, with their hashes."""
    found: dict[str, dict[EpisodeKey, _EarlierEpisode]] = defaultdict(dict)
    for record in earlier.episodes:
        if record.scenario_id in wanted and record.key in earlier.lines:
            key = record.key
            line = decompress_line(earlier.lines[key])
            found[record.scenario_id][key] = _EarlierEpisode(record, hash_content(line))
    return found
