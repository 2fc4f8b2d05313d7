"""What each run proves: a run in which nothing was judged hides behind no other run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ci_agent_eval.contract.findings import Finding, SourceFile
from ci_agent_eval.results.runs import Read

_NO_TESTS = 5
"""pytest's exit status where it found nothing to run (its `ExitCode`)."""

_ADVICE = "check which tests it selects, or leave its files out of the report"


def unproven_runs(runs: Iterable[Read], junit: Mapping[Path, SourceFile]) -> Iterator[Finding]:
    """List the finished runs in which no episode and no test passed or failed.

    The tests of a run without a JUnit file of its own are looked for in those that belong
    to no run.
    """
    runs = list(runs)
    owned = {read.junit for read in runs}
    elsewhere = any(_judged(source) for path, source in junit.items() if path not in owned)
    for read in runs:
        own = junit.get(read.junit) if read.junit is not None else None
        tests_judged = _judged(own) if own is not None else elsewhere
        if (reason := _why_unproven(read, tests_judged=tests_judged)) is not None:
            yield Finding("no_results", read.where, f"{reason}; {_ADVICE}")


def _why_unproven(read: Read, *, tests_judged: bool) -> str | None:
    session = read.session
    if session is None or session.state != "finished" or session.collection_errors:
        return None  # said elsewhere, where it needs saying
    if session.shard is not None and session.shard.empty:
        return None  # the split had nothing left for it
    if session.exit_status == _NO_TESTS:
        return f"pytest found nothing to run (status {_NO_TESTS}), so this run proves nothing"
    outcomes = {entry.facts.outcome for entry in read.entries.values()}
    if tests_judged or outcomes & {"passed", "failed"}:
        return None
    return "no episode and no test of this run passed or failed, so it proves nothing"


def _judged(source: SourceFile) -> bool:
    return bool(source.passed or source.failures)
