"""The comparison with the baseline in the terminal report: findings, changes, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.comparison_view import ComparisonRow
from ci_agent_eval.render.escape import escape_terminal
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.render.suite_figures import FigureRow
from ci_agent_eval.render.terminal.entries import NAME_LIMIT, WHOLE_LIMIT, format_name
from ci_agent_eval.render.terminal.layout import (
    DIM,
    RED,
    YELLOW,
    TerminalEntry,
    TerminalStyle,
    render_block,
)
from ci_agent_eval.render.trajectory_diff import MOST_DIVERGING, join_steps


def render_findings(view: ReportView, style: TerminalStyle) -> str:
    """Return the findings of the comparison against scenarios and figures of the suite."""
    found = view.baseline_findings
    code = RED if any(finding.gates for finding in found) else YELLOW
    return render_block("Against the baseline", found, _build_finding, style, code)


def _build_finding(finding: BaselineFinding) -> TerminalEntry:
    quoted = f": {escape_terminal(finding.quoted)}" if finding.quoted else ""
    figure = f"{finding.before} -> {finding.now}"
    return TerminalEntry(format_name(finding.name), figure, finding.text + quoted)


def render_changes(view: ReportView, style: TerminalStyle) -> Iterator[str]:
    """Yield the trajectory diffs, and the scenarios that changed otherwise."""
    found = view.comparison
    if found is not None:
        yield render_block("What changed", found.changed_scenarios, _build_diff, style, DIM)
        yield render_block(
            "Other tool calls",
            found.diverging_scenarios,
            _build_diff,
            style,
            DIM,
            most=MOST_DIVERGING,
        )
        yield render_block(
            "Since the baseline", found.unlisted_scenarios, _build_change, style, DIM
        )


def _build_diff(row: ComparisonRow) -> TerminalEntry:
    name, diff = escape_terminal(row.scenario.scenario_id, NAME_LIMIT), row.diff
    if diff is None:
        return TerminalEntry(name, "", "")
    argument = f", argument {escape_terminal(diff.argument)}" if diff.argument else ""
    before, after = (
        escape_terminal(join_steps(names, diff.call, " -> "), WHOLE_LIMIT)
        for names in (diff.before, diff.after)
    )
    shares = [f" ({share})" if share else "" for share in (diff.share_before, diff.share_after)]
    text = before if before == after else f"was {before}{shares[0]}; is {after}{shares[1]}"
    place = ", ".join(part for part in (f"{diff.place}{argument}", diff.episodes) if part)
    return TerminalEntry(name, place, text)


def list_tool_lines(view: ReportView) -> Iterator[str]:
    """Yield a line for each tool that was renamed, or that more or fewer episodes call."""
    if view.comparison is None:
        return
    for row in view.comparison.shown_tools:
        names = [escape_terminal(name, NAME_LIMIT) for name in (row.tool, row.renamed_to) if name]
        yield f"Tool {' -> '.join(names)} {row.change}"
    if view.comparison.hidden_tools:
        yield f"{view.comparison.hidden_tools}, in verdict.json"


def _build_change(row: ComparisonRow) -> TerminalEntry:
    scenario = row.scenario
    differences = "; ".join(
        f"{d.condition} was {d.before}, is {d.after}" for d in scenario.differences
    )
    if differences and scenario.change != "not_comparable":
        differences = f"{row.set_aside}: {differences}"
    over = f"newly over budget: {', '.join(scenario.newly_over)}" if scenario.newly_over else ""
    was = f"was {scenario.renamed_from}" if scenario.renamed_from else ""
    text = "; ".join(part for part in (differences, over, was) if part)
    name = escape_terminal(scenario.scenario_id, NAME_LIMIT)
    shown = escape_terminal(text) if text else ""
    return TerminalEntry(name, f"{row.change}, {row.before} -> {row.now}", shown)


def list_figure_lines(rows: Sequence[FigureRow], *, is_compared: bool) -> Iterator[str]:
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
