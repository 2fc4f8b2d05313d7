"""CTRF: the report in the Common Test Report Format, for tools that read that (https://ctrf.io).

A test is a scenario, as the gate judges it, or a failed case of another runner; the last one is
the gate itself, so that whoever looks at the counts alone sees a gate that failed. CTRF asks for
times since 1970: a report that is the same for the same results has none. The run starts at 0
and stops after the sum of the durations that were measured; one that was not is 0, and says so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.analysis.summary import ScenarioSummary
from ci_agent_eval.contract.episode import Outcome
from ci_agent_eval.gate import Reason, Status
from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render.baseline_findings import Doubt, doubts
from ci_agent_eval.render.comparison import key_of
from ci_agent_eval.render.escape import EMPTY, cut_bytes, many_lines, visible_line
from ci_agent_eval.render.formats.annotations import MESSAGE_BYTES, TITLE_BYTES
from ci_agent_eval.render.headline import headline
from ci_agent_eval.render.links import line_number, repository_path
from ci_agent_eval.render.overruns import overruns
from ci_agent_eval.render.sentences import reason_sentence
from ci_agent_eval.render.views import (
    NO_REASON,
    causes,
    error_cause,
    reason_of,
    skip_cause,
    title_of,
)

SPEC_VERSION = "0.0.0"
"""The one that the schema describes; there is no later one."""

_STATUSES: dict[Status, str] = {
    "passing": "passed",
    "failing": "failed",
    "errored": "failed",
    "skipped": "skipped",
    "incomplete": "other",
}
_CASES: dict[Outcome, str] = {
    "passed": "passed",
    "failed": "failed",
    "error": "failed",
    "skipped": "skipped",
}
_ALL = ("passed", "failed", "skipped", "pending", "other")


def render_ctrf(report: Report) -> str:
    """Return `ctrf.json`: sorted keys, two spaces, ASCII, a newline at the end."""
    tests = list(_tests(report))
    commit = {"commit": report.commit} if report.commit else {}
    document = {
        "reportFormat": "CTRF",
        "specVersion": SPEC_VERSION,
        "generatedBy": "agent-eval",
        "results": {
            "tool": {"name": "agent-eval"},
            "summary": _summary(report, tests),
            "tests": tests,
            "environment": {"reportName": report.summary.suite, **commit},
        },
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _summary(report: Report, tests: list[dict[str, Any]]) -> dict[str, Any]:
    counts = Counter(test["status"] for test in tests)
    duration = sum(test["duration"] for test in tests)
    plain = report.summary.tests.tally
    return {
        "tests": len(tests),
        **{status: counts[status] for status in _ALL},
        "flaky": sum(1 for test in tests if test.get("flaky")),
        "start": 0,
        "stop": duration,
        "duration": duration,
        "extra": {
            "conclusion": report.verdict.conclusion,
            # The report keeps no names of other tests that did not fail.
            "testsNotListed": plain.passed + plain.skipped,
        },
    }


def _tests(report: Report) -> Iterator[dict[str, Any]]:
    over = {id(overrun.scenario) for overrun in overruns(report) if overrun.gates}
    against = {doubt.key: doubt for doubt in doubts(report) if doubt.gates}
    for item in report.judged_scenarios():
        speaks_against = against.get(key_of(item.scenario))
        is_over = id(item.scenario) in over
        yield _scenario(item, report.summary.suite, speaks_against, is_over=is_over)
    for case in report.summary.tests.failing:
        yield _case(case)
    yield _gate(report)


def _scenario(
    item: JudgedScenario, suite: str, against: Doubt | None, *, is_over: bool
) -> dict[str, Any]:
    scenario, status = item.scenario, item.judgement.status
    duration = scenario.duration_ms
    tags = [item.judgement.gate, *(["evaluation"] if scenario.mode == "evaluation" else [])]
    return {
        "name": _name(title_of(scenario)),
        "testId": _name(title_of(scenario)),
        "suite": [_name(suite)],
        "status": "failed" if is_over or against else _STATUSES[status],
        "rawStatus": _raw_status(status, against, is_over=is_over),
        "duration": 0 if duration is None else round(duration),
        "flaky": scenario.flaky > 0 and status == "passing",
        "tags": tags,
        "extra": _figures(scenario),
        **_place(scenario.file, scenario.line),
        **_message([*_against(against), *_why(item, is_over=is_over)]),
    }


def _raw_status(status: Status, against: Doubt | None, *, is_over: bool) -> str:
    """Say how a scenario stands; of one that passes what else it fails by."""
    if status != "passing":
        return status
    if against is not None:
        return against.reason.kind.replace("_", " ")
    return "over budget" if is_over else status


def _against(doubt: Doubt | None) -> Iterator[str]:
    """Yield what the baseline speaks against a scenario, and the passes of both sides."""
    if doubt is not None:
        what = f"{doubt.what}: {doubt.quoted}" if doubt.quoted else doubt.what
        yield f"against the baseline, {what}: passes {doubt.now} now, {doubt.before} before"


def _figures(scenario: ScenarioSummary) -> dict[str, Any]:
    """Return what was measured; null: not measured."""
    tally = scenario.tally
    return {
        "agent": scenario.agent,
        "passed": tally.passed,
        "failed": tally.failed,
        "errors": tally.error,
        "skipped": tally.skipped,
        "passRate": tally.pass_rate,
        "turns": scenario.turns,
        "toolCalls": scenario.tool_calls,
        "tokens": scenario.tokens,
        "costUsd": scenario.cost_usd,
        "p95LatencyMs": scenario.p95_latency_ms,
        "durationMs": scenario.duration_ms,
    }


def _why(item: JudgedScenario, *, is_over: bool) -> Iterator[str]:
    """Yield why a scenario did not pass, a line each."""
    scenario = item.scenario
    if is_over:
        for found in scenario.violations:
            violation = found.violation
            seen = "not measured" if violation.observed is None else f"{violation.observed:g}"
            yield f"over budget, {violation.budget}: {seen}, limit {violation.limit:g}"
    if not item.is_passing and scenario.tally.failed:
        for cause in causes(scenario):
            named = f"{cause.name}: " if cause.name and cause.reason else ""
            yield f"{named}{reason_of(cause)}"
    if not item.is_passing and scenario.unjudged_reasons:
        is_incomplete = item.judgement.status == "incomplete"
        unjudged = skip_cause(scenario) if is_incomplete else error_cause(scenario)
        yield unjudged.reason or NO_REASON


def _case(case: JUnitCase) -> dict[str, Any]:
    detail = {"trace": _text(case.detail)} if case.detail else {}
    return {
        "name": _name(case.title),
        "status": _CASES[case.outcome],
        "rawStatus": case.outcome,
        "duration": 0,
        "tags": ["test"],
        "extra": {"durationMs": None},
        **_place(case.file, case.line),
        **_message([case.message or NO_REASON]),
        **detail,
    }


def _gate(report: Report) -> dict[str, Any]:
    return {
        "name": "agent-eval gate",
        "status": "passed" if report.passed else "failed",
        "rawStatus": report.verdict.conclusion,
        "duration": 0,
        "tags": ["gate"],
        **_message([headline(report), *map(told, report.verdict.reasons)]),
    }


def told(reason: Reason) -> str:
    """Return a reason of the verdict on a line: what it is about, then what it is."""
    about = reason.scenario_id or ""
    if about and reason.agent:
        about = f"{about} ({reason.agent})"
    said = reason_sentence(reason)
    return f"{about}: {said}" if about else said


def _place(file: str | None, line: int | None) -> dict[str, Any]:
    path, number = repository_path(file), line_number(line)
    if path is None:
        return {}
    return {"filePath": path} if number is None else {"filePath": path, "line": number}


def _message(lines: Iterator[str] | list[str]) -> dict[str, str]:
    text = "\n".join(lines)
    return {"message": _text(text)} if text else {}


def _name(text: str) -> str:
    return cut_bytes(visible_line(text, TITLE_BYTES), TITLE_BYTES).strip() or EMPTY


def _text(text: str) -> str:
    return cut_bytes(many_lines(text, MESSAGE_BYTES), MESSAGE_BYTES)
