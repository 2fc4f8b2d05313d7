"""A case of JUnit XML of any producer: its results, its outcome and its message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.contract.episode import Outcome
from ci_agent_eval.results.junit.failure_places import find_message, remove_ansi

NODEID_PROPERTY = "agent_eval.nodeid"
"""The property in which our pytest plugin leaves the node id of a case."""

_FINAL: Mapping[str, Outcome] = {"error": "error", "failure": "failed", "skipped": "skipped"}
"""The outcomes of a case's results, the worst first."""
_RERUNS: Mapping[str, Outcome] = {"rerunFailure": "failed", "rerunError": "error"}
_FLAKY = ("flakyFailure", "flakyError")
RESULT_TAGS = (*_FINAL, *_RERUNS, *_FLAKY)
_TODO = "todo"
"""Name in node:test for a case that may fail; it counts as skipped, whatever its result."""
_CATCH2_MAY_FAIL = "TEST_CASE tagged with !mayfail"
"""Message of Catch2 for a case whose failures do not count."""
_CTEST_SKIP = re.compile(r"SKIP_RETURN_CODE=|SKIP_REGULAR_EXPRESSION_MATCHED|Disabled")
"""Messages of CTest for tests that chose to be skipped; it counts all others that did not run as
failed, such as `Unable to find executable` (`Source/CTest/cmCTestRunTest.cxx`)."""
_MAX_CHILDREN = 1000
_MAX_TEXT = 8000


SEVERITY: Mapping[Outcome, int] = {"passed": 0, "skipped": 1, "failed": 2, "error": 3}
"""Order of outcomes; the worst of several counts."""

_STATUS_OUTCOMES: dict[str, Outcome] = {
    # Some producers (GoogleTest, tst and others) write the outcome only as an attribute.
    # An unknown word makes the case an error.
    **dict.fromkeys(("run", "completed", "ok", "finished"), "passed"),
    **dict.fromkeys(("passed", "pass", "success", "successful", "succeeded"), "passed"),
    **dict.fromkeys(("skipped", "skip", "disabled", "suppressed", "notrun"), "skipped"),
    **dict.fromkeys(("notexecuted", "ignored", "ignore", "pending", "todo"), "skipped"),
    **dict.fromkeys(("failed", "failure", "fail"), "failed"),
    **dict.fromkeys(("error", "errored"), "error"),
}
_WITHOUT_SPACES = str.maketrans("", "", " -_")


class StatedOutcome(NamedTuple):
    """The outcome in the attributes `status` and `result`; the worse one if they differ."""

    outcome: Outcome = "passed"
    message: str | None = None
    """Names the word if it is unknown."""
    is_stated: bool = False
    """Whether an attribute is present."""


PASSED = StatedOutcome()


def parse_status_attributes(attributes: Mapping[str, str]) -> StatedOutcome:
    """Parse the attributes: passed if both are missing, an error for an unknown word."""
    worst = PASSED
    for name in ("status", "result"):
        stated = _parse_status_word(name, attributes.get(name, "").strip())
        if SEVERITY[stated.outcome] > SEVERITY[worst.outcome] or not worst.is_stated:
            worst = stated
    return worst


def _parse_status_word(name: str, word: str) -> StatedOutcome:
    if not word:
        return PASSED
    outcome = _STATUS_OUTCOMES.get(word.lower().translate(_WITHOUT_SPACES))
    if outcome is not None:
        return StatedOutcome(outcome, is_stated=True)
    return StatedOutcome(
        "error", f"its {name} is {word[:80]!r}, which is not a success", is_stated=True
    )


class CaseResult(NamedTuple):
    """A result element of a case."""

    tag: str
    attributes: Mapping[str, str]
    text: str | None

    @property
    def message(self) -> str | None:
        """The attribute, usually the first line of the text."""
        return self.attributes.get("message")


