"""Check that a run's files agree and that they prove anything. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.contract.findings import Finding, SourceFile
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
    last = {key[:3]: record for key, record in sorted(own, key=_get_key)}
    return not any(map(_has_failed, last.values()))


def _get_key(item: tuple[tuple[str, str, int, int], object]) -> tuple[str, str, int, int]:
    return item[0]


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
