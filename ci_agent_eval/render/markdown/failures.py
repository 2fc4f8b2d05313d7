"""The sections of failures; they are open where the gate failed."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.render.budget_overruns import BudgetOverrun
from ci_agent_eval.render.escape import code_span
from ci_agent_eval.render.findings import FindingRow
from ci_agent_eval.render.manifest_differences import ManifestDifference
from ci_agent_eval.render.markdown.blocks import (
    TableColumn,
    render_details,
    render_list,
    render_place,
)
from ci_agent_eval.render.markdown.section import (
    ID_LIMIT,
    REASON_LIMIT,
    SCENARIO,
    WHERE,
    WHOLE_REASON_LIMIT,
    Section,
    SectionBody,
    failing_table,
    render_cause,
    render_name,
    render_scenario,
    table_body,
)
from ci_agent_eval.render.numbers import ABSENT, NOT_MEASURED, count_noun, format_count, format_part
from ci_agent_eval.render.report_view import FailingTest, ReportView
from ci_agent_eval.render.scenario_name import ScenarioName
from ci_agent_eval.render.scenario_rows import ScenarioRow


def build_failing_section(view: ReportView) -> Section:
    """Return required scenarios below their pass rate, the first cause of each."""
    return Section("failing", "Failing", failing_table(view.failing_scenarios), is_open=True)


def build_tests_section(view: ReportView) -> Section:
    """Return JUnit cases that are no episodes and did not pass."""
    columns = (TableColumn("test"), TableColumn("ended"), TableColumn("message"), WHERE)
    return Section(
        "tests", "Failing tests", table_body(columns, view.failing_tests, _test_row), is_open=True
    )


def _test_row(test: FailingTest) -> Sequence[str]:
    case = test.case
    return (
        code_span(case.title, limit=ID_LIMIT, cell=True),
        case.outcome,
        code_span(case.message, limit=REASON_LIMIT, cell=True) if case.message else ABSENT,
        render_place(test.place, cell=True),
    )


def build_errors_section(view: ReportView) -> Section:
    """Return scenarios with iterations that ended in an infrastructure error."""
    columns = (SCENARIO, TableColumn("errors", figures=True), TableColumn("first reason"), WHERE)
    return Section(
        "errors",
        "Ended in an error, not judged",
        table_body(columns, view.errored_scenarios, _error_row),
        is_open=True,
    )


def _error_row(row: ScenarioRow) -> Sequence[str]:
    tally, more = row.scenario.tally, len(row.scenario.unjudged_reasons) - 1
    others = f" (and {count_noun(more, 'other reason')})" if more > 0 else ""
    return (
        render_scenario(row),
        format_part(tally.error, tally.ran),
        render_cause(row.error_cause, REASON_LIMIT, cell=True) + others,
        render_place(row.place, cell=True),
    )


def build_skipped_section(view: ReportView) -> Section:
    """Return scenarios with iterations that were skipped, or never ran."""
    columns = (SCENARIO, TableColumn("reason"), WHERE)
    gating = any(reason.kind in {"skipped", "incomplete"} for reason in view.reasons)
    return Section(
        "skipped",
        "Skipped",
        table_body(columns, view.skipped_scenarios, _skipped_row),
        is_open=gating,
    )


def _skipped_row(row: ScenarioRow) -> Sequence[str]:
    return (
        render_scenario(row),
        (f"{row.unjudged}: " if row.unjudged else "")
        + render_cause(row.skip_cause, REASON_LIMIT, cell=True),
        render_place(row.place, cell=True),
    )


def build_manifest_section(view: ReportView) -> Section:
    """Return how the run differs from the scenario manifest."""
    table = table_body(
        (SCENARIO, TableColumn("difference"), WHERE), view.manifest_differences, _known_row
    )
    return Section(
        "manifest",
        "Known scenarios",
        SectionBody(
            table.total, lambda lines: f"{table.write(lines)}\n\n{view.manifest_advice}".rstrip()
        ),
        is_open=any(row.gates for row in view.manifest_differences),
    )


def _known_row(row: ManifestDifference) -> Sequence[str]:
    detail = f" {code_span(row.detail, limit=REASON_LIMIT, cell=True)}" if row.detail else ""
    return (
        render_name(None if row.scenario_id is None else ScenarioName(row.scenario_id), cell=True),
        f"{row.text}{detail}{'' if row.gates else ' (does not gate)'}",
        render_place(row.place, cell=True),
    )


def build_overruns_section(view: ReportView) -> Section:
    """Return the budgets that were exceeded or not measured."""
    columns = (
        SCENARIO,
        TableColumn("budget"),
        TableColumn("limit", figures=True),
        TableColumn("observed", figures=True),
        TableColumn("over by", figures=True),
        WHERE,
    )
    return Section(
        "overruns",
        "Over budget",
        table_body(columns, view.overruns, lambda pair: _overrun_row(*pair)),
        is_open=any(overrun.gates for _, overrun in view.overruns),
    )


def _overrun_row(row: ScenarioRow | None, overrun: BudgetOverrun) -> Sequence[str]:
    label = overrun.label
    shown = code_span(label, limit=ID_LIMIT, cell=True) if overrun.is_custom else label
    return (
        render_scenario(row) if row else render_name(None),
        f"{shown} ({overrun.strength})",
        overrun.limit,
        _format_observed(overrun),
        overrun.over_by,
        render_place(row.place, cell=True) if row else ABSENT,
    )


def _format_observed(overrun: BudgetOverrun) -> str:
    if not overrun.is_measured:
        return f"*{NOT_MEASURED}*"
    worst = f" (worst of {format_count(overrun.iterations)})" if overrun.iterations > 1 else ""
    return overrun.observed + worst


def build_findings_section(view: ReportView) -> Section:
    """Return the findings about the result files."""
    found = view.findings

    def write(lines: int) -> str:
        shown, rest = found.shown[:lines], lines - len(found.shown)
        text = render_list(map(_finding_line, shown))
        if rest <= 0 or not found.consequences:
            return text
        others = render_list(map(_finding_line, found.consequences[:rest]))
        return f"{text}\n\n{render_details(found.summary, others)}"

    return Section(
        "findings",
        "Findings about the result files",
        SectionBody(len(found), write),
        is_open=any(row.gates for row in found.shown),
    )


def _finding_line(row: FindingRow) -> str:
    where = f" in {code_span(row.where, limit=ID_LIMIT)}" if row.where else ""
    note = "" if row.gates else " (does not gate)"
    return f"{row.name}{where}{note}: {code_span(row.sentence, limit=WHOLE_REASON_LIMIT)}"
