"""Reading the episodes of a run or of a loose file, and saying whether the run finished."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ci_agent_eval.contract.episode import Outcome
from ci_agent_eval.contract.findings import Finding, SourceFile
from ci_agent_eval.contract.problems import describe_problem
from ci_agent_eval.contract.results import Session
from ci_agent_eval.facts import EpisodeFacts, facts_of
from ci_agent_eval.results.episodes import Problem, Record, read_episodes
from ci_agent_eval.results.sources import Input, Run
from ci_agent_eval.results.spool import EpisodeKey, Place, Spool

_MOST_PROBLEMS = 20
_LARGEST_SESSION = 16 * 1024 * 1024
_STOPPED = {2: "it was interrupted", 3: "pytest had an internal error", 4: "pytest was misused"}
"""pytest's exit statuses after which not everything ran (its `ExitCode`)."""


class Entry(NamedTuple):
    """One episode that was read, and from where."""

    facts: EpisodeFacts
    source: Input
    place: Place | None
    is_over: bool
    """False for a journal's `started` line that no `ended` line followed."""


@dataclass(slots=True)
class Read:
    """What was read of one run or file."""

    entries: dict[EpisodeKey, Entry] = field(default_factory=dict)
    sources: list[SourceFile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    session: Session | None = None


def read_run(run: Run, spool: Spool | None) -> Read:
    """Read a run: `results.json` of a finished one, the journal of any other."""
    read = Read()
    if run.session is not None:
        read.session = _read_session(run.session, read)
    finished = read.session is not None and read.session.state == "finished"
    if run.results is not None and (finished or not run.journal):
        files: tuple[Input, ...] = (run.results,)
    else:
        files = run.journal
    for file in files:
        _read_file(file, read, spool, is_journal=file is not run.results)
    _judge_run(run, read)
    _count_sources(files, read)
    return read


def read_loose(file: Input, spool: Spool | None) -> Read:
    """Read an episode file that belongs to no run of ours."""
    read = Read()
    _read_file(file, read, spool, is_journal=False)
    started = sum(1 for entry in read.entries.values() if not entry.is_over)
    if started:
        message = f"{started} of its {len(read.entries)} episodes started and never ended"
        read.findings.append(Finding("interrupted", file.where, f"{message}; run the suite again"))
    _count_sources((file,), read)
    return read


def _read_session(file: Input, read: Read) -> Session | None:
    try:
        with file.path.open("rb") as opened:
            session = Session.model_validate_json(opened.read(_LARGEST_SESSION))
    except ValueError as error:  # pydantic's errors are such
        read.findings.append(_unreadable(file, describe_problem(error)[:300]))
        return None
    except OSError as error:
        read.findings.append(_unreadable(file, f"it cannot be read: {error.strerror}"))
        return None
    read.findings += [
        Finding("collection_error", failure.nodeid, failure.message)
        for failure in session.collection_errors
    ]
    return session


def _read_file(file: Input, read: Read, spool: Spool | None, *, is_journal: bool) -> None:
    problems: list[Problem] = []
    merge = functools.partial(_merge, file=file, read=read, spool=spool)
    seen: dict[str, int] = {}
    try:
        with file.path.open("rb") as opened:
            for found in read_episodes(opened, file.path.name):
                if isinstance(found, Record):
                    merge(_numbered(found, seen))
                elif not (found.cut and is_journal):
                    problems.append(found)
    except OSError as error:
        problems.append(Problem(f"it cannot be read: {error.strerror}"))
    read.findings += _problem_findings(file, problems)


def _numbered(record: Record, seen: dict[str, int]) -> Record:
    """Make the place of a repeat its iteration, where it names neither test nor iteration."""
    if not record.unnumbered:
        return record
    scenario = record.episode.scenario_id
    seen[scenario] = seen.get(scenario, 0) + 1
    episode = record.episode.model_copy(update={"iteration": seen[scenario]})
    return record._replace(episode=episode)


def _merge(record: Record, *, file: Input, read: Read, spool: Spool | None) -> None:
    """Add an episode; a line that ended it replaces the line that started it."""
    key = record.episode.key
    known = read.entries.get(key)
    is_over = record.event == "ended"
    if known is not None and known.is_over:
        if is_over:
            read.findings.append(duplicate(key, known.source.where, file.where))
        return
    place = spool.put(record.episode) if spool is not None else None
    read.entries[key] = Entry(facts_of(record.episode), file, place, is_over)


def duplicate(key: EpisodeKey, first: str, second: str) -> Finding:
    """Make the finding for an episode that is there twice."""
    scenario, nodeid, iteration, attempt = key
    name = f"episode {scenario!r} (iteration {iteration}, attempt {attempt})"
    again = "twice" if first == second else f"in {first} too, which is the one that counts"
    return Finding(
        "duplicate",
        second,
        f"{name} of {nodeid or 'no test'} is there {again}; "
        "give each shard its own tests, and remove files of older runs",
    )


def _judge_run(run: Run, read: Read) -> None:
    """Add the finding that a run did not come to its end, where it did not."""
    reason = _why_incomplete(run, read)
    if reason is None:
        return
    over = len(_iterations(read, only_over=True))
    selected = read.session.selected if read.session is not None else None
    share = f"{over} of {selected} selected" if selected is not None else str(over)
    where = (run.session or run.results or run.journal[0]).where
    message = f"{reason}: {share} episodes finished and are reported; run the suite again"
    read.findings.append(Finding("interrupted", where, message))


def _why_incomplete(run: Run, read: Read) -> str | None:
    session = read.session
    if session is None:
        return "the run did not get as far as its results" if run.journal else None
    if session.state != "finished":
        return "the run was interrupted"
    if run.results is None and run.journal:
        return "the run left no results.json"
    if session.exit_status in _STOPPED and not session.collection_errors:
        return f"the run did not end well ({_STOPPED[session.exit_status]})"
    if session.selected is not None and len(_iterations(read)) < session.selected:
        return "episodes are missing"
    return None


def _iterations(read: Read, *, only_over: bool = False) -> set[tuple[str, str, int]]:
    return {key[:3] for key, entry in read.entries.items() if entry.is_over or not only_over}


def _problem_findings(file: Input, problems: Iterable[Problem]) -> list[Finding]:
    listed = list(problems)
    findings = [_unreadable(file, problem.message, problem.line) for problem in listed]
    if len(findings) <= _MOST_PROBLEMS:
        return findings
    more = f"and {len(findings) - _MOST_PROBLEMS} more episodes that cannot be read"
    return [*findings[:_MOST_PROBLEMS], _unreadable(file, more)]


def _unreadable(file: Input, message: str, line: int = 0) -> Finding:
    where = f"{file.where}:{line}" if line else file.where
    return Finding("unreadable_file", where, message)


def _count_sources(files: Iterable[Input], read: Read) -> None:
    """Count each file's episodes by outcome."""
    unread = {finding.where for finding in read.findings if finding.kind == "unreadable_file"}
    outcomes: dict[str, list[Outcome]] = {file.where: [] for file in files}
    for entry in read.entries.values():
        outcomes[entry.source.where].append(entry.facts.outcome)
    for where, found in outcomes.items():
        is_bad = any(place == where or place.startswith(f"{where}:") for place in unread)
        read.sources.append(
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
