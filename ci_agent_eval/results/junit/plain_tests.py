"""Read JUnit files into plain tests, and the cases that may belong to episodes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci_agent_eval.analysis.loaded_results import (
    JUnitCase,
    OutcomeTally,
    PlainTests,
    tally_outcomes,
)
from ci_agent_eval.contract.episode import PassedOnRetry
from ci_agent_eval.contract.findings import Finding, SourceFile
from ci_agent_eval.results.file_search import ResultFile
from ci_agent_eval.results.json_text import Redact, redact_json
from ci_agent_eval.results.junit.declared_counts import CaseCounts, CountDifference
from ci_agent_eval.results.junit.failure_places import locate_failures
from ci_agent_eval.results.junit.reader import JUnitFile, read_junit
from ci_agent_eval.storage.regular_file import open_regular

MAX_DETAILS = 1000
"""Maximum number of failing cases that keep the failure text; others keep its first line."""


@dataclass(slots=True)
class JUnitTests:
    """The content of all JUnit files together."""

    __test__ = False  # pytest would take the name for a test class

    passed_on_retry: PassedOnRetry = "flaky"
    tally: OutcomeTally = field(default_factory=OutcomeTally)
    """Tally of all cases except the joined ones."""
    failing: list[JUnitCase] = field(default_factory=list)
    flaky: list[str] = field(default_factory=list)
    joined: list[JUnitCase] = field(default_factory=list)
    sources: list[SourceFile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    complete: bool = True
    """Whether every file could be read to its end."""

    def build_plain_tests(self, unclaimed: Sequence[JUnitCase], repository: Path) -> PlainTests:
        """Return the plain tests, including the joined cases that match no episode.

        The folder `repository` holds the sources that failures may name.
        """
        unclaimed = [_judge_retry(case, self.passed_on_retry) for case in unclaimed]
        failing = [*self.failing, *(case for case in unclaimed if _is_bad(case))]
        flaky = [*self.flaky, *(case.title for case in unclaimed if case.flaky)]
        tally = self.tally + tally_outcomes(case.outcome for case in unclaimed)
        failing = locate_failures(failing, repository)
        return PlainTests(tally, tuple(sorted(failing, key=_case_sort_key)), tuple(sorted(flaky)))


def read_junit_tests(
    files: Iterable[ResultFile],
    episode_addresses: Mapping[Path, Container[tuple[str, str]]],
    run_files: Container[Path] = (),
    shard_files: Container[Path] = (),
    *,
    redact: Redact = str,
    imported: Mapping[str, Sequence[JUnitCase]] | None = None,
    passed_on_retry: PassedOnRetry = "flaky",
) -> JUnitTests:
    """Read the files one after the other; memory grows with the failures, not with the files.

    `episode_addresses` are the addresses of a run's episodes, by its JUnit file: in any other
    file the same address is another test's. `run_files` are the files that pytest wrote next to
    our session. Every file in `shard_files` repeats the collection errors of the whole suite,
    which count once. `redact` removes secrets from the kept cases. `imported` are tests of
    other formats, by the name of their file.
    """
    tests = JUnitTests(passed_on_retry)
    reported: set[JUnitCase] = set()
    for file in files:
        try:
            with open_regular(file.path, follow=True) as opened:
                known = episode_addresses.get(file.path, ())
                addresses = _RedactedAddresses(known, redact) if known else ()
                is_run_file = file.path in run_files
                found = read_junit(opened, addresses, is_run_file=is_run_file)
            _redact_cases(found, redact)
            if file.path in shard_files:
                _drop_repeated_collection_cases(found, reported)
            _add_file(tests, file.where, found)
        except OSError as error:
            problem = f"it cannot be read: {error.strerror}"
            tests.findings.append(Finding("unreadable_file", file.where, problem))
            tests.sources.append(SourceFile(file.where, "junit", readable=False))
            tests.complete = False
    for where, cases in sorted((imported or {}).items()):
        _add_file(tests, where, _build_file(cases))
    return tests


class _RedactedAddresses:
    """The addresses of episodes, in which secrets were redacted already."""

    def __init__(self, addresses: Container[tuple[str, str]], redact: Redact) -> None:
        self._addresses = addresses
        self._redact = redact

    def __contains__(self, address: object) -> bool:
        return isinstance(address, tuple) and tuple(map(self._redact, address)) in self._addresses


def _redact_cases(file: JUnitFile, redact: Redact) -> None:
    """Redact the kept cases; of the failing ones beyond the limit the text is dropped before."""
    file.failing[MAX_DETAILS:] = [c._replace(detail=None) for c in file.failing[MAX_DETAILS:]]
    for cases in (file.failing, file.flaky, file.joined, file.collected):
        cases[:] = [_redact_case(case, redact) for case in cases]


def _redact_case(case: JUnitCase, redact: Redact) -> JUnitCase:
    names = ("classname", "name", "message", "detail", "file", "nodeid")
    texts = [getattr(case, name) for name in names]
    clean = redact_json(texts, redact)
    return case if clean == texts else case._replace(**dict(zip(names, clean, strict=True)))


def _build_file(cases: Sequence[JUnitCase]) -> JUnitFile:
    tally = tally_outcomes(case.outcome for case in cases)
    return JUnitFile(
        CaseCounts(tally.passed, tally.failed, tally.error, tally.skipped),
        failing=[case for case in cases if _is_bad(case)],
        flaky=[case for case in cases if case.flaky],
    )


def _drop_repeated_collection_cases(file: JUnitFile, reported: set[JUnitCase]) -> None:
    """Drop the collection cases that an earlier shard reported."""
    for case in file.collected:
        key = JUnitCase("", case.name, case.outcome)
        if key in reported:
            file.failing = [one for one in file.failing if one != case]
            one = tally_outcomes([case.outcome])
            error, skipped = file.counts.error - one.error, file.counts.skipped - one.skipped
            file.counts = file.counts._replace(error=error, skipped=skipped)
        reported.add(key)


def _judge_retry(case: JUnitCase, passed_on_retry: PassedOnRetry) -> JUnitCase:
    """Return a case with the outcome that the setting gives to a pass on a retry."""
    if not case.flaky or passed_on_retry == "flaky":
        return case
    if passed_on_retry == "passed":
        return case._replace(flaky=False)
    message = "it passed only on a retry, which counts as failed (passed_on_retry)"
    first = f"; at first: {case.message}" if case.message else ""
    return case._replace(outcome="failed", flaky=False, message=f"{message}{first}")


def _judge_retries(file: JUnitFile, passed_on_retry: PassedOnRetry) -> None:
    judged = [_judge_retry(case, passed_on_retry) for case in file.flaky]
    failed = [case for case in judged if case.outcome == "failed"]
    file.flaky = [case for case in judged if case.flaky]
    file.failing += failed
    file.counts = file.counts._replace(
        passed=file.counts.passed - len(failed), failed=file.counts.failed + len(failed)
    )


def _add_file(tests: JUnitTests, where: str, file: JUnitFile) -> None:
    _judge_retries(file, tests.passed_on_retry)
    counts, joined = file.counts, tally_outcomes(case.outcome for case in file.joined)
    tests.tally += OutcomeTally(
        counts.passed - joined.passed,
        counts.failed - joined.failed,
        counts.error - joined.error,
        counts.skipped - joined.skipped,
    )
    room = max(0, MAX_DETAILS - len(tests.failing))
    tests.failing += file.failing[:room]
    tests.failing += [case._replace(detail=None) for case in file.failing[room:]]
    tests.flaky += (case.title for case in file.flaky)
    tests.joined += file.joined
    tests.sources.append(_build_source(where, file))
    tests.findings += _build_findings(where, file)
    tests.complete = tests.complete and file.end.problem is None


def _build_source(where: str, file: JUnitFile) -> SourceFile:
    counts = file.counts
    return SourceFile(
        path=where,
        kind="junit",
        cases=counts.cases,
        passed=counts.passed,
        failures=counts.failed,
        errors=counts.error,
        skipped=counts.skipped,
        readable=file.end.problem is None,
    )


def _build_findings(where: str, file: JUnitFile) -> list[Finding]:
    findings = [
        Finding(
            "declared_counts_differ",
            where,
            _describe_difference(difference),
            difference.has_lost_results,
        )
        for difference in file.differences
    ]
    findings += [
        Finding("passed_later", where, _describe_passed_later(title), blocking=False)
        for title in file.passed_later
    ]
    if file.end.problem is not None:
        place = f"{where}:{file.end.line}" if file.end.line else where
        message = f"{file.end.problem}; {_describe_counted_cases(file.counts.cases)}write it again"
        findings.append(Finding("unreadable_file", place, message))
    if file.end.replaced:
        number = file.end.replaced
        characters = (
            "1 character that XML forbids was" if number == 1 else f"{number} characters were"
        )
        message = f"{characters} replaced by U+FFFD so that the file could be read"
        findings.append(Finding("repaired_file", where, message, blocking=False))
    return findings


def _describe_difference(difference: CountDifference) -> str:
    if difference.has_lost_results:
        return f"{difference.text}: something did not report; run its tests again"
    return f"{difference.text}; only the cases count"


def _describe_passed_later(title: str) -> str:
    return (
        f"{title} failed and passed later in this file; if that was a retry, write one case for "
        "both attempts (Gradle: reports.junitXml.mergeReruns = true)"
    )


def _describe_counted_cases(cases: int) -> str:
    if not cases:
        return ""
    return (
        "the case before that is counted; " if cases == 1 else f"{cases} cases before are counted; "
    )


def _is_bad(case: JUnitCase) -> bool:
    return case.outcome in ("failed", "error")


def _case_sort_key(case: JUnitCase) -> tuple[str, str, str, str, str, int]:
    return (
        case.title,
        case.outcome,
        case.message or "",
        case.detail or "",
        case.file or "",
        case.line or 0,
    )
