"""The sections of a comparison: its findings, other changes, and trajectory diffs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.comparison import CHANGES, ComparisonRow
from ci_agent_eval.render.escape import code_span, fenced
from ci_agent_eval.render.markdown.blocks import Column, render_place
from ci_agent_eval.render.markdown.section import (
    ID_LIMIT,
    REASON_LIMIT,
    SCENARIO,
    WHERE,
    Body,
    Section,
    of_blocks,
    of_list,
    of_table,
    render_name,
)
from ci_agent_eval.render.numbers import counted
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.render.trajectory_diff import MOST_DETOURS, TrajectoryDiff, join_steps


def figures(view: ReportView) -> Section:
    """Return the figures of the suite that were measured, beside those of the baseline."""
    rows, found = view.compared_figures, view.comparison
    columns = [Column("figure"), Column("this run", figures=True)]
    if found is not None:
        columns.append(Column(f"baseline {code_span(found.label, limit=60, cell=True)}", True))
        columns.append(Column("change", figures=True))
    width = len(columns)
    body = of_table(
        columns, rows, lambda row: (row.label, row.value, row.before, row.change)[:width]
    )
    method = "" if found is None else f"\n\n{found.method}"
    return Section(
        "figures",
        "Figures",
        ("figure", "figures"),
        Body(len(rows), lambda lines: body.write(lines) + method),
    )


def against(view: ReportView) -> Section:
    """Return the findings of the comparison against scenarios and figures of the suite."""
    columns = (
        SCENARIO,
        Column("before", figures=True),
        Column("now", figures=True),
        Column("against the baseline"),
        WHERE,
    )
    return Section(
        "against",
        "Against the baseline",
        ("line against the baseline", "lines against the baseline"),
        of_table(columns, view.baseline_findings, _finding_row),
        folded=not any(finding.gates for finding in view.baseline_findings),
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


def moved(view: ReportView) -> Section:
    """Return the scenarios that were fixed, new, renamed, newly over budget or not comparable."""
    found = view.comparison
    lines = [] if found is None else list(_list_changes(found.scenarios))
    kinds = list(dict.fromkeys(kind for kind, _ in lines))
    title = ", ".join(f"{sum(k == kind for k, _ in lines)} {kind}" for kind in kinds)
    return Section(
        "moved",
        f"Since the baseline: {title}",
        ("change since the baseline", "changes since the baseline"),
        of_list(lines, lambda line: f"{line[0]}: {line[1]}"),
        folded=True,
    )


Lines = Iterator[tuple[str, str]]
"""The kind of change, and the line of a scenario."""


def _list_changes(rows: Sequence[ComparisonRow]) -> Lines:
    each: tuple[Callable[[ComparisonRow], Lines], ...] = (
        _fixed, _newly_over, _other_conditions, _renamed, _new, _otherwise,
    )  # fmt: skip
    for lines in each:
        for row in rows:
            yield from lines(row)


def _fixed(row: ComparisonRow) -> Lines:
    if row.scenario.change == "fixed":
        yield CHANGES["fixed"], _with_passes(row)


def _newly_over(row: ComparisonRow) -> Lines:
    if row.scenario.newly_over:
        budgets = ", ".join(code_span(name, limit=ID_LIMIT) for name in row.scenario.newly_over)
        yield "newly over budget", f"{render_name(row.name)}, {budgets}"


def _other_conditions(row: ComparisonRow) -> Lines:
    if row.scenario.differences:
        kind, differences = CHANGES["not_comparable"], _differences(row)
        if row.scenario.change == "not_comparable":
            yield kind, f"{_with_passes(row)}, {differences}"
        else:
            yield f"partly {kind}", f"{_with_passes(row)}, {row.set_aside}: {differences}"


def _renamed(row: ComparisonRow) -> Lines:
    if row.scenario.renamed_from is not None:
        yield "renamed", f"{render_name(row.name)} was {code_span(row.scenario.renamed_from)}"


def _new(row: ComparisonRow) -> Lines:
    if row.scenario.change == "new":
        yield CHANGES["new"], render_name(row.name)


def _otherwise(row: ComparisonRow) -> Lines:
    if row.scenario.change not in CHANGES:
        yield row.change, _with_passes(row)


def _with_passes(row: ComparisonRow) -> str:
    return f"{render_name(row.name)}, {row.now} now, {row.before} before"


def _differences(row: ComparisonRow) -> str:
    return "; ".join(
        f"{d.condition} was {code_span(d.before)}, is {code_span(d.after)}"
        for d in row.scenario.differences
    )


def changed_ways(view: ReportView) -> Section:
    """Return the trajectory diff of each scenario that changed."""
    changed = view.comparison.changed if view.comparison else ()
    return Section(
        "ways",
        f"What changed in {counted(len(changed), 'scenario')}",
        ("trajectory that changed", "trajectories that changed"),
        of_blocks(changed, _way),
        folded=True,
    )


def other_ways(view: ReportView) -> Section:
    """Return the trajectory diffs of the first scenarios that did not change otherwise."""
    passing = view.comparison.detours if view.comparison else ()
    takes = "takes" if len(passing) == 1 else "take"
    return Section(
        "detours",
        f"{counted(len(passing), 'scenario')} {takes} another way",
        ("other way", "other ways"),
        of_blocks(passing, _way),
        folded=True,
        most=MOST_DETOURS,
    )


def _way(row: ComparisonRow) -> str:
    if row.diff is None:
        return ""
    where = f"first divergence at {row.diff.place}"
    if row.diff.argument is not None:
        where = f"{where}, argument {code_span(row.diff.argument, limit=REASON_LIMIT)}"
    return f"{render_name(row.name)}, {where}:\n\n{fenced(_diff(row.diff), 20_000, 'diff')}"


def _diff(found: TrajectoryDiff) -> str:
    before, after = (join_steps(names, found.call, " → ") for names in (found.before, found.after))
    return f"  {before}" if before == after else f"- {before}\n+ {after}"
