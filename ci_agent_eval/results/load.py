"""Load result files by patterns, in an order that does not depend on the file system."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from ci_agent_eval.analysis.loaded_results import (
    ConfirmationRuns,
    EpisodeRecord,
    JUnitCase,
    LoadedResults,
    PlainTests,
)
from ci_agent_eval.contract.episode import PassedOnRetry
from ci_agent_eval.contract.findings import Finding, SourceFile
from ci_agent_eval.contract.results import UNNAMED_SUITE, Session
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.consistency import (
    build_replaced_finding,
    check_shards,
    find_current_attempts,
    find_shared_scenarios,
    find_unexplained_failures,
    find_unproven_runs,
    is_shard,
    list_incomplete_runs,
    merge_sessions,
    merge_sources,
    unify_session_names,
)
from ci_agent_eval.results.episodes import ReadingRules
from ci_agent_eval.results.file_search import ResultFile, RunFolder, find_result_files
from ci_agent_eval.results.join import build_pytest_address, join_cases
from ci_agent_eval.results.json_text import Redact, redact_json, redact_text
from ci_agent_eval.results.runs import (
    LoadedEpisode,
    LoadedRun,
    build_duplicate_finding,
    read_loose_file,
    read_run,
)
from ci_agent_eval.results.spool import EpisodeKey, EpisodeSink

if TYPE_CHECKING:
    from ci_agent_eval.contract.result_mapping import ImportPolicy

_MAX_NAMES = 10
"""Maximum number of scores that a finding names."""


def load_results(
    results: Sequence[str],
    junit: Sequence[str],
    *,
    root: Path,
    repository: Path | None = None,
    runs: Sequence[Path] = (),
    spool: EpisodeSink | None = None,
    redact: Redact | None = None,
    passed_on_retry: PassedOnRetry = "flaky",
    imports: ImportPolicy | None = None,
) -> LoadedResults:
    """Load every file that matches the patterns, relative to `root`.

    Each of `runs` is the folder of a run that has just finished, with its JUnit file; no
    folder below it is read. `repository` holds the sources, if it is not `root`.

    Problems with files are findings. Raises InputError only for invalid patterns. With a
    spool, the merged episodes can be written again; `redact` removes secrets from all that is
    read, before anything else sees it. `passed_on_retry` is the outcome of JUnit tests that
    passed on a retry, `imports` is about results of other tools.
    """
    if not results and not junit and not runs:
        raise InputError("no result files were named; give --results, --junit, or both")
    sources = find_result_files(results, junit, root, runs)
    redact = redact or str
    rules = ReadingRules(functools.partial(redact_json, redact=redact))
    if imports is not None:
        rules.thresholds, rules.mappings = imports.thresholds, imports.mappings
    loading = _ResultsLoader(rules, redact, passed_on_retry, repository or root)
    loading.findings += sources.findings
    replaced = loading.add_runs(sources.runs, [read_run(run, spool, rules) for run in sources.runs])
    loading.is_part = bool(runs)
    if not loading.is_part:
        loading.findings += check_shards(loading.runs)
    junit_files = [file for file in sources.junit if file.path not in replaced]
    for number, file in enumerate(sources.episodes, len(sources.runs)):
        loading.add(read_loose_file(file, spool, rules), number)
    loading.findings += _find_unused_thresholds(rules)
    loading.add_junit(junit_files, with_json=bool(results or runs))
    if spool is not None:
        loading.keep_in(spool)
    return loading.build_results()


@dataclass(slots=True)
class _ResultsLoader:
    """Collects the files read so far."""

    rules: ReadingRules
    redact: Redact
    passed_on_retry: PassedOnRetry
    repository: Path
    entries: dict[EpisodeKey, tuple[int, LoadedEpisode]] = field(default_factory=dict)
    runs: dict[int, LoadedRun] = field(default_factory=dict)
    """The runs of our plugin, by number."""
    is_part: bool = False
    """Whether this is one run that has just finished, which may be a shard."""
    imported_tests: dict[str, list[JUnitCase]] = field(default_factory=dict)
    """Tests in files of other formats than JUnit XML, by file."""
    junit_of: dict[int, Path] = field(default_factory=dict)
    """JUnit file of each run, if it has one."""
    tests: PlainTests = field(default_factory=PlainTests)
    sessions: list[Session] = field(default_factory=list)
    sources: list[SourceFile] = field(default_factory=list)
    suites: set[str] = field(default_factory=set)
    confirmations: list[ConfirmationRuns] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add_runs(self, runs: Sequence[RunFolder], reads: Sequence[LoadedRun]) -> set[Path]:
        """Add our plugin's runs; return the JUnit files of runs that a later attempt replaces."""
        current = find_current_attempts(dict(enumerate(reads)))
        replaced = set()
        for number, (run, loaded) in enumerate(zip(runs, reads, strict=True)):
            if number in current:
                self._add_run(run, loaded, number)
            else:
                self.findings.append(build_replaced_finding(loaded))
                replaced |= {run.junit_path} if run.junit_path is not None else set()
        return replaced

    def _add_run(self, run: RunFolder, loaded: LoadedRun, number: int) -> None:
        self.runs[number] = loaded
        if run.junit_path is not None:
            self.junit_of[number] = run.junit_path
        self.add(loaded, number)
        if run.confirmation is not None:
            self._add_confirmation(run.confirmation, run.results, loaded)

    def _add_confirmation(
        self, file: ResultFile, results: ResultFile | None, loaded: LoadedRun
    ) -> None:
        """Add a run's confirmation; one that does not count is a finding."""
        from ci_agent_eval.results.confirmation import read_confirmation  # noqa: PLC0415 - rare

        path = None if results is None else results.path
        found = read_confirmation(file.path, path, loaded.session, self.rules)
        if isinstance(found, str):
            message = f"it confirms nothing and excuses nothing: {found}"
            self.findings.append(Finding("confirmation", file.where, message, blocking=False))
        else:
            self.confirmations.append(found)

    def add(self, loaded: LoadedRun, run: int) -> None:
        """Add a run or file; an episode that was already added is a finding."""
        for key, entry in loaded.entries.items():
            if key in self.entries:
                first = self.entries[key][1].source.where
                self.findings.append(build_duplicate_finding(key, first, entry.source.where))
            else:
                self.entries[key] = (run, entry)
        self.sources += loaded.sources
        self.suites |= loaded.suites - {UNNAMED_SUITE}
        self.findings += loaded.findings
        self.imported_tests |= loaded.tests
        if loaded.session is not None:
            self.sessions.append(loaded.session)

    def add_junit(self, files: Sequence[ResultFile], *, with_json: bool) -> None:
        """Read JUnit files and join their cases to the episodes.

        Disagreements are findings only if JSON files were requested.
        """
        if not files and not self.imported_tests:
            self._judge_runs({})
            return
        # The reader of XML is not worth its start-up time to other files.
        from ci_agent_eval.results.junit.plain_tests import read_junit_tests  # noqa: PLC0415 - see above

        run_files = {loaded.junit for loaded in self.runs.values() if loaded.junit is not None}
        shards = [loaded.junit for loaded in self.runs.values() if is_shard(loaded)]
        shard_files = {path for path in shards if path is not None}
        tests = read_junit_tests(
            files,
            self._collect_addresses(),
            run_files,
            shard_files,
            redact=self.redact,
            imported=self.imported_tests,
            passed_on_retry=self.passed_on_retry,
        )
        cut_short = {number for number, loaded in self.runs.items() if loaded.was_cut_short}
        episodes = self.list_episodes()
        joined = join_cases(episodes, tests.joined, complete=tests.complete, cut_short=cut_short)
        self._note_exceptions(joined.raised)
        by_path = {file.path: source for file, source in zip(files, tests.sources, strict=False)}
        self._judge_runs(by_path)
        self.tests = tests.build_plain_tests(joined.plain, self.repository)
        self.sources += tests.sources
        self.findings += (*tests.findings, *(joined.findings if with_json else ()))

    def _note_exceptions(self, failing: Container[str | None]) -> None:
        """Note the failed evaluations that ended in an exception too."""
        for key, (run, entry) in self.entries.items():
            record = entry.record
            if record.evaluation and record.failed_assertions and record.nodeid in failing:
                raised = record._replace(raised=True)
                self.entries[key] = run, entry._replace(record=raised)

    def _judge_runs(self, junit: Mapping[Path, SourceFile]) -> None:
        """Check each run against its JUnit file, once all files are read."""
        self.findings += find_unexplained_failures(self.runs.values(), junit)
        if self.entries or any(source.cases for source in junit.values()):
            self.findings += find_unproven_runs(self.runs.values(), junit)

    def _collect_addresses(self) -> dict[Path, set[tuple[str, str]]]:
        """Return the addresses of episodes' cases, by the JUnit file of their run."""
        addresses: dict[Path, set[tuple[str, str]]] = {p: set() for p in self.junit_of.values()}
        for (_, nodeid, _, _), (run, _) in self.entries.items():
            if nodeid and run in self.junit_of:
                addresses[self.junit_of[run]].add(build_pytest_address(nodeid))
        return addresses

    def list_episodes(self) -> list[tuple[int, EpisodeRecord]]:
        """Return every episode with the number of its run, by key."""
        return [
            (run, entry.record)
            for _, (run, entry) in sorted(self.entries.items(), key=itemgetter(0))
        ]

    def keep_in(self, spool: EpisodeSink) -> None:
        """Mark the lines in the spool that count."""
        for key, (_, entry) in self.entries.items():
            if entry.position is not None:
                spool.keep(key, entry.position)

    def build_results(self) -> LoadedResults:
        """Build the sorted results; no results at all are a finding."""
        if not self.entries and not any(source.cases for source in self.sources):
            is_meant = self._is_empty_shard() or any(one.left_out for one in self.sessions)
            self.findings += [] if is_meant else [_build_nothing_finding(self.sources)]
        self.findings += find_shared_scenarios(entry.record for _, entry in self.entries.values())
        self.findings += list_incomplete_runs(self.runs)
        return LoadedResults(
            episodes=tuple(record for _, record in self.list_episodes()),
            tests=self.tests,
            sessions=tuple(self.sessions) if self.is_part else merge_sessions(self.sessions),
            sources=tuple(sorted(map(self._redact_source, self._merge_sources()))),
            findings=self._list_findings(),
            suites=tuple(sorted(self.suites)),
            confirmation=next(iter(self.confirmations), None) if len(self.runs) == 1 else None,
        )

    def _list_findings(self) -> tuple[Finding, ...]:
        """Return the findings without secrets in their places and messages."""
        named = unify_session_names(self.findings, self.runs)
        return tuple(sorted({self._redact_finding(finding) for finding in named}))

    def _redact_finding(self, finding: Finding) -> Finding:
        where, message = finding.where, finding.message
        message = redact_text(message, self.redact) if isinstance(message, str) else message
        return replace(finding, where=redact_text(where, self.redact), message=message)

    def _redact_source(self, source: SourceFile) -> SourceFile:
        return replace(source, path=redact_text(source.path, self.redact))

    def _is_empty_shard(self) -> bool:
        """Return whether the only run is a shard without any test."""
        shards = [session.shard for session in self.sessions]
        return self.is_part and len(shards) == 1 and shards[0] is not None and shards[0].empty

    def _merge_sources(self) -> Sequence[SourceFile]:
        """Return the sources, with default names for one run or all its shards."""
        shards = [loaded for loaded in self.runs.values() if is_shard(loaded)]
        if len(self.runs) > 1 and len(shards) < len(self.runs):
            return self.sources
        return merge_sources(self.sources)


def _find_unused_thresholds(rules: ReadingRules) -> Iterator[Finding]:
    """Yield a finding for each threshold that judged no score of other tools' results."""
    if rules.files and rules.thresholds:
        from ci_agent_eval.contract.result_mapping import ANY_SCORE  # noqa: PLC0415 - rarely needed

        known = ", ".join(map(repr, sorted(rules.score_names)[:_MAX_NAMES])) or "none"
        for name in sorted(rules.thresholds.keys() - rules.score_names - {ANY_SCORE}):
            message = (
                f"no result has the score {name!r} of this threshold (found: {known}); correct "
                "its name, or run the evaluation again if the score is missing"
            )
            yield Finding("no_results", "score_thresholds", message)


def _build_nothing_finding(sources: Sequence[SourceFile]) -> Finding:
    files = f"{len(sources)} file{'s' if len(sources) != 1 else ''} read"
    return Finding(
        "no_results",
        "",
        f"no episode and no test case was found ({files}); nothing is proven, "
        "check that the suite ran and where it writes",
    )
