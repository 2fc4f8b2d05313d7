"""The collapsed sections: failures in full, passing scenarios, iterations, result files."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.analysis.reliability import Reliability
from ci_agent_eval.contract.findings import SourceFile
from ci_agent_eval.render.escape import code_block, code_span
from ci_agent_eval.render.markdown.blocks import TableColumn, render_place
from ci_agent_eval.render.markdown.section import (
    ID_LIMIT,
    OUTPUT_LIMIT,
    REASON_LIMIT,
    SCENARIO,
    WHERE,
    WHOLE_REASON_LIMIT,
    Section,
    are_rated,
    blocks_body,
    failing_table,
    list_body,
    passes_cells,
    passes_columns,
    render_cause,
    render_scenario,
    table_body,
)
from ci_agent_eval.render.numbers import ABSENT, count_noun, format_count, format_percent
from ci_agent_eval.render.report_view import FailingTest, FlakyRow, ReportView
from ci_agent_eval.render.scenario_rows import Cause, ScenarioRow

FEW_TRIES = 3
"""Chances are shown for this number of tries, and for the largest number."""


def build_assertions_section(view: ReportView) -> Section:
    """Return every failed assertion that a table above does not show in full."""
    found = [
        (row, cause)
        for row, cause in view.failures
        if not row.is_only_measured and not is_shown_in_row(row)
    ]
    title = count_noun(len(found), "failed assertion", "failed assertions")
    return Section(
        "assertions", f"{title} in full", list_body(found, lambda pair: render_assertion(*pair))
    )


def is_shown_in_row(row: ScenarioRow) -> bool:
    """Say whether the one table row of a failing scenario shows all of its causes in full."""
    texts = [text or "" for cause in row.causes for text in (cause.name, cause.reason)]
    short = all(len(text) <= REASON_LIMIT for text in texts)
    return row.status == "failing" and len(row.causes) <= 1 and short


def render_assertion(row: ScenarioRow, cause: Cause) -> str:
    """Return the line of a failed assertion: scenario, iterations, name, reason, place."""
    times, ran = "", row.scenario.tally.ran
    if cause.iterations is not None and ran > 1:
        times = f" in {format_count(cause.iterations)} of {format_count(ran)} iterations"
    name, where = render_scenario(row, cell=False), render_place(cause.place)
    return f"{name}{times}: {render_cause(cause, WHOLE_REASON_LIMIT)}, {where}"


def build_outputs_section(view: ReportView) -> Section:
    """Return the output of failing tests, mostly tracebacks."""
    found = [test for test in view.failing_tests if test.case.detail]
    return Section(
        "outputs",
        f"Output of {count_noun(len(found), 'failing test')}",
        blocks_body(found, _render_output),
    )


def _render_output(test: FailingTest) -> str:
    return f"{code_span(test.case.title)}\n\n{code_block(test.case.detail or '', OUTPUT_LIMIT)}"


def build_advisory_section(view: ReportView) -> Section:
    """Return advisory scenarios that fail."""
    found = view.failing_advisory_scenarios
    return Section(
        "advisory",
        f"Advisory, not gating: {count_noun(len(found), 'failing scenario')}",
        failing_table(found),
    )


def build_warnings_section(view: ReportView) -> Section:
    """Return failed assertions that are warnings."""
    found = [(row, cause) for row in view.scenarios for cause in row.warnings]
    return Section(
        "warnings",
        count_noun(len(found), "warning"),
        list_body(found, lambda pair: render_assertion(*pair)),
    )


def build_flaky_section(view: ReportView) -> Section:
    """Return the scenarios and tests that passed only on a retry."""
    return Section(
        "flaky",
        f"{format_count(len(view.flaky_rows))} flaky: passed only on a retry",
        list_body(view.flaky_rows, _flaky_line),
    )


def _flaky_line(found: FlakyRow) -> str:
    if found.scenario is None:
        return code_span(found.title)
    name, times = (
        render_scenario(found.scenario, cell=False),
        count_noun(found.iterations, "iteration"),
    )
    return f"{name}, {times}, {render_place(found.place)}"


def build_passing_section(view: ReportView) -> Section:
    """Return the scenarios that passed, with cost and latency, and marked where over budget.

    Scenarios with a gating finding of the comparison are left out.
    """
    found = [
        row
        for row in view.scenarios
        if row.is_passing and not row.is_only_measured and not row.fails_by_baseline
    ]
    over = sum(1 for row in found if row.hard_overruns)
    title = count_noun(len(found), "passing scenario")
    rated = are_rated(found)
    columns = (
        SCENARIO,
        *passes_columns(rated=rated),
        TableColumn("cost per episode", figures=True),
        TableColumn("p95 turn latency", figures=True),
        WHERE,
    )
    return Section(
        "passing",
        f"{title}, {format_count(over)} over budget" if over else title,
        table_body(columns, found, lambda row: _passing_row(row, rated=rated)),
    )


def _passing_row(row: ScenarioRow, *, rated: bool) -> Sequence[str]:
    note = f" ({row.note})" if row.note and row.baseline_findings else ""
    return (
        render_scenario(row) + note,
        *passes_cells(row, rated=rated, note=", over budget" if row.hard_overruns else ""),
        row.cost_per_episode.text,
        row.latency.text,
        render_place(row.place, cell=True),
    )


def build_iterations_section(view: ReportView) -> Section:
    """Return the totals of each scenario's iterations: passes, tries, and usage."""
    found = view.repeated_scenarios
    titles = ("`pass@k`", "`pass^k`", "duration", "tokens", "cost")
    columns = (
        SCENARIO,
        *passes_columns(rated=True),
        *(TableColumn(title, figures=True) for title in titles),
    )
    return Section(
        "iterations",
        f"Iterations of {count_noun(len(found), 'scenario')}, all together",
        table_body(columns, found, _iterations_row),
    )


def _iterations_row(row: ScenarioRow) -> Sequence[str]:
    return (
        render_scenario(row),
        *passes_cells(row, rated=True),
        *_format_tries(row.scenario.reliability),
        row.duration.text,
        row.tokens.text,
        row.cost.text,
    )


def _format_tries(found: Sequence[Reliability]) -> Sequence[str]:
    """Format pass@k and pass^k for few tries and for the most."""
    if not found:
        return ABSENT, ABSENT
    few = [one for one in found if one.k <= FEW_TRIES][-1:]
    shown = [*few, *(one for one in found[-1:] if one not in few)]
    return (
        ", ".join(f"{format_percent(one.pass_at_k)} (k = {format_count(one.k)})" for one in shown),
        ", ".join(f"{format_percent(one.pass_hat_k)} (k = {format_count(one.k)})" for one in shown),
    )


def build_sources_section(view: ReportView) -> Section:
    """Return the files, with the counts of their cases."""
    figure_columns = ("cases", "passed", "failures", "errors", "skipped")
    columns = (TableColumn("file"), *(TableColumn(title, figures=True) for title in figure_columns))
    return Section(
        "sources",
        count_noun(len(view.sources), "result file"),
        table_body(columns, view.sources, _source_row),
    )


def _source_row(source: SourceFile) -> Sequence[str]:
    unreadable = "" if source.readable else " (not read to its end)"
    figures_ = (source.cases, source.passed, source.failures, source.errors, source.skipped)
    return (
        f"{code_span(source.path, limit=ID_LIMIT, cell=True)}{unreadable}",
        *(format_count(figure) for figure in figures_),
    )
