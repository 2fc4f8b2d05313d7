"""Read the episodes of a run or of a loose file, and check whether the run finished."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ci_agent_eval.analysis.loaded_results import EpisodeRecord, JUnitCase, build_episode_record
from ci_agent_eval.contract.base import describe_validation_error
from ci_agent_eval.contract.episode import Outcome
from ci_agent_eval.contract.findings import Finding, SourceFile, StoppedRun, SuiteStop
from ci_agent_eval.contract.results import JUNIT_NAME, Session
from ci_agent_eval.redaction import REDACTED
from ci_agent_eval.results.episodes import (
    INCOMPLETE,
    ParsedEpisode,
    ReadingRules,
    read_result_file,
)
from ci_agent_eval.results.file_search import ResultFile, RunFolder
from ci_agent_eval.results.json_text import ReadProblem, parse_json
from ci_agent_eval.results.spool import EpisodeKey, EpisodeSink, SpoolPosition
from ci_agent_eval.storage.regular_file import open_regular

_MAX_PROBLEMS = 20
_MAX_SESSION_BYTES = 16 * 1024 * 1024
_INTERRUPTED = 2
_STOPPED = {
    _INTERRUPTED: "it was interrupted",
    3: "pytest had an internal error",
    4: "pytest was misused",
}
"""Exit statuses of pytest after which tests are missing (its `ExitCode`)."""
_ORDINARY = (0, 1, 5)
"""Exit statuses that other findings cover: all passed, some failed, nothing to run."""
_UNKNOWN_STATUS = Finding(
    "interrupted",
    "pytest",
    "how pytest's process ended is not known: what ran it was ended before; run the suite again",
)


class LoadedEpisode(NamedTuple):
    """An episode that was read, with its file."""

    record: EpisodeRecord
    source: ResultFile
    position: SpoolPosition | None
    is_over: bool
    """False for a `started` line of a journal without an `ended` line."""


class IncompleteRun(NamedTuple):
    """A run that did not finish."""

    where: str
    reason: str
    ended: int
    """Number of episodes that ended."""
    selected: int | None
    """Number of selected episodes; None: the run ended before it was known."""
    advice: str
    started: int = 0
    """Number of episodes that started, whether or not they ended."""
    stop: SuiteStop | None = None
    """The suite budget that stopped the run, if one did."""
    unafforded: tuple[str, ...] = ()
    """Required scenarios with iterations that did not run."""

    @property
    def finding(self) -> Finding:
        """The finding for the run."""
        if self.stop is not None:
            left_out = max((self.selected or 0) - self.started, 0)
            data = StoppedRun(self.stop, self.selected, left_out, self.unafforded)
            return Finding("stopped", self.where, data)
        share = str(self.ended) if self.selected is None else f"{self.ended} of {self.selected}"
        selected = "" if self.selected is None else " selected"
        message = f"{share}{selected} episodes finished and are reported"
        return Finding("interrupted", self.where, f"{self.reason}: {message}; {self.advice}")


@dataclass(slots=True)
class LoadedRun:
    """The content of one run or file."""

    entries: dict[EpisodeKey, LoadedEpisode] = field(default_factory=dict)
    sources: list[SourceFile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    incomplete: IncompleteRun | None = None
    session: Session | None = None
    where: str = ""
    """Name of the session's file in reports."""
    junit: Path | None = None
    """Path of the run's JUnit file, if pytest got far enough to write it."""
    suites: set[str] = field(default_factory=set)
    """Suite names in its files."""
    tests: dict[str, list[JUnitCase]] = field(default_factory=dict)
    """Tests of other runners in its files, by file."""

    @property
    def was_cut_short(self) -> bool:
        """Whether pytest stopped early, so that tests that ran may have no report."""
        session = self.session
        if session is None:
            return False
        # At a limit, xdist leaves tests without a report; pytest itself finishes the current test.
        at_limit = session.stopped is not None and session.exit_status == _INTERRUPTED
        return session.state != "finished" or at_limit


def read_run(run: RunFolder, spool: EpisodeSink | None, rules: ReadingRules) -> LoadedRun:
    """Read a run: `results.json` of a finished run, else the journal."""
    loaded = LoadedRun()
    if run.session is not None:
        loaded.where = run.session.where
        loaded.session = _read_session(run.session, loaded, rules)
        if loaded.session is not None and loaded.session.state != "running":
            loaded.junit = run.session.path.with_name(JUNIT_NAME)
    finished = loaded.session is not None and loaded.session.state == "finished"
    if run.results is not None and (finished or not run.journal):
        files: tuple[ResultFile, ...] = (run.results,)
    else:
        files = run.journal
    for file in files:
        _read_file(file, loaded, spool, rules, is_journal=file is not run.results)
    _check_completeness(run, loaded)
    if loaded.session is not None:
        loaded.findings += check_exit_status(loaded.session)
    if run.lacks_junit and loaded.session is not None and loaded.session.state == "finished":
        loaded.findings.append(_build_missing_junit(loaded.where))
    _count_sources(files, loaded)
    return loaded


