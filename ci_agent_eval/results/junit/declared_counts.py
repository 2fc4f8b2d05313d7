"""Compare the totals that a suite declares with its cases, as its producer counts. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Literal, NamedTuple

from ci_agent_eval.contract.wording import pluralize


class CaseCounts(NamedTuple):
    """Numbers of cases by outcome, and of their result elements.

    A case with a failure and an error is one errored case; some producers declare it
    under both, so either count may match a declared one.
    """

    passed: int = 0
    failed: int = 0
    error: int = 0
    skipped: int = 0
    failure_elements: int = 0
    error_elements: int = 0
    skipped_elements: int = 0
    suite_errors: int = 0
    """Errored cases that represent a suite's own result; a suite need not declare them."""
    rerun_failures: int = 0
    """Failures of attempts that were retried (`flakyFailure`, `rerunFailure`)."""
    rerun_errors: int = 0
    """Errors of attempts that were retried."""

    @property
    def cases(self) -> int:
        """Number of all cases."""
        return self.passed + self.failed + self.error + self.skipped

    def __sub__(self, other: CaseCounts) -> CaseCounts:
        return CaseCounts(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


UNWRITTEN_SKIPS = "its runner writes no case for some skipped tests"
"""TestNG declares each attempt that is retried; mocha-junit-reporter and node-tap each skip."""


class CountDifference(NamedTuple):
    """A suite's difference between declared totals and cases."""

    has_lost_results: bool
    """Whether it declares more cases or failures than it has: some did not report."""
    text: str
    missing: int = 0
    """Number of declared cases without a case, if nothing else is lost."""
    unwritten_skips: int = 0
    """Number of declared skipped tests without a case, if they explain the difference."""

    def explain(self) -> CountDifference:
        """Return the difference as one that lost no results, only skipped tests."""
        return CountDifference(has_lost_results=False, text=f"{self.text}: {UNWRITTEN_SKIPS}")


def compare_counts(
    attributes: Mapping[str, str],
    inside: CaseCounts,
    direct: CaseCounts,
    producer: Producer = "other",
) -> CountDifference | None:
    """Compare a suite's totals with its cases; None: they agree.

    Producers differ on whether a suite's totals include its inner suites, so both are accepted.
    """
    declared = {name: parse_total(attributes, name) for name in ("tests", "failures", "errors")}
    declared["skipped"] = parse_total(attributes, "skipped", "skips", "skip")
    disabled = parse_total(attributes, "disabled") or 0
    wrong = [
        name
        for name, total in declared.items()
        if total is not None
        and not any(
            total in _list_acceptable(name, c, disabled, declared) for c in (inside, direct)
        )
    ]
    if not wrong:
        return None
    found = _count_by_name(inside)
    pairs = ", ".join(f"{name} {declared[name]} (found {found[name]})" for name in wrong)
    text = f"suite {attributes.get('name', '')[:80]!r} declares {pairs}"
    if producer == "pytest" and wrong == ["tests"] and _is_all_declared(declared, inside):
        return CountDifference(has_lost_results=False, text=f"{text}: pytest counts each subtest")
    if skips := _count_unwritten_skips(declared, inside):
        return (
            CountDifference(has_lost_results=True, text=text)
            .explain()
            ._replace(unwritten_skips=skips)
        )
    missing = (declared["tests"] or 0) - inside.cases if wrong == ["tests"] else 0
    return CountDifference(_has_lost_results(wrong, declared, inside), text, max(missing, 0))


def build_node_difference(failures: int) -> CountDifference:
    """Build the difference of a node:test file that counts failures without a failed case."""
    tests = pluralize(failures, "failed test")
    return CountDifference(
        has_lost_results=True, text=f"node:test counts {tests} and wrote no failed case"
    )


def _list_acceptable(
    name: str, counts: CaseCounts, disabled: int, declared: Mapping[str, int | None]
) -> Container[int]:
    """Return the totals that a producer may declare for these counts."""
    failures, errors = _count_reruns(counts, declared)
    if name == "tests":
        cases = range(counts.cases, counts.cases + failures + errors + 1)
        return (*cases, counts.cases - counts.suite_errors)
    if name == "failures":
        found = (counts.failed, counts.failure_elements, counts.failed + counts.suite_errors)
        return (*found, counts.failure_elements + failures)
    if name == "errors":
        found = (counts.error, counts.error_elements, counts.error - counts.suite_errors)
        return (*found, counts.error_elements + errors)
    return (counts.skipped, counts.skipped_elements, counts.skipped - disabled)


def _count_reruns(counts: CaseCounts, declared: Mapping[str, int | None]) -> tuple[int, int]:
    """Return the failures and errors of retried attempts, if the suite declares exactly these.

    Surefire declares every attempt of a JUnit 4 test, but writes one case for all of them.
    """
    failures, errors = counts.rerun_failures, counts.rerun_errors
    totals = (counts.failure_elements + failures, counts.error_elements + errors)
    is_declared = totals == (declared["failures"] or 0, declared["errors"] or 0)
    return (failures, errors) if is_declared else (0, 0)


def _is_all_declared(declared: Mapping[str, int | None], inside: CaseCounts) -> bool:
    """Return whether a suite declares every total, and more tests than its cases."""
    return (
        bool(inside.cases)
        and None not in declared.values()
        and ((declared["tests"] or 0) > inside.cases)
    )


def _count_unwritten_skips(declared: Mapping[str, int | None], inside: CaseCounts) -> int:
    """Return the number of skipped tests that a suite declares and has no cases for.

    0 unless they are all that is missing: every declared failure and error has its case.
    """
    if None in (declared["tests"], declared["failures"], declared["skipped"]) or not inside.cases:
        return 0
    bad = (declared["failures"] or 0) + (declared["errors"] or 0)
    missing = (declared["skipped"] or 0) - inside.skipped
    surplus = (declared["tests"] or 0) - inside.cases
    return missing if missing == surplus and bad <= inside.failed + inside.error else 0


def _has_lost_results(
    wrong: list[str], declared: Mapping[str, int | None], inside: CaseCounts
) -> bool:
    """Return whether declared cases, failures or errors are missing."""
    bad_declared = (declared["failures"] or 0) + (declared["errors"] or 0)
    bad_found = max(inside.failed + inside.error, inside.failure_elements + inside.error_elements)
    return ("tests" in wrong and (declared["tests"] or 0) > inside.cases) or (
        not {"failures", "errors"}.isdisjoint(wrong) and bad_declared > bad_found
    )


def _count_by_name(counts: CaseCounts) -> dict[str, int]:
    return {
        "tests": counts.cases,
        "failures": counts.failed,
        "errors": counts.error,
        "skipped": counts.skipped,
    }


def parse_total(attributes: Mapping[str, str], *names: str) -> int | None:
    """Return the first of the attributes that is a plain number, or None."""
    for name in names:
        text = attributes.get(name, "").strip()
        if text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
    return None


Producer = Literal["pytest", "gotestsum", "other"]

_PYTEST_SUITES = ("pytest", "pytest tests")


def detect_producer(attributes: Mapping[str, str], outer: Producer) -> Producer:
    """Return the producer of a suite by its attributes; by default the outer suite's."""
    if attributes.get("name") in _PYTEST_SUITES:
        return "pytest"
    return outer


def is_gotestsum(root: Mapping[str, str], suite: Mapping[str, str]) -> bool:
    """Return whether gotestsum wrote a suite with the property `go.version`.

    go-junit-report may write the property too. Its version 1 declares nothing in the root,
    and its version 2 declares errors in each suite (`internal/junitxml` of gotestsum).
    """
    return "errors" in root and "errors" not in suite
