"""The sections of waivers: scenarios in quarantine, and acknowledged regressions."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.render.escape import code_span
from ci_agent_eval.render.markdown.blocks import TableColumn, render_place
from ci_agent_eval.render.markdown.section import (
    ID_LIMIT,
    REASON_LIMIT,
    SCENARIO,
    WHERE,
    WHOLE_REASON_LIMIT,
    Section,
    list_body,
    passes_cells,
    render_cause,
    render_name,
    render_scenario,
    table_body,
)
from ci_agent_eval.render.numbers import ABSENT
from ci_agent_eval.render.report_view import QuarantineRow, ReasonRow, ReportView
from ci_agent_eval.render.scenario_rows import ScenarioRow


def build_quarantine_section(view: ReportView) -> Section:
    """Return the scenarios in quarantine; expired ones, which gate again, are first."""
    found = sorted(view.quarantined, key=lambda item: item.is_active)
    columns = (
        SCENARIO,
        TableColumn("passes", figures=True),
        TableColumn("why it does not pass"),
        TableColumn("until"),
        TableColumn("owner"),
        TableColumn("reason"),
        WHERE,
    )
    return Section(
        "quarantined",
        view.quarantine_title,
        table_body(columns, found, _quarantine_row),
        is_open=not all(item.is_active for item in found),
    )


def _quarantine_row(item: QuarantineRow) -> Sequence[str]:
    return (
        render_scenario(item.row),
        *passes_cells(item.row, rated=False),
        _describe_failure(item.row),
        item.until,
        code_span(item.owner, limit=ID_LIMIT, cell=True),
        code_span(item.reason, limit=REASON_LIMIT, cell=True),
        render_place(item.row.place, cell=True),
    )


def _describe_failure(row: ScenarioRow) -> str:
    if row.is_passing:
        shown = ", ".join(code_span(n, limit=ID_LIMIT, cell=True) for n in row.hard_overruns)
        return f"over budget: {shown}" if shown else ABSENT
    cause = row.first_cause if row.status == "failing" else row.error_cause
    return render_cause(cause, REASON_LIMIT, cell=True)


def build_acknowledged_section(view: ReportView) -> Section:
    """Return the acknowledged regressions, and the entries that accept nothing."""
    return Section(
        "acknowledged", view.acknowledged_title, list_body(view.acknowledged, _acknowledged_line)
    )


def _acknowledged_line(reason: ReasonRow) -> str:
    sentence = code_span(reason.sentence, limit=WHOLE_REASON_LIMIT)
    return sentence if reason.name is None else f"{render_name(reason.name)}: {sentence}"
