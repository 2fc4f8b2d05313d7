"""Import reports in the Common Test Report Format (https://ctrf.io), versions 0 and 1.

A test is a case, like one of a JUnit file. In a report of our own, a scenario is an episode, and
the gate is a case. `attachments`, `insights` and other data about a test are not read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.contract.episode import Outcome
from ci_agent_eval.results.importers.protocol import (
    EpisodeData,
    ImportedItem,
    ImportProblem,
    ScoreRule,
    ToolDocument,
)
from ci_agent_eval.results.importers.values import (
    as_amount,
    as_count,
    as_list,
    as_mapping,
    as_name,
    as_objects,
    as_text,
)

CTRFTest = Mapping[str, Any]

_VERSIONS = ("0", "1")
_OUTCOMES: dict[str, Outcome] = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "pending": "skipped",
}
"""Any other status, such as `other`, is an error."""

_ERRORS = ("error", "errored", "setup_failed", "teardown_failed")
"""Raw statuses of a failed test that broke."""

_TODO = "todo"
"""Raw status of jest for a test that is not written yet; its status is `other`."""

_OWN_TOOL = "agent-eval"
_GATES = ("required", "advisory")
_MAX_TEXT = 8000


class CTRFImporter:
    """Imports a report of any tool."""

    tool = "CTRF"
    score_rule: ScoreRule = "none"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the document has results with a tool, a summary and tests."""
        return {"tool", "summary", "tests"} <= as_mapping(document.get("results")).keys()

    def iterate_episodes(self, document: ToolDocument) -> Iterator[ImportedItem]:
        """Yield a case for each test, and an episode for each scenario of our own report."""
        version = as_name(document.get("specVersion", "0"))
        if version.partition(".")[0] not in _VERSIONS:
            yield ImportProblem(f"is of version {version!r}; versions 0 and 1 are read")
            return
        results = as_mapping(document["results"])
        tests = list(as_objects(results.get("tests")))
        is_own = as_mapping(results.get("tool")).get("name") == _OWN_TOOL
        seen: dict[str, int] = defaultdict(int)
        for test in tests:
            gate = next((tag for tag in as_list(test.get("tags")) if tag in _GATES), None)
            if is_own and gate is not None:
                seen[as_name(test.get("name"))] += 1
                yield _build_episode(test, gate, seen[as_name(test.get("name"))])
            else:
                yield _build_case(test)
        yield from _check_counts(as_mapping(results.get("summary")), tests)


def _build_case(test: CTRFTest) -> JUnitCase:
    outcome = _find_outcome(test)
    attempts = list(as_objects(test.get("retryAttempts")))
    failed = [attempt for attempt in attempts if attempt.get("status") != "passed"]
    was_retried = test.get("flaky") is True or bool(as_count(test.get("retries"))) or bool(failed)
    told = failed[0] if failed and outcome == "passed" else test
    detail = as_text(told.get("trace"))
    return JUnitCase(
        classname=" > ".join(_list_suites(test)),
        name=as_name(as_text(test.get("name")) or "(no name)"),
        outcome=outcome,
        message=_find_message(told, outcome),
        detail=None if detail is None else detail[:_MAX_TEXT],
        file=as_text(test.get("filePath")),
        line=as_count(test.get("line")),
        flaky=outcome == "passed" and was_retried,
    )


def _find_outcome(test: CTRFTest) -> Outcome:
    status, raw = as_name(test.get("status")), as_name(test.get("rawStatus")).lower()
    if status == "other" and raw == _TODO:
        return "skipped"
    outcome = _OUTCOMES.get(status, "error")
    return "error" if outcome == "failed" and raw in _ERRORS else outcome


def _list_suites(test: CTRFTest) -> Sequence[str]:
    """Return the suites that the test's name does not begin with; jest's reporter writes a text."""
    suite, name = test.get("suite"), as_name(test.get("name"))
    parts = suite.split(" > ") if isinstance(suite, str) else [as_name(s) for s in as_list(suite)]
    while parts and name.startswith(parts[-1]):
        parts.pop()
    return parts


def _find_message(test: CTRFTest, outcome: Outcome) -> str | None:
    """Return the message's or the trace's first line, the failed step, or an unknown status."""
    text = (as_text(test.get("message")) or as_text(test.get("trace")) or "").strip()
    if text:
        return as_name(text.splitlines()[0])
    steps = (as_name(s.get("name")) for s in as_objects(test.get("steps")) if _has_failed(s))
    failed = next(steps, None)
    if failed is not None:
        return f"the step {failed!r} failed"
    return f"its status is {as_name(test.get('status'))!r}" if outcome == "error" else None


def _has_failed(step: CTRFTest) -> bool:
    return step.get("status") == "failed"


def _build_episode(test: CTRFTest, gate: str, iteration: int) -> EpisodeData:
    """Build the episode of a scenario of our own report: its judged outcome and its sums."""
    extra = as_mapping(test.get("extra"))
    return {
        "scenario_id": as_name(as_text(test.get("name")) or "(no name)"),
        "iteration": iteration,
        "gate": gate,
        "mode": "evaluation" if "evaluation" in as_list(test.get("tags")) else "strict",
        "outcome": _find_outcome(test),
        "reason": as_text(test.get("message")),
        # Turns and checks are in the results that the report was made of.
        "evidence": "none",
        "file": as_text(test.get("filePath")),
        "line": as_count(test.get("line")),
        "cost_usd": as_amount(extra.get("costUsd")),
        "duration_ms": as_amount(extra.get("durationMs")),
    }


def _check_counts(summary: Mapping[str, Any], tests: Sequence[CTRFTest]) -> Iterator[ImportProblem]:
    """Yield a problem if the summary counts more tests, or more of a status, than there are."""
    found = Counter(as_name(test.get("status")) for test in tests)
    found["tests"] = len(tests)
    for name in ("tests", "failed", "other", "passed", "skipped", "pending"):
        declared = as_count(summary.get(name))
        if declared is not None and declared > found[name]:
            counted = "tests" if name == "tests" else f"tests that are {name}"
            yield ImportProblem(
                f"counts {declared} {counted} and holds {found[name]}; run the tests again",
                "declared_counts_differ",
            )
            return
