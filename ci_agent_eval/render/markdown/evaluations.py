"""The sections of evaluations: every conversation, and every assertion that failed."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.render.escape import code_span
from ci_agent_eval.render.markdown.blocks import TableColumn, render_place
from ci_agent_eval.render.markdown.details import is_shown_in_row, render_assertion
from ci_agent_eval.render.markdown.section import (
    ID_LIMIT,
    REASON_LIMIT,
    WHERE,
    Section,
    list_body,
    render_cause,
    table_body,
)
from ci_agent_eval.render.numbers import ABSENT, count_noun, format_part
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.render.scenario_rows import ScenarioRow


def build_conversations_section(view: ReportView) -> Section:
    """Return every conversation with its score, the failed and the errored ones first."""
    found = sorted(view.evaluations, key=_rank_row)
    columns = (
        TableColumn("conversation"),
        TableColumn("passed", figures=True),
        TableColumn("score", figures=True),
        TableColumn("assertions", figures=True),
        TableColumn("first failing assertion"),
        WHERE,
    )
    return Section(
        "evaluations",
        view.evaluations_title,
        table_body(columns, found, _build_row),
        is_open=view.misses_thresholds,
    )


def _rank_row(row: ScenarioRow) -> tuple[bool, bool]:
    return not row.scenario.tally.failed, not row.scenario.tally.error


def _build_row(row: ScenarioRow) -> Sequence[str]:
    found = row.scenario.evaluations
    cause = row.first_cause if row.scenario.tally.failed else None
    return (
        code_span(row.name.title, limit=ID_LIMIT, cell=True),
        format_part(found.passed, found.conversations),
        row.score.text,
        format_part(found.assertions_passed, found.assertions) if found.assertions else ABSENT,
        ABSENT if cause is None else render_cause(cause, REASON_LIMIT, cell=True),
        render_place((cause or row).place, cell=True),
    )


def build_measured_section(view: ReportView) -> Section:
    """Return the failed assertions that the table above does not show in full."""
    found = [
        (row, cause)
        for row, cause in view.failures
        if row.is_only_measured and not is_shown_in_row(row)
    ]
    title = count_noun(len(found), "failed assertion", "failed assertions")
    return Section(
        "measured",
        f"{title} of evaluations in full",
        list_body(found, lambda pair: render_assertion(*pair)),
    )
