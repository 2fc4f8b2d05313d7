"""CTRF: the report in the Common Test Report Format (https://ctrf.io).

A test is a scenario, as the gate judges it, or a failed case of another runner; the last one is
the gate itself, so that the counts alone show a gate that failed. CTRF asks for times since
1970: a report that is the same for the same results has none. The run starts at 0
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
from ci_agent_eval.gate.model import ScenarioStatus
from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.escape import EMPTY, cut_bytes, visible_line, visible_lines
from ci_agent_eval.render.formats.annotations import MESSAGE_BYTES, TITLE_BYTES
from ci_agent_eval.render.links import Place
from ci_agent_eval.render.phrases import get_phrase_text
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.render.scenario_rows import NO_REASON, ScenarioRow

SPEC_VERSION = "0.0.0"
"""The one that the schema describes; there is no later one."""

_STATUSES: dict[ScenarioStatus, str] = {
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


def render_ctrf(view: ReportView) -> str:
    """Return `ctrf.json`: sorted keys, two spaces, ASCII, a newline at the end."""
    tests = list(_list_tests(view))
    commit = {"commit": view.commit} if view.commit else {}
    document = {
        "reportFormat": "CTRF",
        "specVersion": SPEC_VERSION,
        "generatedBy": "agent-eval",
        "results": {
            "tool": {"name": "agent-eval"},
            "summary": _build_summary(view, tests),
            "tests": tests,
            "environment": {"reportName": view.suite, **commit},
        },
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _build_summary(view: ReportView, tests: list[dict[str, Any]]) -> dict[str, Any]:
    counts = Counter(test["status"] for test in tests)
    duration = sum(test["duration"] for test in tests)
    plain = view.tests.tally
    return {
        "tests": len(tests),
        **{status: counts[status] for status in _ALL},
        "flaky": sum(1 for test in tests if test.get("flaky")),
        "start": 0,
        "stop": duration,
        "duration": duration,
        "extra": {
            "conclusion": view.conclusion,
            # The report keeps no names of other tests that did not fail.
            "testsNotListed": plain.passed + plain.skipped,
        },
    }


def _list_tests(view: ReportView) -> Iterator[dict[str, Any]]:
    for row in view.scenarios:
        yield _build_scenario(row, view.suite)
    for case in view.tests.failing:
        yield _build_case(case, view.links.place(case.file, case.line))
    yield _build_gate(view)


def _build_scenario(row: ScenarioRow, suite: str) -> dict[str, Any]:
    gating = next((f for f in reversed(row.baseline_findings) if f.gates), None)
    duration = row.scenario.duration_ms
    return {
        "name": _format_name(row.name.title),
        "testId": _format_name(row.name.title),
        "suite": [_format_name(suite)],
        "status": "failed" if row.fails_by_budget or gating else _STATUSES[row.status],
        "rawStatus": _find_raw_status(row, gating),
        "duration": 0 if duration is None else round(duration),
        "flaky": row.scenario.flaky > 0 and row.is_passing,
        "tags": [row.judgement.gate, *(["evaluation"] if row.is_evaluation else [])],
        "extra": _build_figures(row.scenario),
        **_build_place(row.place),
        **_build_message([*_describe_finding(gating), *_list_reasons(row)]),
    }


def _find_raw_status(row: ScenarioRow, gating: BaselineFinding | None) -> str:
    """Return the status of a scenario; of one that passes why the gate fails it."""
    if not row.is_passing:
        return row.status
    if gating is not None:
        return gating.kind.replace("_", " ")
    return "over budget" if row.fails_by_budget else row.status


def _describe_finding(finding: BaselineFinding | None) -> Iterator[str]:
    """Yield the finding of the comparison that gates, with both sides."""
    if finding is not None:
        yield f"against the baseline, {finding.sentence}: {finding.figures}"


def _build_figures(scenario: ScenarioSummary) -> dict[str, Any]:
    """Return the figures of a scenario; null: not measured."""
    tally = scenario.tally
    return {
        "agent": scenario.agent,
        "passed": tally.passed,
        "failed": tally.failed,
        "errors": tally.error,
        "skipped": tally.skipped,
        "passRate": scenario.rated.pass_rate,
        "turns": scenario.turns,
        "toolCalls": scenario.tool_calls,
        "tokens": scenario.tokens,
        "costUsd": scenario.cost_usd,
        "p95LatencyMs": scenario.p95_latency_ms,
        "durationMs": scenario.duration_ms,
    }


def _list_reasons(row: ScenarioRow) -> Iterator[str]:
    """Yield why a scenario did not pass, a line each."""
    scenario = row.scenario
    if row.fails_by_budget:
        yield from (f"over budget, {get_phrase_text(one.describe())}" for one in row.overruns)
    if not row.is_passing and scenario.tally.failed:
        for cause in row.causes:
            named = f"{cause.name}: " if cause.name and cause.reason else ""
            yield f"{named}{cause.sentence}"
    if not row.is_passing and scenario.unjudged_reasons:
        cause = row.skip_cause if row.status == "incomplete" else row.error_cause
        yield cause.reason or NO_REASON


def _build_case(case: JUnitCase, place: Place) -> dict[str, Any]:
    detail = {"trace": _format_text(case.detail)} if case.detail else {}
    return {
        "name": _format_name(case.title),
        "status": _CASES[case.outcome],
        "rawStatus": case.outcome,
        "duration": 0,
        "tags": ["test"],
        "extra": {"durationMs": None},
        **_build_place(place),
        **_build_message([case.message or NO_REASON]),
        **detail,
    }


def _build_gate(view: ReportView) -> dict[str, Any]:
    return {
        "name": "agent-eval gate",
        "status": "passed" if view.has_passed else "failed",
        "rawStatus": view.conclusion,
        "duration": 0,
        "tags": ["gate"],
        **_build_message([view.headline, *(reason.line for reason in view.reasons)]),
    }


def _build_place(place: Place) -> dict[str, Any]:
    if place.path is None:
        return {}
    return {"filePath": place.path, **({} if place.line is None else {"line": place.line})}


def _build_message(lines: Iterator[str] | list[str]) -> dict[str, str]:
    text = "\n".join(lines)
    return {"message": _format_text(text)} if text else {}


def _format_name(text: str) -> str:
    return cut_bytes(visible_line(text, TITLE_BYTES), TITLE_BYTES).strip() or EMPTY


def _format_text(text: str) -> str:
    return cut_bytes(visible_lines(text, MESSAGE_BYTES), MESSAGE_BYTES)
