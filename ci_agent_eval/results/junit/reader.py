"""Read JUnit XML of any producer: parsed as a stream by expat, interpreted by `cases`.

Most cases have no children; these need no interpretation and are only counted.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from xml.parsers import expat

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.contract.episode import Outcome
from ci_agent_eval.results.junit.cases import (
    PASSED,
    RESULT_TAGS,
    CaseBuilder,
    build_case,
    interpret_case,
    parse_status_attributes,
)
from ci_agent_eval.results.junit.declared_counts import (
    CaseCounts,
    CountDifference,
    Producer,
    build_node_difference,
    compare_counts,
    detect_producer,
    is_gotestsum,
    parse_total,
)
from ci_agent_eval.results.junit.retries import GoReruns, MergedRetries, PytestReruns
from ci_agent_eval.results.junit.sanitize import (
    NotReadableError,
    Readable,
    StreamEnd,
    parse_xml_stream,
)

_ROOTS = ("testsuites", "testsuite")
_KNOWN = frozenset((*_ROOTS, *RESULT_TAGS, "testcase", "properties", "property"))
_NODE_TOTALS = re.compile(r" (?:fail|cancelled) (\d{1,9}) ")
"""Comments at the end of node:test's file: the only trace of a failed test with subtests, because
only the subtests have cases (`lib/internal/test_runner/reporter/junit.js`)."""
_SUITE_RESULTS = ("failure", "error")
"""Results outside of cases, which some producers write if the suite itself broke."""
_COLLECTION_MESSAGES = ("collection failure", "collection skipped")
"""Messages of pytest for a file that it did not collect (`_pytest/junitxml.py`)."""
_MAX_SUITE_DEPTH = 200
_MAX_DIFFERENCES = 3


@dataclass(slots=True)
class JUnitFile:
    """The content of one file, counted from its cases."""

    counts: CaseCounts = field(default_factory=CaseCounts)
    failing: list[JUnitCase] = field(default_factory=list)
    """Plain cases that failed or errored."""
    flaky: list[JUnitCase] = field(default_factory=list)
    """Plain cases that passed only on a rerun, with the message of their first failure."""
    joined: list[JUnitCase] = field(default_factory=list)
    """Cases with a node id or an address of an episode, whatever their outcome."""
    collected: list[JUnitCase] = field(default_factory=list)
    """Cases for files that pytest could not collect or skipped as a whole."""
    passed_later: list[str] = field(default_factory=list)
    """Titles of failing cases whose test passed later in their suite, of producers that do not
    say which cases are retries; the first few."""
    differences: list[CountDifference] = field(default_factory=list)
    end: StreamEnd = field(default_factory=StreamEnd)


class SeekableFile(Readable, Protocol):
    """A binary file that can be read again."""

    def seek(self, offset: int, /) -> int:
        """Go to a byte."""
        ...


def read_junit(
    raw: SeekableFile,
    episode_addresses: Container[tuple[str, str]] = (),
    *,
    is_run_file: bool = False,
) -> JUnitFile:
    """Read one file to its end, or as far as it can be read.

    `episode_addresses` are the (classname, name) pairs that pytest writes for the episodes;
    these cases are kept for the join. `is_run_file`: pytest wrote the file next to our session.
    Its declared totals then count reports (also subtests and reruns), not cases, and its
    cases without a name are unfinished tests (`_pytest/junitxml.py`).
    """
    listener = _JUnitListener(episode_addresses, is_run_file=is_run_file)
    end = parse_xml_stream(raw, listener.attach)
    if end.problem is None and listener.may_hold_reruns:
        raw.seek(0)
        listener = _JUnitListener(episode_addresses, is_run_file=is_run_file, finds_reruns=True)
        end = parse_xml_stream(raw, listener.attach)
    listener.file.end = end
    if end.problem is None:
        listener.merged += listener.go.merge()
    listener.file.counts = CaseCounts(*listener.counts)
    _merge_retries(listener.file, listener.merged)
    return listener.file


def _merge_retries(file: JUnitFile, suites: Iterable[MergedRetries]) -> None:
    """Count each retried test once, with its final outcome."""
    dropped = set()
    for merged in suites:
        dropped |= {id(case) for case in merged.dropped}
        file.flaky += merged.flaky
        file.counts = file.counts._replace(passed=file.counts.passed - merged.passed)
    file.failing = [case for case in file.failing if id(case) not in dropped]
    file.counts = file.counts._replace(failed=file.counts.failed - len(dropped))


@dataclass(slots=True)
class _OpenSuite:
    """An open suite: its attributes, the counts at its start, and the counts of inner suites."""

    attributes: Mapping[str, str]
    before: CaseCounts
    producer: Producer
    retries: PytestReruns | GoReruns | None
    """Merges the cases of retried tests; None: the producer writes one case for each test."""
    differences_before: int
    """Number of kept differences at its start."""
    inner: list[int] = field(default_factory=lambda: [0] * len(CaseCounts._fields))
    missing: int = 0
    """Number of cases that inner suites declare and do not have."""
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    """Titles of failed cases by address, if cases of one address are not merged."""


_SLOTS: dict[Outcome, int] = {"passed": 0, "failed": 1, "error": 2, "skipped": 3}
_ELEMENT_SLOTS = {
    "failure": 4,
    "error": 5,
    "skipped": 6,
    "flakyFailure": 8,
    "rerunFailure": 8,
    "flakyError": 9,
    "rerunError": 9,
}
_SUITE_SLOT = 7


class _JUnitListener:
    """Counts cases as they end and keeps only the cases that are needed later."""

    def __init__(
        self,
        episode_addresses: Container[tuple[str, str]],
        *,
        is_run_file: bool,
        finds_reruns: bool = False,
    ) -> None:
        self.file = JUnitFile()
        self._is_run_file = is_run_file
        self._finds_reruns = finds_reruns
        self.may_hold_reruns = False
        """Whether a suite of pytest declares other totals than its cases. Few do, and finding
        reruns needs memory for every case, so only their files are read again."""
        self.counts = [0] * len(CaseCounts._fields)
        self.go = GoReruns()
        self.merged: list[MergedRetries] = []
        self._episode_addresses = episode_addresses
        self._suites: list[_OpenSuite] = []
        self._case: dict[str, str] | None = None
        self._children: CaseBuilder | None = None
        self._is_suite_result = False
        """Whether the open case represents a suite's own result."""
        self._node_failures = 0
        """Number of failed and cancelled tests in the closing comments of node:test."""
        self._parser: expat.XMLParserType

    def attach(self, parser: expat.XMLParserType) -> None:
        """Set the handlers of the parser."""
        self._parser = parser
        parser.StartElementHandler = self._handle_root
        parser.EndElementHandler = self._handle_end
        parser.CommentHandler = self._handle_comment

    def _handle_root(self, tag: str, attributes: dict[str, str]) -> None:
        if _strip_namespace(tag) not in _ROOTS:
            raise NotReadableError(
                f"its root element {tag[:40]!r} is neither 'testsuites' nor 'testsuite'"
            )
        self._parser.StartElementHandler = self._handle_start
        self._handle_start(tag, attributes)

    def _handle_start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag not in _KNOWN:
            tag = _strip_namespace(tag)
        if self._case is not None:
            self._start_in_case(tag, attributes)
        elif tag == "testcase":
            self._case = attributes
        elif tag in _ROOTS:
            self._start_suite(attributes)
        elif tag == "property" and attributes.get("name") == "go.version":
            self._start_go()
        elif tag in _SUITE_RESULTS:
            self._is_suite_result = True
            name = self._suites[-1].attributes.get("name", "")
            self._case = {"classname": name, "name": f"(suite {tag})"}
            self._start_in_case("error", attributes)

    def _start_suite(self, attributes: dict[str, str]) -> None:
        if len(self._suites) >= _MAX_SUITE_DEPTH:
            raise NotReadableError(f"its suites are nested more than {_MAX_SUITE_DEPTH} deep")
        outer = self._suites[-1].producer if self._suites else self._default_producer
        producer = detect_producer(attributes, outer)
        finds_reruns = self._finds_reruns and producer == "pytest"
        retries = PytestReruns() if finds_reruns else None
        before = CaseCounts(*self.counts)
        kept = len(self.file.differences)
        self._suites.append(_OpenSuite(attributes, before, producer, retries, kept))

    @property
    def _default_producer(self) -> Producer:
        return "pytest" if self._is_run_file else "other"

    def _start_go(self) -> None:
        """Start merging Go reruns if gotestsum wrote the open suite."""
        suite = self._suites[-1]
        if suite.retries is None and is_gotestsum(self._suites[0].attributes, suite.attributes):
            self.go.start_suite()
            suite.retries = self.go

    def _handle_comment(self, text: str) -> None:
        found = _NODE_TOTALS.fullmatch(text)
        if found is not None and len(self._suites) == 1 and self._case is None:
            self._node_failures += int(found[1])

    @property
    def _zero_based(self) -> bool:
        """Whether lines are 0-based, as in pytest's file (`_pytest/junitxml.py`)."""
        return self._suites[-1].producer == "pytest"

    def _complete_from_suite(self, case: JUnitCase) -> JUnitCase:
        """Add the suite's name and file to a case without them; pytest's cases need neither."""
        suite = self._suites[-1]
        if suite.producer == "pytest":
            return case
        name, file = suite.attributes.get("name", "").strip(), suite.attributes.get("file")
        return case._replace(classname=case.classname or name, file=case.file or file or None)

    def _start_in_case(self, tag: str, attributes: dict[str, str]) -> None:
        if self._children is None:
            self._children = CaseBuilder(self._case or {})
        wants_text = self._children.start(tag, attributes)
        self._parser.CharacterDataHandler = self._handle_text if wants_text else None

    def _handle_text(self, text: str) -> None:
        if self._children is not None:
            self._children.add_text(text)

    def _handle_end(self, tag: str) -> None:
        if tag not in _KNOWN:
            tag = _strip_namespace(tag)
        if self._case is None:
            if tag in _ROOTS:
                self._end_suite(self._suites.pop())
        elif self._children is None:
            self._end_plain(self._case)
            self._case = None
        elif self._children.depth:
            self._children.end()
            if self._is_suite_result and not self._children.depth:
                self._end_case(self._children)
        else:
            self._end_case(self._children)

    def _end_suite(self, suite: _OpenSuite) -> None:
        inside = CaseCounts(*self.counts) - suite.before
        direct = inside - CaseCounts(*suite.inner)
        declared = parse_total(suite.attributes, "tests")
        if suite.producer == "pytest" and declared not in (None, direct.cases):
            self.may_hold_reruns = True
        if isinstance(suite.retries, PytestReruns):
            merged = suite.retries.merge(declared, direct.cases)
            self.merged.append(merged)
            direct = direct._replace(passed=direct.passed - merged.passed)
        if not self._is_run_file:
            self._compare_totals(suite, inside, direct)
        if self._suites:
            outer = self._suites[-1].inner
            outer[:] = [a + b for a, b in zip(outer, inside, strict=True)]
        elif self._node_failures and not inside.failed + inside.error:
            self._keep_difference(build_node_difference(self._node_failures))

    def _compare_totals(self, suite: _OpenSuite, inside: CaseCounts, direct: CaseCounts) -> None:
        difference = compare_counts(suite.attributes, inside, direct, suite.producer)
        missing = suite.missing if difference is None else difference.missing
        if difference is not None and suite.missing <= difference.unwritten_skips:
            self._explain_inner(suite)
        if self._suites:
            self._suites[-1].missing += missing
        if difference is not None:
            self._keep_difference(difference)

    def _explain_inner(self, suite: _OpenSuite) -> None:
        """Explain the missing cases of inner suites by the outer suite's unwritten skips."""
        kept = self.file.differences
        kept[suite.differences_before :] = [
            difference.explain() if difference.missing else difference
            for difference in kept[suite.differences_before :]
        ]

    def _keep_difference(self, found: CountDifference) -> None:
        """Keep the first few of each kind, so that harmless ones never hide a lost result."""
        if (
            sum(kept.has_lost_results is found.has_lost_results for kept in self.file.differences)
            < _MAX_DIFFERENCES
        ):
            self.file.differences.append(found)

    def _end_plain(self, attributes: dict[str, str]) -> None:
        """End a case without children, as nearly all cases are."""
        if self._is_run_file and "name" not in attributes:
            return
        stated = PASSED
        if "status" in attributes or "result" in attributes:
            stated = parse_status_attributes(attributes)
        outcome = stated.outcome
        self.counts[_SLOTS[outcome]] += 1
        address = (attributes.get("classname", ""), attributes.get("name", ""))
        if outcome == "passed" and (failed := self._suites[-1].failed):
            self._note_later_pass(failed.pop(address, None))
        if outcome in ("failed", "error") or address in self._episode_addresses:
            case = build_case(attributes, outcome, zero_based=self._zero_based)
            self._keep(case._replace(message=stated.message))
        elif (retries := self._suites[-1].retries) is not None:
            retries.add(address, outcome, None)

    def _end_case(self, children: CaseBuilder) -> None:
        for tag, slot in _ELEMENT_SLOTS.items():
            self.counts[slot] += children.seen.get(tag, 0)
        case = interpret_case(children.element, zero_based=self._zero_based)
        self.counts[_SLOTS[case.outcome]] += 1
        self.counts[_SUITE_SLOT] += self._is_suite_result
        self._keep(case)
        self._case = self._children = None
        self._is_suite_result = False

    def _keep(self, case: JUnitCase) -> None:
        if self._is_run_file and not case.classname and case.message in _COLLECTION_MESSAGES:
            self.file.collected.append(case)
        if case.nodeid is not None or (case.classname, case.name) in self._episode_addresses:
            self.file.joined.append(case)
        else:
            self._keep_plain(case)

    def _keep_plain(self, case: JUnitCase) -> None:
        is_bad = case.outcome in ("failed", "error")
        if is_bad:
            case = self._complete_from_suite(case)
        suite = self._suites[-1]
        if is_bad:
            self.file.failing.append(case)
            if suite.retries is None and suite.producer == "other":
                suite.failed[case.classname, case.name] = case.title
        elif case.flaky:
            self.file.flaky.append(case)
        if suite.retries is not None:
            suite.retries.add((case.classname, case.name), case.outcome, case if is_bad else None)

    def _note_later_pass(self, title: str | None) -> None:
        if title is not None and len(self.file.passed_later) < _MAX_DIFFERENCES:
            self.file.passed_later.append(title)


def _strip_namespace(tag: str) -> str:
    """Return an element's name without its namespace prefix."""
    return tag.rpartition(":")[2]
