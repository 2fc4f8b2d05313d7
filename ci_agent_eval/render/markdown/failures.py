"""The sections that say what is wrong; in a report of a run that failed they stand open."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.analysis.summary import ScenarioSummary
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render import views
from ci_agent_eval.render.comparison import notes
from ci_agent_eval.render.escape import code_span
from ci_agent_eval.render.known import KnownRow, is_gating, known_advice, known_rows
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.blocks import Column, fold, items, place
from ci_agent_eval.render.markdown.section import (
    ID_LIMIT,
    REASON_LIMIT,
    SCENARIO,
    WHERE,
    WHOLE_REASON_LIMIT,
    Body,
    Section,
    cause_cell,
    failing_table,
    of_table,
    scenario_cell,
)
from ci_agent_eval.render.numbers import ABSENT, NOT_MEASURED, count, counted
from ci_agent_eval.render.overruns import Overrun
from ci_agent_eval.render.overruns import overruns as over_budget
from ci_agent_eval.render.sentences import finding_sentence
from ci_agent_eval.render.views import error_cause, finding_name, of


def failing(report: Report, links: Links) -> Section:
    """Return required scenarios below their pass rate, the first cause of each."""
    found = [item for item in report.required if item.judgement.status == "failing"]
    return Section(
        "failing",
        "Failing",
        ("failing scenario", "failing scenarios"),
        failing_table(found, links, notes(report)),
    )


def tests(report: Report, links: Links) -> Section:
    """Return JUnit cases that are no episodes and did not pass."""
    found = report.summary.tests.failing
    columns = (Column("test"), Column("ended"), Column("message"), WHERE)
    return Section(
        "tests",
        "Failing tests",
        ("failing test", "failing tests"),
        of_table(columns, found, lambda case: _test_row(case, links)),
    )


def _test_row(case: JUnitCase, links: Links) -> Sequence[str]:
    return (
        code_span(case.title, limit=ID_LIMIT, cell=True),
        case.outcome,
        code_span(case.message, limit=REASON_LIMIT, cell=True) if case.message else ABSENT,
        place(case.file, case.line, links, cell=True),
    )


def errors(report: Report, links: Links) -> Section:
    """Return scenarios with iterations that the world broke."""
    found = [item for item in report.judged_scenarios() if item.scenario.tally.error]
    columns = (SCENARIO, Column("errors", figures=True), Column("first reason"), WHERE)
    return Section(
        "errors",
        "Ended in an error, not judged",
        ("scenario with errors", "scenarios with errors"),
        of_table(columns, found, lambda item: _error_row(item, links)),
    )


def _error_row(item: JudgedScenario, links: Links) -> Sequence[str]:
    scenario, cause = item.scenario, error_cause(item.scenario)
    return (
        scenario_cell(scenario),
        of(scenario.tally.error, scenario.tally.ran),
        cause_cell(cause, REASON_LIMIT, cell=True) + _more_reasons(scenario),
        place(cause.file, cause.line, links, cell=True),
    )


def _more_reasons(scenario: ScenarioSummary) -> str:
    more = len(scenario.unjudged_reasons) - 1
    return f" (and {counted(more, 'other reason')})" if more > 0 else ""


def skipped(report: Report, links: Links) -> Section:
    """Return scenarios of which iterations were skipped, or never ran."""
    found = views.skipped_scenarios(report)
    columns = (SCENARIO, Column("reason"), WHERE)
    gating = any(reason.kind in {"skipped", "incomplete"} for reason in report.verdict.reasons)
    return Section(
        "skipped",
        "Skipped",
        ("skipped scenario", "skipped scenarios"),
        of_table(columns, found, lambda item: _skipped_row(item, links)),
        folded=not gating,
    )


def _skipped_row(item: JudgedScenario, links: Links) -> Sequence[str]:
    scenario, cause = item.scenario, views.skip_cause(item.scenario)
    note = views.unjudged_note(scenario)
    return (
        scenario_cell(scenario),
        (f"{note}: " if note else "") + cause_cell(cause, REASON_LIMIT, cell=True),
        place(cause.file, cause.line, links, cell=True),
    )


def known(report: Report, links: Links) -> Section:
    """Return how the run stands against the scenario manifest."""
    found = known_rows(report)
    columns = (SCENARIO, Column("difference"), WHERE)
    table = of_table(columns, found, lambda row: _known_row(row, report, links))
    advice = known_advice(report)
    return Section(
        "known",
        "Known scenarios",
        ("difference from the known scenarios", "differences from the known scenarios"),
        Body(table.total, lambda lines: f"{table.write(lines)}\n\n{advice}".rstrip()),
        folded=not is_gating(found),
    )


def _known_row(row: KnownRow, report: Report, links: Links) -> Sequence[str]:
    name = row.scenario_id
    detail = f" {code_span(row.detail, limit=REASON_LIMIT, cell=True)}" if row.detail else ""
    file = report.summary.known.name if report.summary.known and row.line else None
    return (
        "the whole suite" if name is None else code_span(name, limit=ID_LIMIT, cell=True),
        f"{row.what}{detail}{'' if row.gates else ' (does not gate)'}",
        place(file, row.line, links, cell=True),
    )


def overruns(report: Report, links: Links) -> Section:
    """Return the budgets that were exceeded or not measured."""
    found = over_budget(report)
    columns = (
        SCENARIO,
        Column("budget"),
        Column("limit", figures=True),
        Column("observed", figures=True),
        Column("over by", figures=True),
        WHERE,
    )
    return Section(
        "overruns",
        "Over budget",
        ("line of budgets", "lines of budgets"),
        of_table(columns, found, lambda overrun: _overrun_row(overrun, links)),
        folded=not any(overrun.gates for overrun in found),
    )


def _overrun_row(overrun: Overrun, links: Links) -> Sequence[str]:
    scenario = overrun.scenario
    label = overrun.label or code_span(overrun.custom, limit=ID_LIMIT, cell=True)
    return (
        scenario_cell(scenario) if scenario else "the whole suite",
        f"{label} ({overrun.strength})",
        overrun.limit,
        _observed(overrun),
        overrun.over_by,
        place(scenario.file, scenario.line, links, cell=True) if scenario else ABSENT,
    )


def _observed(overrun: Overrun) -> str:
    if overrun.observed == NOT_MEASURED:
        return f"*{NOT_MEASURED}*"
    worst = f" (worst of {count(overrun.iterations)})" if overrun.iterations > 1 else ""
    return overrun.observed + worst


def findings(report: Report) -> Section:
    """Return what the loader found out about the files."""
    found = views.findings_of(report)
    blocking = any(finding.blocking for finding in found.told)

    def write(lines: int) -> str:
        told, rest = found.told[:lines], lines - len(found.told)
        shown = items(map(_finding_line, told))
        if rest <= 0 or not found.consequences:
            return shown
        folded = items(map(_finding_line, found.consequences[:rest]))
        return f"{shown}\n\n{fold(found.summary, folded)}"

    return Section(
        "findings",
        "Findings about the result files",
        ("finding", "findings"),
        Body(len(found.told) + len(found.consequences), write),
        folded=not blocking,
    )


def _finding_line(finding: Finding) -> str:
    where = f" in {code_span(finding.where, limit=ID_LIMIT)}" if finding.where else ""
    note = "" if finding.blocking else " (does not gate)"
    message = code_span(finding_sentence(finding), limit=WHOLE_REASON_LIMIT)
    return f"{finding_name(finding)}{where}{note}: {message}"
