"""The sections of a comparison: its findings, other changes, and trajectory diffs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.comparison_view import CHANGES, ComparisonRow
from ci_agent_eval.render.escape import code_block, code_span
from ci_agent_eval.render.markdown.blocks import TableColumn, render_place
from ci_agent_eval.render.markdown.section import (
    ID_LIMIT,
    REASON_LIMIT,
    SCENARIO,
    WHERE,
    Section,
    SectionBody,
    blocks_body,
    list_body,
    render_name,
    table_body,
)
from ci_agent_eval.render.numbers import count_noun
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.render.trajectory_diff import MOST_DETOURS, TrajectoryDiff, join_steps


def build_figures_section(view: ReportView) -> Section:
    """Return the figures of the suite that were measured, beside those of the baseline."""
    rows, found = view.compared_figures, view.comparison
    columns = [TableColumn("figure"), TableColumn("this run", figures=True)]
    if found is not None:
        columns.append(TableColumn(f"baseline {code_span(found.label, limit=60, cell=True)}", True))
        columns.append(TableColumn("change", figures=True))
    width = len(columns)
    body = table_body(
        columns, rows, lambda row: (row.label, row.value, row.before, row.change)[:width]
    )
    method = "" if found is None else f"\n\n{found.method}"
    return Section(
        "figures", "Figures", SectionBody(len(rows), lambda lines: body.write(lines) + method)
    )


def build_baseline_section(view: ReportView) -> Section:
    """Return the findings of the comparison against scenarios and figures of the suite."""
    columns = (
        SCENARIO,
        TableColumn("before", figures=True),
        TableColumn("now", figures=True),
        TableColumn("against the baseline"),
        WHERE,
    )
    return Section(
        "baseline",
        "Against the baseline",
        table_body(columns, view.baseline_findings, _finding_row),
        is_open=any(finding.gates for finding in view.baseline_findings),
    )


def _finding_row(finding: BaselineFinding) -> Sequence[str]:
    compared, quoted = finding.compared, finding.quoted
    is_advisory = compared is not None and not compared.scenario.required
    detail = f": {code_span(quoted, limit=REASON_LIMIT, cell=True)}" if quoted else ""
    return (
        render_name(finding.name, cell=True) + (" (advisory)" if is_advisory else ""),
        finding.before,
        finding.now,
        finding.text + detail,
        render_place(finding.place, cell=True),
    )


def build_changes_section(view: ReportView) -> Section:
    """Return the scenarios that were fixed, new, renamed, newly over budget or not comparable."""
    found = view.comparison
    lines = [] if found is None else list(_list_changes(found.scenarios))
    kinds = list(dict.fromkeys(kind for kind, _ in lines))
    title = ", ".join(f"{sum(k == kind for k, _ in lines)} {kind}" for kind in kinds)
    return Section(
        "changes",
        f"Since the baseline: {title}",
        list_body(lines, lambda line: f"{line[0]}: {line[1]}"),
    )


Lines = Iterator[tuple[str, str]]
"""The kind of change, and the line of a scenario."""


def _list_changes(rows: Sequence[ComparisonRow]) -> Lines:
    each: tuple[Callable[[ComparisonRow], Lines], ...] = (
        _list_fixed, _list_newly_over, _list_incomparable, _list_renamed, _list_new, _list_others,
    )  # fmt: skip
    for lines in each:
        for row in rows:
            yield from lines(row)


def _list_fixed(row: ComparisonRow) -> Lines:
    if row.scenario.change == "fixed":
        yield CHANGES["fixed"], _add_passes(row)


def _list_newly_over(row: ComparisonRow) -> Lines:
    if row.scenario.newly_over:
        budgets = ", ".join(code_span(name, limit=ID_LIMIT) for name in row.scenario.newly_over)
        yield "newly over budget", f"{render_name(row.name)}, {budgets}"


def _list_incomparable(row: ComparisonRow) -> Lines:
    if row.scenario.differences:
        kind, differences = CHANGES["not_comparable"], _join_differences(row)
        if row.scenario.change == "not_comparable":
            yield kind, f"{_add_passes(row)}, {differences}"
        else:
            yield f"partly {kind}", f"{_add_passes(row)}, {row.set_aside}: {differences}"


def _list_renamed(row: ComparisonRow) -> Lines:
    if row.scenario.renamed_from is not None:
        yield "renamed", f"{render_name(row.name)} was {code_span(row.scenario.renamed_from)}"


def _list_new(row: ComparisonRow) -> Lines:
    if row.scenario.change == "new":
        yield CHANGES["new"], render_name(row.name)


def _list_others(row: ComparisonRow) -> Lines:
    if row.scenario.change not in CHANGES:
        yield row.change, _add_passes(row)


def _add_passes(row: ComparisonRow) -> str:
    return f"{render_name(row.name)}, {row.now} now, {row.before} before"


def _join_differences(row: ComparisonRow) -> str:
    return "; ".join(
        f"{d.condition} was {code_span(d.before)}, is {code_span(d.after)}"
        for d in row.scenario.differences
    )


def build_changed_diffs_section(view: ReportView) -> Section:
    """Return the trajectory diff of each scenario that changed."""
    changed = view.comparison.changed_scenarios if view.comparison else ()
    return Section(
        "changed_diffs",
        f"What changed in {count_noun(len(changed), 'scenario')}",
        blocks_body(changed, _render_diff),
    )


def build_detours_section(view: ReportView) -> Section:
    """Return the trajectory diffs of the first scenarios that did not change otherwise."""
    passing = view.comparison.detoured_scenarios if view.comparison else ()
    takes = "takes" if len(passing) == 1 else "take"
    return Section(
        "detours",
        f"{count_noun(len(passing), 'scenario')} {takes} another way",
        blocks_body(passing, _render_diff),
        most=MOST_DETOURS,
    )


def _render_diff(row: ComparisonRow) -> str:
    if row.diff is None:
        return ""
    where = f"first divergence at {row.diff.place}"
    if row.diff.argument is not None:
        where = f"{where}, argument {code_span(row.diff.argument, limit=REASON_LIMIT)}"
    return (
        f"{render_name(row.name)}, {where}:\n\n{code_block(_join_sides(row.diff), 20_000, 'diff')}"
    )


def _join_sides(found: TrajectoryDiff) -> str:
    before, after = (join_steps(names, found.call, " → ") for names in (found.before, found.after))
    return f"  {before}" if before == after else f"- {before}\n+ {after}"
