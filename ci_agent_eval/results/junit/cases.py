"""A case of JUnit XML of any producer: its element, its outcome and its message.

The only module that imports junitparser, which finds the results in an element.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree as ET  # builds elements, never parses

import junitparser
from junitparser import xunit2

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.contract.episode import Outcome
from ci_agent_eval.results.junit.failure_places import find_message, remove_ansi

NODEID_PROPERTY = "agent_eval.nodeid"
"""The property in which our pytest plugin leaves the node id of a case."""

RESULT_TAGS = tuple(xunit2.TestCase.ITER_TYPES.keys() - {"system-out", "system-err"})
_WORST_FIRST: tuple[tuple[type[junitparser.junitparser.FinalResult], Outcome], ...] = (
    (junitparser.Error, "error"),
    (junitparser.Failure, "failed"),
    (junitparser.Skipped, "skipped"),
)
_RERUNS: dict[type, Outcome] = {xunit2.RerunFailure: "failed", xunit2.RerunError: "error"}
_FLAKY = (xunit2.FlakyFailure, xunit2.FlakyError)
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


class CaseBuilder:
    """Builds the element of a case from its results and properties.

    Nested results become children of the case, where junitparser finds them. Captured output is
    not kept; texts and numbers of children are bounded.
    """

    def __init__(self, attributes: dict[str, str]) -> None:
        self.element = ET.Element("testcase", attributes)
        self.depth = 0
        self.seen: dict[str, int] = {}
        self._properties: ET.Element | None = None
        self._open: ET.Element | None = None
        self._open_depth = 0
        self._texts: list[str] = []
        self._length = 0

    def start(self, tag: str, attributes: dict[str, str]) -> bool:
        """Open a child; return whether its text is needed."""
        self.depth += 1
        if tag in RESULT_TAGS and self._is_room_for(tag):
            self._close_text()
            self._open = ET.SubElement(self.element, tag, attributes)
            self._open_depth = self.depth
        elif tag == "property" and self._is_room_for(tag):
            if self._properties is None:
                self._properties = ET.SubElement(self.element, "properties")
            ET.SubElement(self._properties, "property", attributes)
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
            self._close_text()
        self.depth -= 1

    def _is_room_for(self, tag: str) -> bool:
        self.seen[tag] = self.seen.get(tag, 0) + 1
        return self.seen[tag] <= _MAX_CHILDREN

    def _close_text(self) -> None:
        if self._open is not None:
            self._open.text = "".join(self._texts) or None
        self._open = None
        self._texts = []
        self._length = 0


def interpret_case(element: ET.Element, *, zero_based: bool) -> JUnitCase:
    """Interpret a case with children: its worst result is its outcome."""
    case = xunit2.TestCase.fromelem(element)  # type: ignore[no-untyped-call]
    results = case.result
    attributes = element.attrib
    nodeid = next((p.value for p in case.properties() if p.name == NODEID_PROPERTY), None)
    if not results:
        return _interpret_interim_results(case, attributes, nodeid, zero_based=zero_based)
    outcome, worst = next(
        (outcome, result)
        for kind, outcome in _WORST_FIRST
        for result in results
        if isinstance(result, kind)
    )
    if outcome == "failed" and (todo := next(filter(_may_fail, results), None)) is not None:
        outcome, worst = "skipped", todo
    if outcome == "skipped" and _did_not_run_in_ctest(attributes, worst.message):
        outcome = "error"
    return build_case(attributes, outcome, worst, nodeid, zero_based=zero_based)


def _may_fail(result: junitparser.junitparser.Result) -> bool:
    return isinstance(result, junitparser.Skipped) and (
        result.type == _TODO or result.message == _CATCH2_MAY_FAIL
    )


def _did_not_run_in_ctest(attributes: Mapping[str, str], message: str | None) -> bool:
    """Return whether CTest could not run a test. GoogleTest has a `result`, too."""
    return (
        attributes.get("status") == "notrun"
        and "result" not in attributes
        and bool(message)
        and _CTEST_SKIP.match(message or "") is None
    )


def _interpret_interim_results(
    case: xunit2.TestCase, attributes: Mapping[str, str], nodeid: str | None, *, zero_based: bool
) -> JUnitCase:
    """Interpret a case without a final result by its reruns and attributes.

    Surefire writes reruns of a case that never passed as `rerun…`, and reruns of a case that
    finally passed as `flaky…`.
    """
    stated = parse_status_attributes(attributes)
    interim = case.interim_result
    reruns = [result for result in interim if type(result) in _RERUNS]
    finally_passed = stated.is_stated or any(isinstance(result, _FLAKY) for result in interim)
    if stated.outcome == "passed" and reruns and not finally_passed:
        worst = max(reruns, key=lambda result: SEVERITY[_RERUNS[type(result)]])
        outcome = _RERUNS[type(worst)]
        return build_case(attributes, outcome, worst, nodeid, zero_based=zero_based)
    flaky = stated.outcome == "passed" and bool(interim)
    first = interim[0] if flaky else None
    found = build_case(
        attributes, stated.outcome, first, nodeid, flaky=flaky, zero_based=zero_based
    )
    return found if stated.message is None else found._replace(message=stated.message)


def build_case(
    attributes: Mapping[str, str],
    outcome: Outcome,
    result: junitparser.junitparser.Result | None = None,
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
