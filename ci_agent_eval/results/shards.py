"""Shards: the runs of one split, put together; what is missing, doubled or foreign. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ci_agent_eval.contract.findings import (
    UPLOAD_ALL_SHARDS,
    Finding,
    MissingShards,
    RepeatedShard,
    SourceFile,
)
from ci_agent_eval.contract.results import JUNIT_NAME, RESULTS_NAME, SESSION_NAME, Session, Shard
from ci_agent_eval.results.runs import LoadedRun


def find_current_attempts(runs: Mapping[int, LoadedRun]) -> set[int]:
    """Return the numbers of the runs to read: of a shard that was run again, the last attempt.

    Two folders of the same attempt both stay: they are a finding.
    """
    latest: dict[tuple[int, int, str | None], int] = {}
    for _, shard in _iterate_shards(runs):
        key = (shard.index, shard.count, shard.run)
        latest[key] = max(latest.get(key, 0), shard.attempt)
    old = {
        number
        for number, shard in _iterate_shards(runs)
        if shard.attempt < latest[shard.index, shard.count, shard.run]
    }
    return set(runs) - old


def check_shards(runs: Mapping[int, LoadedRun]) -> Iterator[Finding]:
    """List what keeps the shards that were read from being one whole run of the suite."""
    shards = dict(_iterate_shards(runs))
    if not shards:
        return
    where = {number: runs[number].where for number in shards}
    for reason, differing in _find_disagreements(runs, shards):
        places = ", ".join(sorted({where[number] for number in differing})[:5])
        yield Finding("shards", places, f"{reason}; {UPLOAD_ALL_SHARDS}")
    count = max(shard.count for shard in shards.values())
    seen: dict[int, list[int]] = defaultdict(list)
    for number, shard in shards.items():
        seen[shard.index].append(number)
    missing = tuple(index for index in range(1, count + 1) if index not in seen)
    if missing:
        yield Finding("shards", "", MissingShards(missing, count))
    for index, numbers in sorted(seen.items()):
        if len(numbers) > 1:
            places = ", ".join(sorted(where[number] for number in numbers))
            yield Finding("shards", places, RepeatedShard(index, count, len(numbers)))
    if len(shards) < len(runs) and not all(
        _has_no_session(run) for run in _iterate_other_runs(runs, shards)
    ):
        yield Finding("shards", "", f"shards and runs that are none are mixed; {UPLOAD_ALL_SHARDS}")


def list_incomplete_runs(runs: Mapping[int, LoadedRun]) -> Iterator[Finding]:
    """List the runs that did not come to their end; of a split that did not, once for all.

    A shard for which the split left nothing has nothing to say.
    """
    told = [run for run in runs.values() if not (is_shard(run) and _get_session(run).selected == 0)]
    found = [run.incomplete for run in told if run.incomplete is not None]
    is_of_all = len(found) == len(told) and all(map(is_shard, told))
    if is_of_all and len({(one.reason, one.advice) for one in found}) == 1:
        over, selected = sum(one.over for one in found), sum(one.selected or 0 for one in found)
        begun = sum(one.begun for one in found)
        whole = replace(found[0], where=SESSION_NAME, over=over, selected=selected, begun=begun)
        yield whole.finding
        return
    for run in runs.values():
        if run.incomplete is not None:
            yield run.incomplete.finding


def unify_session_names(
    findings: Iterable[Finding], runs: Mapping[int, LoadedRun]
) -> Iterator[Finding]:
    """Name what all runs of one split say of their sessions by the one name they all have.

    So does the one run of ours. Where some say it and others do not, each keeps its place,
    and so does a file that cannot be read: it is to be found.
    """
    places = {run.where for run in runs.values() if run.where}
    found = set(findings)
    is_one = len(runs) == 1 or all(map(is_shard, runs.values()))
    for finding in found:
        everywhere = {replace(finding, where=place) for place in places}
        is_about_runs = finding.where in places and finding.kind != "unreadable_file"
        shared = is_one and is_about_runs and everywhere <= found
        yield replace(finding, where=SESSION_NAME) if shared else finding


def _iterate_other_runs(
    runs: Mapping[int, LoadedRun], shards: Mapping[int, Shard]
) -> Iterator[LoadedRun]:
    return (run for number, run in runs.items() if number not in shards)


def _has_no_session(run: LoadedRun) -> bool:
    """Say whether a folder holds no session of ours: results of another producer."""
    return run.session is None


def _find_disagreements(
    runs: Mapping[int, LoadedRun], shards: Mapping[int, Shard]
) -> Iterator[tuple[str, Iterable[int]]]:
    """Yield what the shards do not agree on, and where."""
    said: Sequence[tuple[str, Mapping[int, object]]] = (
        ("the shards are of splits of different sizes", {n: s.count for n, s in shards.items()}),
        ("the shards are of different workflow runs", {n: s.run for n, s in shards.items()}),
        ("the shards are of different suites", {n: _get_session(runs[n]).suite for n in shards}),
        ("the shards are of different commits", {n: _get_session(runs[n]).commit for n in shards}),
        (
            "the shards did not see the same tests or durations, so that the split differs",
            {n: s.plan for n, s in shards.items()},
        ),
    )
    for reason, values in said:
        if len(set(values.values())) > 1:
            yield reason, values


def build_replaced_finding(read: LoadedRun) -> Finding:
    """Say that a shard was run again, and that its first results are not counted."""
    message = "a later attempt at the same shard replaces these results; nothing of them counts"
    return Finding("shards", read.where, message, blocking=False)


def is_shard(read: LoadedRun) -> bool:
    """Say whether a run was a shard."""
    return read.session is not None and read.session.shard is not None


def _iterate_shards(runs: Mapping[int, LoadedRun]) -> Iterator[tuple[int, Shard]]:
    for number, read in runs.items():
        if read.session is not None and read.session.shard is not None:
            yield number, read.session.shard


def _get_session(read: LoadedRun) -> Session:
    assert read.session is not None, "a shard has a session"  # noqa: S101 - see _shards
    return read.session


def merge_sessions(sessions: Sequence[Session]) -> tuple[Session, ...]:
    """Return the sessions with those of shards made one: every shard leaves out the same."""
    shards = [session for session in sessions if session.shard is not None]
    if not shards:
        return tuple(sessions)
    whole = shards[0].model_copy(
        update={
            "shard": None,
            "selected": sum(session.selected or 0 for session in shards),
            "deselected": max(session.deselected for session in shards),
            "wall_time_s": _max_wall_time(shards),
        }
    )
    return (whole, *(session for session in sessions if session.shard is None))


def _max_wall_time(sessions: Iterable[Session]) -> float | None:
    """Return the wall time of runs side by side; None where one did not measure it."""
    times = [session.wall_time_s for session in sessions]
    known = [time for time in times if time is not None]
    return max(known) if len(known) == len(times) else None


def merge_sources(sources: Iterable[SourceFile]) -> list[SourceFile]:
    """Add up the files of one run of ours, or of all its shards, under the names they all have.

    However a suite was split, its report names the same files. Others stay as they are.
    """
    merged: dict[str, SourceFile] = {}
    rest: list[SourceFile] = []
    for source in sources:
        name = source.path.rpartition("/")[2]
        if name in (RESULTS_NAME, JUNIT_NAME):
            merged[name] = (
                _add_sources(merged[name], source)
                if name in merged
                else _rename_source(source, name)
            )
        else:
            rest.append(source)
    return [*merged.values(), *rest]


def _rename_source(source: SourceFile, name: str) -> SourceFile:
    return replace(source, path=name)


def _add_sources(first: SourceFile, second: SourceFile) -> SourceFile:
    return SourceFile(
        path=first.path,
        kind=first.kind,
        cases=first.cases + second.cases,
        passed=first.passed + second.passed,
        failures=first.failures + second.failures,
        errors=first.errors + second.errors,
        skipped=first.skipped + second.skipped,
        readable=first.readable and second.readable,
    )