class CaseBuilder:
    """Collects the results and the node id of a case.

    Nested results belong to the case. Captured output is not kept; texts and numbers of results are
    bounded.
    """

    def __init__(self, attributes: Mapping[str, str]) -> None:
        self.attributes = attributes
        self.results: list[CaseResult] = []
        self.nodeid: str | None = None
        self.depth = 0
        self.seen: dict[str, int] = {}
        self._open: tuple[str, Mapping[str, str]] | None = None
        self._open_depth = 0
        self._texts: list[str] = []
        self._length = 0

    def start(self, tag: str, attributes: dict[str, str]) -> bool:
        """Open a child; return whether its text is needed."""
        self.depth += 1
        if tag in RESULT_TAGS:
            self.seen[tag] = self.seen.get(tag, 0) + 1
            if self.seen[tag] <= _MAX_CHILDREN:
                self._close_result()
                self._open = tag, attributes
                self._open_depth = self.depth
        elif tag == "property" and attributes.get("name") == NODEID_PROPERTY:
            self.nodeid = self.nodeid or attributes.get("value")
        # All text inside a result belongs to it, except captured output.
        return self._open is not None and tag not in ("system-out", "system-err")

    def add_text(self, text: str) -> None:
        """Add text to the open result, up to the limit."""
        if self._length <= _MAX_TEXT:
            self._texts.append(text[: _MAX_TEXT + 1 - self._length])
            self._length += len(text)

    def end(self) -> None:
        """Close the innermost child."""
        if self._open is not None and self.depth == self._open_depth:
            self._close_result()
        self.depth -= 1

    def _close_result(self) -> None:
        if self._open is not None:
            self.results.append(CaseResult(*self._open, "".join(self._texts) or None))
        self._open = None
        self._texts = []
        self._length = 0


def interpret_case(case: CaseBuilder, *, zero_based: bool) -> JUnitCase:
    """Interpret a case with children: its worst result is its outcome."""
    final = [result for result in case.results if result.tag in _FINAL]
    if not final:
        return _interpret_interim_results(case, zero_based=zero_based)
    worst = next(result for tag in _FINAL for result in final if result.tag == tag)
    outcome = _FINAL[worst.tag]
    if outcome == "failed" and (todo := next(filter(_may_fail, final), None)) is not None:
        outcome, worst = "skipped", todo
    if outcome == "skipped" and _did_not_run_in_ctest(case.attributes, worst.message):
        outcome = "error"
    return build_case(case.attributes, outcome, worst, case.nodeid, zero_based=zero_based)


def _may_fail(result: CaseResult) -> bool:
    return result.tag == "skipped" and (
        result.attributes.get("type") == _TODO or result.message == _CATCH2_MAY_FAIL
    )


def _did_not_run_in_ctest(attributes: Mapping[str, str], message: str | None) -> bool:
    """Return whether CTest could not run a test. GoogleTest has a `result`, too."""
    return (
        attributes.get("status") == "notrun"
        and "result" not in attributes
        and bool(message)
        and _CTEST_SKIP.match(message or "") is None
    )


def _interpret_interim_results(case: CaseBuilder, *, zero_based: bool) -> JUnitCase:
    """Interpret a case without a final result by its reruns and attributes.

    Surefire writes reruns of a case that never passed as `rerun…`, and reruns of a case that
    finally passed as `flaky…`.
    """
    attributes, interim = case.attributes, case.results
    stated = parse_status_attributes(attributes)
    reruns = [result for result in interim if result.tag in _RERUNS]
    finally_passed = stated.is_stated or any(result.tag in _FLAKY for result in interim)
    if stated.outcome == "passed" and reruns and not finally_passed:
        worst = max(reruns, key=lambda result: SEVERITY[_RERUNS[result.tag]])
        outcome = _RERUNS[worst.tag]
        return build_case(attributes, outcome, worst, case.nodeid, zero_based=zero_based)
    flaky = stated.outcome == "passed" and bool(interim)
    first = interim[0] if flaky else None
    found = build_case(
        attributes, stated.outcome, first, case.nodeid, flaky=flaky, zero_based=zero_based
    )
    return found if stated.message is None else found._replace(message=stated.message)


def build_case(
    attributes: Mapping[str, str],
    outcome: Outcome,
    result: CaseResult | None = None,
    nodeid: str | None = None,
    *,
    flaky: bool = False,
    zero_based: bool,
) -> JUnitCase:
    """Return a case with the message and the place of its result."""
    text = result.text if result is not None else None
    message = result.message if result is not None else None
    return JUnitCase(
        classname=attributes.get("classname", ""),
        name=attributes.get("name", ""),
        outcome=outcome,
        message=find_message(attributes.get("name", ""), message, text),
        detail=_cut_text(remove_ansi(text)),
        file=attributes.get("file") or None,
        line=_parse_line(attributes.get("line", ""), zero_based=zero_based),
        flaky=flaky,
        nodeid=nodeid,
    )


def _cut_text(text: str | None) -> str | None:
    if text is None or not text.strip():
        return None
    if len(text) <= _MAX_TEXT:
        return text
    return f"{text[:_MAX_TEXT]}\n… (cut after {_MAX_TEXT} characters)"


def _parse_line(text: str, *, zero_based: bool) -> int | None:
    """Parse the 1-based line of an attribute, or return None."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        return None
    return (int(text) + zero_based) or None
