"""Merge the shards of a split; find missing, repeated and foreign shards. Pure."""

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
from ci_agent_eval.contract.results import (
    JUNIT_NAME,
    RESULTS_NAME,
    SESSION_NAME,
    Session,
    Shard,
)
from ci_agent_eval.results.runs import LoadedRun


def find_current_attempts(runs: Mapping[int, LoadedRun]) -> set[int]:
    """Return the numbers of the runs to read: only the last attempt at each shard.

    Two folders with the same attempt are both kept; they are a finding.
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
    """Yield a finding for each reason that the shards are not one complete run of the suite."""
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
    """Yield the findings of unfinished runs; shards with the same reason share one finding.

    Shards without any test are ignored.
    """
    counted = [
        run for run in runs.values() if not (is_shard(run) and _get_session(run).selected == 0)
    ]
    found = [run.incomplete for run in counted if run.incomplete is not None]
    is_of_all = len(found) == len(counted) and all(map(is_shard, counted))
    if is_of_all and len({(one.reason, one.advice) for one in found}) == 1:
        ended, selected = sum(one.ended for one in found), sum(one.selected or 0 for one in found)
        started = sum(one.started for one in found)
        merged = replace(
            found[0],
            where=SESSION_NAME,
            ended=ended,
            selected=selected,
            started=started,
            unafforded=tuple(sorted({name for one in found for name in one.unafforded})),
        )
        yield merged.finding
        return
    for run in runs.values():
        if run.incomplete is not None:
            yield run.incomplete.finding


def unify_session_names(
    findings: Iterable[Finding], runs: Mapping[int, LoadedRun]
) -> Iterator[Finding]:
    """Yield the findings with the default session name if all shards have the same finding.

    The findings of a single run get that name, too. Findings of only some shards, and of files
    that cannot be read, keep their location.
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
    """Return whether a folder has no session of our plugin: another producer wrote it."""
    return run.session is None


def _find_disagreements(
    runs: Mapping[int, LoadedRun], shards: Mapping[int, Shard]
) -> Iterator[tuple[str, Iterable[int]]]:
    """Yield each disagreement of the shards, with their numbers."""
    compared: Sequence[tuple[str, Mapping[int, object]]] = (
        ("the shards are of splits of different sizes", {n: s.count for n, s in shards.items()}),
        ("the shards are of different workflow runs", {n: s.run for n, s in shards.items()}),
        ("the shards are of different suites", {n: _get_session(runs[n]).suite for n in shards}),
        ("the shards are of different commits", {n: _get_session(runs[n]).commit for n in shards}),
        (
            "the shards did not see the same tests or durations, so that the split differs",
            {n: s.plan for n, s in shards.items()},
        ),
    )
    for reason, values in compared:
        if len(set(values.values())) > 1:
            yield reason, values


def build_replaced_finding(run: LoadedRun) -> Finding:
    """Build the finding that a later attempt at a shard replaces these results."""
    message = "a later attempt at the same shard replaces these results; nothing of them counts"
    return Finding("shards", run.where, message, blocking=False)


def is_shard(run: LoadedRun) -> bool:
    """Return whether a run was a shard."""
    return run.session is not None and run.session.shard is not None


def _iterate_shards(runs: Mapping[int, LoadedRun]) -> Iterator[tuple[int, Shard]]:
    for number, run in runs.items():
        if run.session is not None and run.session.shard is not None:
            yield number, run.session.shard


def _get_session(run: LoadedRun) -> Session:
    assert run.session is not None, "a shard has a session"  # noqa: S101 - see _iterate_shards
    return run.session


def merge_sessions(sessions: Sequence[Session]) -> tuple[Session, ...]:
    """Merge the sessions of shards into one; every shard deselects the same tests."""
    shards = [session for session in sessions if session.shard is not None]
    if not shards:
        return tuple(sessions)
    merged = shards[0].model_copy(
        update={
            "shard": None,
            "selected": sum(session.selected or 0 for session in shards),
            "deselected": max(session.deselected for session in shards),
            "wall_time_s": _find_max_wall_time(shards),
        }
    )
    return (merged, *(session for session in sessions if session.shard is None))


def _find_max_wall_time(sessions: Iterable[Session]) -> float | None:
    """Return the wall time of parallel runs; None if one was not measured."""
    times = [session.wall_time_s for session in sessions]
    measured = [time for time in times if time is not None]
    return max(measured) if len(measured) == len(times) else None


def merge_sources(sources: Iterable[SourceFile]) -> list[SourceFile]:
    """Merge the sources of a run, or of all its shards, under their default names.

    So the report names the same files for any split. Other sources stay unchanged.
    """
    merged: dict[str, SourceFile] = {}
    others: list[SourceFile] = []
    for source in sources:
        name = source.path.rpartition("/")[2]
        if name in (RESULTS_NAME, JUNIT_NAME):
            merged[name] = (
                _add_sources(merged[name], source)
                if name in merged
                else _rename_source(source, name)
            )
        else:
            others.append(source)
    return [*merged.values(), *others]


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