def check_exit_status(session: Session) -> tuple[Finding, ...]:
    """Compare the exit status of pytest's process with its session.

    Problems that an unfinished session, collection errors or the session's status already
    report are not repeated.
    """
    exit_status = session.process_status
    if exit_status is None:
        return (_UNKNOWN_STATUS,) if session.watched and session.state == "finished" else ()
    if session.exit_status is not None and session.exit_status != exit_status:
        message = (
            f"pytest ended with status {exit_status}, but its session says "
            f"{session.exit_status}; what ran after the tests ended it otherwise: see its output"
        )
        return (Finding("disagreement", "pytest", message),)
    if exit_status in _ORDINARY or session.state != "finished":
        return ()
    if session.collection_errors or session.exit_status in _STOPPED:
        return ()
    message = f"pytest ended with status {exit_status}; its output says why, then run it again"
    return (Finding("interrupted", "pytest", message),)


def _build_missing_junit(where: str) -> Finding:
    message = (
        f"pytest finished and left no {JUNIT_NAME} beside this file, although it was asked to; "
        "remove what takes the file away from the suite's conftest.py and options"
    )
    return Finding("no_results", where, message)


def read_loose_file(file: ResultFile, spool: EpisodeSink | None, rules: ReadingRules) -> LoadedRun:
    """Read an episode file that belongs to no run of our plugin."""
    loaded = LoadedRun()
    _read_file(file, loaded, spool, rules, is_journal=False)
    started = sum(1 for entry in loaded.entries.values() if not entry.is_over)
    if started:
        message = f"{started} of its {len(loaded.entries)} episodes started and never ended"
        loaded.findings.append(
            Finding("interrupted", file.where, f"{message}; run the suite again")
        )
    _count_sources((file,), loaded)
    return loaded


def _read_session(file: ResultFile, loaded: LoadedRun, rules: ReadingRules) -> Session | None:
    try:
        with open_regular(file.path, follow=True) as opened:
            value = rules.redact(parse_json(opened.read(_MAX_SESSION_BYTES)))
        session = Session.model_validate(value)
    except ValueError as error:  # includes pydantic's errors
        loaded.findings.append(_build_unreadable(file, describe_validation_error(error)[:300]))
        return None
    except OSError as error:
        loaded.findings.append(_build_unreadable(file, f"it cannot be read: {error.strerror}"))
        return None
    loaded.findings += [
        Finding("collection_error", failure.nodeid, failure.message)
        for failure in session.collection_errors
    ]
    loaded.suites.add(session.suite)
    return session


def _read_file(
    file: ResultFile,
    loaded: LoadedRun,
    spool: EpisodeSink | None,
    rules: ReadingRules,
    *,
    is_journal: bool,
) -> None:
    problems: list[ReadProblem] = []
    merging = _EpisodeMerger(file, loaded, spool)
    try:
        with open_regular(file.path, follow=True) as opened:
            for found in read_result_file(opened, file.path, file.where, rules):
                if isinstance(found, ParsedEpisode):
                    merging.add(found)
                elif isinstance(found, JUnitCase):
                    loaded.tests.setdefault(file.where, []).append(found)
                elif not _is_reported_elsewhere(found, loaded.session, is_journal=is_journal):
                    problems.append(found)
    except OSError as error:
        problems.append(ReadProblem(f"it cannot be read: {error.strerror}"))
    loaded.findings += _build_problem_findings(file, problems)


def _is_reported_elsewhere(
    problem: ReadProblem, session: Session | None, *, is_journal: bool
) -> bool:
    """Return whether a finding of the session or of unfinished episodes covers the problem."""
    if problem != INCOMPLETE or session is None:
        return problem.cut and is_journal
    return bool(session.state != "finished" or session.stopped or session.collection_errors)


@dataclass(slots=True)
class _EpisodeMerger:
    """Adds a file's episodes to a run; an `ended` line replaces its `started` line."""

    file: ResultFile
    loaded: LoadedRun
    spool: EpisodeSink | None
    _seen: dict[str, int] = field(default_factory=dict)
    """Numbers of episodes without node id and iteration, by scenario."""

    def add(self, parsed: ParsedEpisode) -> None:
        """Add an episode."""
        parsed = self._number_repeat(parsed)
        if not self._is_counted(parsed):
            return
        episode = parsed.episode
        position = None if self.spool is None else self.spool.put(episode)
        self.loaded.entries[episode.key] = LoadedEpisode(
            build_episode_record(episode), self.file, position, parsed.event == "ended"
        )

    def _number_repeat(self, parsed: ParsedEpisode) -> ParsedEpisode:
        """Set the iteration of an episode without one to its position among its scenario's."""
        if not parsed.is_unnumbered:
            return parsed
        scenario = parsed.episode.scenario_id
        self._seen[scenario] = self._seen.get(scenario, 0) + 1
        episode = parsed.episode.model_copy(update={"iteration": self._seen[scenario]})
        return parsed._replace(episode=episode)

    def _is_counted(self, parsed: ParsedEpisode) -> bool:
        """Return whether an episode counts: only the first that ended does."""
        loaded = self.loaded
        if parsed.suite is not None:
            loaded.suites.add(parsed.suite)
        if parsed.started_key is not None:
            loaded.entries.pop(parsed.started_key, None)
        known = loaded.entries.get(parsed.episode.key)
        if known is None or not known.is_over:
            return True
        if parsed.event == "ended":
            loaded.findings.append(
                build_duplicate_finding(parsed.episode.key, known.source.where, self.file.where)
            )
        return False


