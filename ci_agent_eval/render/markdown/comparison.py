"""The sections of a comparison: its findings, other changes, and trajectory diffs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

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
from ci_agent_eval.render.trajectory_diff import MOST_DIVERGING, TrajectoryDiff, join_steps


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
    rows = found.scenarios if found else ()
    ranked = sorted((line for row in rows for line in _list_changes(row)), key=lambda line: line[0])
    kinds = Counter(kind for _, kind, _ in ranked)
    title = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    return Section(
        "changes",
        f"Since the baseline: {title}",
        list_body(ranked, lambda line: f"{line[1]}: {line[2]}"),
    )


def _list_changes(row: ComparisonRow) -> Iterator[tuple[int, str, str]]:
    """Yield rank, kind and line of each change that no list of failures has."""
    scenario, name = row.scenario, render_name(row.name)
    passes = f"{name}, {row.now} now, {row.before} before"
    if row.is_newly_failing_advisory:
        yield 0, CHANGES["newly_failing"], passes
    if scenario.change == "fixed":
        yield 1, CHANGES["fixed"], passes
    if scenario.newly_over:
        budgets = ", ".join(code_span(budget, limit=ID_LIMIT) for budget in scenario.newly_over)
        yield 2, "newly over budget", f"{name}, {budgets}"
    if scenario.differences:
        kind, differences = CHANGES["not_comparable"], _join_differences(row)
        if scenario.change == "not_comparable":
            yield 3, kind, f"{passes}, {differences}"
        else:
            yield 3, f"partly {kind}", f"{passes}, {row.set_aside}: {differences}"
    if scenario.renamed_from is not None:
        yield 4, "renamed", f"{name} was {code_span(scenario.renamed_from)}"
    if scenario.change == "new":
        yield 5, CHANGES["new"], name
    if scenario.change not in CHANGES:
        yield 6, row.change, passes


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


def build_diverging_section(view: ReportView) -> Section:
    """Return the trajectory diffs of the first scenarios that did not change otherwise."""
    passing = view.comparison.diverging_scenarios if view.comparison else ()
    makes = "makes" if len(passing) == 1 else "make"
    return Section(
        "diverging",
        f"{count_noun(len(passing), 'scenario')} {makes} other tool calls",
        blocks_body(passing, _render_diff),
        most=MOST_DIVERGING,
    )


def _render_diff(row: ComparisonRow) -> str:
    if row.diff is None:
        return ""
    where = f"first divergence at {row.diff.place}"
    if row.diff.argument is not None:
        where = f"{where}, argument {code_span(row.diff.argument, limit=REASON_LIMIT)}"
    if row.diff.episodes:
        where = f"{where}, {row.diff.episodes}"
    return (
        f"{render_name(row.name)}, {where}:\n\n{code_block(_join_sides(row.diff), 20_000, 'diff')}"
    )


def _join_sides(found: TrajectoryDiff) -> str:
    before, after = (join_steps(names, found.call, " → ") for names in (found.before, found.after))
    if before == after:
        return f"  {before}"
    return f"- {_add_share(before, found.share_before)}\n+ {_add_share(after, found.share_after)}"


def _add_share(steps: str, share: str) -> str:
    return f"{steps}  ({share})" if share else steps
