"""The sections of evaluations: what was measured, and every assertion that failed."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render.escape import code_span
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.blocks import Column, place
from ci_agent_eval.render.markdown.details import assertion_line, told_by_row
from ci_agent_eval.render.markdown.section import (
    ID_LIMIT,
    REASON_LIMIT,
    WHERE,
    Section,
    cause_cell,
    of_list,
    of_table,
)
from ci_agent_eval.render.numbers import ABSENT, counted, score
from ci_agent_eval.render.views import causes, evaluations_title, first_cause, of, title_of


def conversations(report: Report, links: Links) -> Section:
    """Return every conversation with its score: what failed, what errored, all others."""
    found = sorted(report.evaluations, key=_weight)
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
        evaluations_title(report),
        ("conversation", "conversations"),
        of_table(columns, found, lambda item: _row(item, links)),
        folded=not report.misses_thresholds,
    )


def _weight(item: JudgedScenario) -> tuple[bool, bool]:
    tally = item.scenario.tally
    return not tally.failed, not tally.error


def _row(item: JudgedScenario, links: Links) -> Sequence[str]:
    scenario, found = item.scenario, item.scenario.evaluations
    cause = first_cause(scenario) if scenario.tally.failed else None
    return (
        code_span(title_of(scenario), limit=ID_LIMIT, cell=True),
        of(found.passed, found.conversations),
        ABSENT if found.mean_score is None else score(found.mean_score),
        of(found.assertions_passed, found.assertions) if found.assertions else ABSENT,
        ABSENT if cause is None else cause_cell(cause, REASON_LIMIT, cell=True),
        place((cause or scenario).file, (cause or scenario).line, links, cell=True),
    )


def failures(report: Report, links: Links) -> Section:
    """Return the failed assertions that the table above does not tell in full."""
    found = [
        (item.scenario, cause)
        for item in report.evaluations
        if item.only_measures and item.scenario.tally.failed and not told_by_row(item)
        for cause in causes(item.scenario)
    ]
    title = counted(len(found), "failed assertion", "failed assertions")
    return Section(
        "measured",
        f"{title} of evaluations in full",
        ("failing assertion of evaluations", "failing assertions of evaluations"),
        of_list(found, lambda pair: assertion_line(pair[0], pair[1], links)),
        folded=True,
    )