def build_duplicate_finding(key: EpisodeKey, first: str, second: str) -> Finding:
    """Build the finding for a duplicate episode."""
    scenario, nodeid, iteration, attempt = key
    name = f"episode {scenario!r} (iteration {iteration}, attempt {attempt})"
    again = "twice" if first == second else f"in {first} too, which is the one that counts"
    advice = (
        "give both names that differ in more than a secret"
        if REDACTED in f"{scenario}{nodeid}"
        else "give each shard its own tests, and remove files of older runs"
    )
    return Finding(
        "duplicate",
        second,
        f"{name} of {nodeid or 'no test'} is there {again}; {advice}",
    )


def _check_completeness(run: RunFolder, loaded: LoadedRun) -> None:
    """Record that a run did not finish, if it did not."""
    reason, session = _explain_incomplete(run, loaded), loaded.session
    if reason is None:
        return
    at_limit = session is not None and _is_at_limit(session)
    loaded.incomplete = IncompleteRun(
        where=(run.session or run.results or run.journal[0]).where,
        reason=reason,
        ended=len(_collect_iterations(loaded, only_over=True)),
        selected=None if session is None else session.selected,
        advice="to judge the others, run without that limit" if at_limit else "run the suite again",
        started=len(_collect_iterations(loaded)),
        stop=session.suite_stop if session is not None and at_limit else None,
        unafforded=() if session is None else session.unafforded,
    )


def _is_at_limit(session: Session) -> bool:
    return session.state == "finished" and session.stopped is not None


def _explain_incomplete(run: RunFolder, loaded: LoadedRun) -> str | None:
    session = loaded.session
    if session is None:
        return "the run did not get as far as its results" if run.journal else None
    if session.state != "finished":
        return "the run was interrupted"
    if run.results is None:
        return "the run left no results.json"
    missing = session.selected is not None and len(_collect_iterations(loaded)) < session.selected
    if _is_at_limit(session):
        # Only episodes are counted: even if every episode ran, another test may be missing,
        # and a missing test has not passed.
        return f"pytest stopped early at a limit of its own, as with -x ({session.stopped})"
    if session.exit_status in _STOPPED and not session.collection_errors:
        return f"the run did not end well ({_STOPPED[session.exit_status]})"
    return "episodes are missing" if missing else None


def _collect_iterations(loaded: LoadedRun, *, only_over: bool = False) -> set[tuple[str, str, int]]:
    """Return the iterations that had to run, by scenario, node id and number."""
    return {
        key[:3]
        for key, entry in loaded.entries.items()
        if (entry.is_over or not only_over) and entry.record.is_rated
    }


def _build_problem_findings(file: ResultFile, problems: Iterable[ReadProblem]) -> list[Finding]:
    listed = list(problems)
    findings = [
        replace(_build_unreadable(file, problem.message, problem.line), kind=problem.kind)
        for problem in listed
    ]
    if len(findings) <= _MAX_PROBLEMS:
        return findings
    more = f"and {len(findings) - _MAX_PROBLEMS} more episodes that cannot be read"
    return [*findings[:_MAX_PROBLEMS], _build_unreadable(file, more)]


def _build_unreadable(file: ResultFile, message: str, line: int = 0) -> Finding:
    where = f"{file.where}:{line}" if line else file.where
    return Finding("unreadable_file", where, message)


def _count_sources(files: Iterable[ResultFile], loaded: LoadedRun) -> None:
    """Add the counts of each file's episodes by outcome."""
    unread = {finding.where for finding in loaded.findings if finding.kind == "unreadable_file"}
    outcomes: dict[str, list[Outcome]] = {file.where: [] for file in files}
    for entry in loaded.entries.values():
        outcomes[entry.source.where].append(entry.record.outcome)
    for where in loaded.tests:
        if not outcomes[where]:
            del outcomes[where]
    for where, found in outcomes.items():
        is_bad = any(place == where or place.startswith(f"{where}:") for place in unread)
        loaded.sources.append(
            SourceFile(
                path=where,
                kind="episodes",
                cases=len(found),
                passed=found.count("passed"),
                failures=found.count("failed"),
                errors=found.count("error"),
                skipped=found.count("skipped"),
                readable=not is_bad,
            )
        )
