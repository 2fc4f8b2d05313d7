"""The comparison with the baseline in the terminal report: findings, changes, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.comparison import ComparisonRow, FigureRow
from ci_agent_eval.render.escape import terminal
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.render.terminal.entries import NAME_LIMIT, WHOLE_LIMIT, name_text
from ci_agent_eval.render.terminal.layout import DIM, RED, YELLOW, Entry, Paper, block
from ci_agent_eval.render.trajectory_diff import MOST_DETOURS, join_steps


def against(view: ReportView, paper: Paper) -> str:
    """Return the findings of the comparison against scenarios and figures of the suite."""
    found = view.baseline_findings
    code = RED if any(finding.gates for finding in found) else YELLOW
    return block("Against the baseline", found, _finding, paper, code)


def _finding(finding: BaselineFinding) -> Entry:
    quoted = f": {terminal(finding.quoted)}" if finding.quoted else ""
    figure = f"{finding.before} -> {finding.now}"
    return Entry(name_text(finding.name), figure, finding.text + quoted)


def changes(view: ReportView, paper: Paper) -> Iterator[str]:
    """Yield the trajectory diffs, and the scenarios that changed otherwise."""
    found = view.comparison
    if found is not None:
        yield block("What changed", found.changed, _way, paper, DIM)
        yield block("Pass by another way", found.detours, _way, paper, DIM, most=MOST_DETOURS)
        yield block("Since the baseline", found.unlisted, _moved, paper, DIM)


def _way(row: ComparisonRow) -> Entry:
    name, diff = terminal(row.scenario.scenario_id, NAME_LIMIT), row.diff
    if diff is None:
        return Entry(name, "", "")
    argument = f", argument {terminal(diff.argument)}" if diff.argument else ""
    before, after = (
        terminal(join_steps(names, diff.call, " -> "), WHOLE_LIMIT)
        for names in (diff.before, diff.after)
    )
    text = before if before == after else f"was {before}; is {after}"
    return Entry(name, f"{diff.place}{argument}", text)


def _moved(row: ComparisonRow) -> Entry:
    scenario = row.scenario
    differences = "; ".join(
        f"{d.condition} was {d.before}, is {d.after}" for d in scenario.differences
    )
    if differences and scenario.change != "not_comparable":
        differences = f"{row.set_aside}: {differences}"
    over = f"newly over budget: {', '.join(scenario.newly_over)}" if scenario.newly_over else ""
    was = f"was {scenario.renamed_from}" if scenario.renamed_from else ""
    text = "; ".join(part for part in (differences, over, was) if part)
    name = terminal(scenario.scenario_id, NAME_LIMIT)
    shown = terminal(text) if text else ""
    return Entry(name, f"{row.change}, {row.before} -> {row.now}", shown)


def figures(rows: Sequence[FigureRow], *, is_compared: bool) -> Iterator[str]:
    """Yield the lines of the suite's figures, beside those of the baseline if it is compared."""
    columns = [("", *(row.label for row in rows)), ("", *(row.value for row in rows))]
    if is_compared:
        columns[1] = ("now", *(row.value for row in rows))
        columns.append(("before", *(row.before for row in rows)))
        columns.append(("change", *(row.change for row in rows)))
    widths = [max(map(len, column), default=0) for column in columns]
    lines = list(zip(*columns, strict=True))
    for label, *values in lines if is_compared else lines[1:]:
        shown = [f"{value:>{width}}" for value, width in zip(values, widths[1:], strict=True)]
        yield "  ".join(["", f"{label:<{widths[0]}}", *shown])
