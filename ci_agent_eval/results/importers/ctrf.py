"""Import reports in the Common Test Report Format (https://ctrf.io), versions 0 and 1.

A test is a case, like one of a JUnit file. In a report of our own, a scenario is an episode, and
the gate is a case. `attachments`, `insights` and other data about a test are not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.contract.episode import Outcome
from ci_agent_eval.results.importers.values import (
    EpisodeData,
    ImportedItem,
    Importer,
    ImportProblem,
    Record,
    ToolDocument,
    as_name,
    check_count,
    number_repeats,
)

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


def _can_import(document: ToolDocument) -> bool:
    """Return whether the document has results with a tool, a summary and tests."""
    results = document.get("results")
    return isinstance(results, dict) and results.keys() >= {"tool", "summary", "tests"}


def _iterate_episodes(document: ToolDocument) -> Iterator[ImportedItem]:
    """Yield a case for each test, and an episode for each scenario of our own report."""
    version = as_name(document.get("specVersion", "0"))
    if version.partition(".")[0] not in _VERSIONS:
        yield ImportProblem(f"has version {version!r}; versions 0 and 1 are read")
        return
    results = Record(document["results"])
    tests = results.records("tests")
    is_own = results.get("tool.name") == _OWN_TOOL
    gates = [_find_gate(test) if is_own else None for test in tests]
    gated = zip(tests, gates, strict=True)
    yield from number_repeats(_build_episode(test, gate) for test, gate in gated if gate)
    yield from (_build_case(t) for t, gate in zip(tests, gates, strict=True) if gate is None)
    yield from _check_counts(results, tests)


IMPORTER = Importer("CTRF", "none", _can_import, _iterate_episodes)


def _list_tags(test: Record) -> Sequence[object]:
    tags = test.get("tags")
    return tags if isinstance(tags, list) else ()


def _find_gate(test: Record) -> object:
    return next((tag for tag in _list_tags(test) if tag in _GATES), None)


def _build_case(test: Record) -> JUnitCase:
    outcome = _find_outcome(test)
    failed = [one for one in test.records("retryAttempts") if one.get("status") != "passed"]
    was_retried = test.get("flaky") is True or bool(test.count("retries")) or bool(failed)
    shown = failed[0] if failed and outcome == "passed" else test
    return JUnitCase(
        classname=" > ".join(_list_suites(test)),
        name=as_name(test.text("name") or "(no name)"),
        outcome=outcome,
        message=_find_message(shown, outcome),
        detail=(shown.text("trace") or "")[:_MAX_TEXT] or None,
        file=test.text("filePath"),
        line=test.count("line"),
        flaky=outcome == "passed" and was_retried,
    )


def _find_outcome(test: Record) -> Outcome:
    status, raw = test.name("status"), test.name("rawStatus").lower()
    if status == "other" and raw == _TODO:
        return "skipped"
    outcome = _OUTCOMES.get(status, "error")
    return "error" if outcome == "failed" and raw in _ERRORS else outcome


def _list_suites(test: Record) -> Sequence[str]:
    """Return the suites that the test's name does not begin with; jest's reporter writes a text."""
    suite, name = test.get("suite"), test.name("name")
    listed = suite if isinstance(suite, list) else ()
    parts = suite.split(" > ") if isinstance(suite, str) else [as_name(one) for one in listed]
    while parts and name.startswith(parts[-1]):
        parts.pop()
    return parts


def _find_message(test: Record, outcome: Outcome) -> str | None:
    """Return the message's or the trace's first line, the failed step, or an unknown status."""
    text = (test.text("message") or test.text("trace") or "").strip()
    if text:
        return as_name(text.splitlines()[0])
    steps = (step.name("name") for step in test.records("steps") if step.get("status") == "failed")
    failed = next(steps, None)
    if failed is not None:
        return f"the step {failed!r} failed"
    return f"its status is {test.name('status')!r}" if outcome == "error" else None


def _build_episode(test: Record, gate: object) -> EpisodeData:
    """Build the episode of a scenario of our own report: its judged outcome and its sums."""
    return {
        "scenario_id": as_name(test.text("name") or "(no name)"),
        "gate": gate,
        "mode": "evaluation" if "evaluation" in _list_tags(test) else "strict",
        "outcome": _find_outcome(test),
        "reason": test.text("message"),
        # Turns and checks are in the results that the report was made of.
        "evidence": "none",
        "file": test.text("filePath"),
        "line": test.count("line"),
        "cost_usd": test.amount("extra.costUsd"),
        "duration_ms": test.amount("extra.durationMs"),
    }


def _check_counts(results: Record, tests: Sequence[Record]) -> Iterator[ImportProblem]:
    """Yield a problem if the summary counts more tests, or more of a status, than there are."""
    held = Counter(test.name("status") for test in tests)
    problems = [
        *check_count(results.count("summary.tests"), len(tests), "tests", _AGAIN),
        *(
            problem
            for name in ("failed", "other", "passed", "skipped", "pending")
            for problem in check_count(
                results.count(f"summary.{name}"), held[name], f"tests that are {name}", _AGAIN
            )
        ),
    ]
    yield from problems[:1]


_AGAIN = "run the tests again"
