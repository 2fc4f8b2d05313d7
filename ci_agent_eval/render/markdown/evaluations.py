"""The sections of evaluations: every conversation, and every assertion that failed."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.render.escape import code_span
from ci_agent_eval.render.markdown.blocks import Column, render_place
from ci_agent_eval.render.markdown.details import assertion_line, is_shown_in_row
from ci_agent_eval.render.markdown.section import (
    ID_LIMIT,
    REASON_LIMIT,
    WHERE,
    Section,
    cause_cell,
    of_list,
    of_table,
)
from ci_agent_eval.render.numbers import ABSENT, counted, of
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.render.scenario_rows import ScenarioRow


def conversations(view: ReportView) -> Section:
    """Return every conversation with its score, the failed and the errored ones first."""
    found = sorted(view.evaluations, key=_weight)
    columns = (
        Column("conversation"),
        Column("passed", figures=True),
        Column("score", figures=True),
        Column("assertions", figures=True),
        Column("first failing assertion"),
        WHERE,
    )
    return Section(
        "evaluations",
        view.evaluations_title,
        ("conversation", "conversations"),
        of_table(columns, found, _row),
        folded=not view.misses_thresholds,
    )


def _weight(row: ScenarioRow) -> tuple[bool, bool]:
    return not row.scenario.tally.failed, not row.scenario.tally.error


def _row(row: ScenarioRow) -> Sequence[str]:
    found = row.scenario.evaluations
    cause = row.first_cause if row.scenario.tally.failed else None
    return (
        code_span(row.name.title, limit=ID_LIMIT, cell=True),
        of(found.passed, found.conversations),
        row.score.text,
        of(found.assertions_passed, found.assertions) if found.assertions else ABSENT,
        ABSENT if cause is None else cause_cell(cause, REASON_LIMIT, cell=True),
        render_place((cause or row).place, cell=True),
    )


def failures(view: ReportView) -> Section:
    """Return the failed assertions that the table above does not show in full."""
    found = [
        (row, cause)
        for row, cause in view.failures
        if row.is_only_measured and not is_shown_in_row(row)
    ]
    title = counted(len(found), "failed assertion", "failed assertions")
    return Section(
        "measured",
        f"{title} of evaluations in full",
        ("failing assertion of evaluations", "failing assertions of evaluations"),
        of_list(found, lambda pair: assertion_line(*pair)),
        folded=True,
    )
