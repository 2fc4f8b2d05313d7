"""Check that the files of runs and shards agree, are whole, and prove anything. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

from ci_agent_eval.analysis.loaded_results import EpisodeRecord
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

_MAX_SHARED = 20
_MAX_TESTS = 3
_MAX_SUITE_NAME = 64
"""Maximum number of characters shown of a suite's name, which results choose freely."""


def describe_other_suite(found: str, wanted: str) -> str:
    """Return the sentence that results belong to suite `found` instead of suite `wanted`."""
    return f"its results are of suite {_quote_suite(found)}, this is suite {_quote_suite(wanted)}"


def _quote_suite(suite: str) -> str:
    return repr(suite[:_MAX_SUITE_NAME])


def _check_junit_of_runs(
    runs: Iterable[LoadedRun], junit: Mapping[Path, SourceFile], holds: Callable[[SourceFile], bool]
) -> Iterator[tuple[LoadedRun, bool]]:
    """Yield each run with the result of a predicate on its JUnit file.

    For a run without a JUnit file, JUnit files that belong to no run are checked instead.
    """
    runs = list(runs)
    owned = {run.junit for run in runs}
    elsewhere = any(holds(source) for path, source in junit.items() if path not in owned)
    for run in runs:
        own = junit.get(run.junit) if run.junit is not None else None
        yield run, elsewhere if own is None else holds(own)


def find_unexplained_failures(
    runs: Iterable[LoadedRun], junit: Mapping[Path, SourceFile]
) -> Iterable[Finding]:
    """Yield a finding for each run that ended with status 1 without any failure."""
    for run, explained in _check_junit_of_runs(runs, junit, _is_bad):
        if not explained and _has_unexplained_status(run):
            advice = (
                "something besides the tests failed it, its output says what"
                if run.junit in junit
                else "write junit.xml beside them (--junit-xml) and run again"
            )
            message = f"pytest ended with status 1, but nothing in these results failed; {advice}"
            yield Finding("disagreement", run.where, message)


def _has_unexplained_status(run: LoadedRun) -> bool:
    session = run.session
    if session is None or session.state != "finished" or session.exit_status != 1:
        return False
    if session.collection_errors:
        return False
    own = ((key, entry.record) for key, entry in run.entries.items())
    last = {key[:3]: record for key, record in sorted(own, key=itemgetter(0))}
    return not any(map(_has_failed, last.values()))


def _has_failed(record: EpisodeRecord) -> bool:
    if record.evaluation is not None:
        return record.outcome == "error"  # a failed evaluation does not fail its test
    return record.outcome in {"failed", "error"} or any(v.hard for v in record.violations)


def _is_bad(source: SourceFile) -> bool:
    return bool(source.failures or source.errors)


def find_shared_scenarios(episodes: Iterable[EpisodeRecord]) -> list[Finding]:
    """List the scenarios that several test functions run; parametrizations are iterations."""
    tests: dict[tuple[str, str], set[str]] = defaultdict(set)
    for record in episodes:
        if record.nodeid is not None:
            # The same scenario of two agents is kept separate, whatever tests run it.
            tests[record.scenario_id, record.agent or ""].add(_strip_parameters(record.nodeid))
    shared = sorted((name, sorted(found)) for (name, _), found in tests.items() if len(found) > 1)
    findings = [
        _build_shared_finding(scenario, functions) for scenario, functions in shared[:_MAX_SHARED]
    ]
    if len(shared) > _MAX_SHARED:
        more = f"and {len(shared) - _MAX_SHARED} more scenarios of several tests"
        findings.append(Finding("shared_scenario", "", more, blocking=False))
    return findings


def _build_shared_finding(scenario: str, functions: Sequence[str]) -> Finding:
    more = len(functions) - _MAX_TESTS
    names = ", ".join(functions[:_MAX_TESTS]) + (f" and {more} more" if more > 0 else "")
    message = (
        f"scenario {scenario!r} is run by {len(functions)} tests ({names}); they count as its "
        "iterations; give each its own scenario_id unless that is meant"
    )
    return Finding("shared_scenario", functions[0], message, blocking=False)


def _strip_parameters(nodeid: str) -> str:
    """Return a node id without its parameters."""
    path, colons, tail = nodeid.partition("::")
    return f"{path}{colons}{tail.partition('[')[0]}"


_NO_TESTS = 5
"""pytest's exit status if it found nothing to run (its `ExitCode`)."""

_ADVICE = "check which tests it selects, or leave its files out of the report"


def find_unproven_runs(
    runs: Iterable[LoadedRun], junit: Mapping[Path, SourceFile]
) -> Iterator[Finding]:
    """Yield a finding for each finished run in which no episode and no test passed or failed."""
    for run, tests_judged in _check_junit_of_runs(runs, junit, _has_judged_tests):
        if (reason := _explain_unproven(run, tests_judged=tests_judged)) is not None:
            yield Finding("no_results", run.where, f"{reason}; {_ADVICE}")


def _explain_unproven(run: LoadedRun, *, tests_judged: bool) -> str | None:
    session = run.session
    if session is None or session.state != "finished" or session.collection_errors:
        return None  # other findings cover it
    if session.shard is not None and session.shard.empty:
        return None  # the split assigned no test to it
    if session.left_out and not run.entries:
        return None  # nothing was affected; the finding about it decides
    if session.exit_status == _NO_TESTS:
        return f"pytest found nothing to run (status {_NO_TESTS}), so this run proves nothing"
    outcomes = {entry.record.outcome for entry in run.entries.values()}
    if tests_judged or outcomes & {"passed", "failed"}:
        return None
    return "no episode and no test of this run passed or failed, so it proves nothing"


def _has_judged_tests(source: SourceFile) -> bool:
    return bool(source.passed or source.failures)


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
    others = (run for number, run in runs.items() if number not in shards)
    # A folder without a session of our plugin is another producer's.
    if any(run.session is not None for run in others):
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
        merged = found[0]._replace(
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
            first = merged.get(name)
            merged[name] = _add_sources(first, source) if first else replace(source, path=name)
        else:
            others.append(source)
    return [*merged.values(), *others]


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
