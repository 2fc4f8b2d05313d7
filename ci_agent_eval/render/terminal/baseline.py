"""What the report for a terminal says of the baseline: doubts, changes, and figures before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_agent_eval.analysis.comparison.findings import describe_set_aside
from ci_agent_eval.analysis.comparison.model import ScenarioComparison
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.baseline_findings import Doubt, doubts
from ci_agent_eval.render.comparison import (
    FigureRow,
    change_of,
    comparison_of,
    moved,
    passes_of,
)
from ci_agent_eval.render.escape import terminal
from ci_agent_eval.render.terminal.entries import NAME_LIMIT, WHOLE_LIMIT
from ci_agent_eval.render.terminal.layout import DIM, RED, YELLOW, Entry, Paper, block
from ci_agent_eval.render.trajectory_diff import (
    MOST_DETOURS,
    detours,
    place_of,
    sequence,
    shifted,
    ways_of,
)


def against(report: Report, paper: Paper) -> str:
    """Return what passes, or did not run, and the baseline speaks against; figures that rose."""
    found = doubts(report)
    code = RED if any(doubt.gates for doubt in found) else YELLOW
    return block("Against the baseline", found, _doubt, paper, code)


def _doubt(doubt: Doubt) -> Entry:
    about, agent = doubt.reason.scenario_id, doubt.reason.agent
    name = "the whole suite" if about is None else terminal(about, NAME_LIMIT)
    if agent is not None:
        name = f"{name} (agent {terminal(agent, NAME_LIMIT)})"
    quoted = f": {terminal(doubt.quoted)}" if doubt.quoted else ""
    return Entry(name, f"{doubt.before} -> {doubt.now}", doubt.what + quoted)


def changes(report: Report, paper: Paper) -> Iterator[str]:
    """Yield which way scenarios went, and what else moved."""
    found = comparison_of(report)
    if found is not None:
        yield block("What changed", shifted(found), _way, paper, DIM)
        other = detours(found)
        yield block("Pass by another way", other, _way, paper, DIM, most=MOST_DETOURS)
        yield block("Since the baseline", moved(found), _moved, paper, DIM)


def _way(scenario: ScenarioComparison) -> Entry:
    parted = scenario.divergence
    assert parted is not None, "only what took another way is shown"  # noqa: S101 - see shifted
    argument = f", argument {terminal(parted.argument)}" if parted.argument else ""
    before, after = (
        terminal(sequence(names, parted.call, " -> "), WHOLE_LIMIT) for names in ways_of(parted)
    )
    text = before if before == after else f"was {before}; is {after}"
    return Entry(terminal(scenario.scenario_id, NAME_LIMIT), f"{place_of(parted)}{argument}", text)


def _moved(scenario: ScenarioComparison) -> Entry:
    before, now = passes_of(scenario)
    differences = "; ".join(
        f"{d.condition} was {d.before}, is {d.after}" for d in scenario.differences
    )
    if differences and scenario.change != "not_comparable":
        differences = f"{describe_set_aside(scenario)}: {differences}"
    over = f"newly over budget: {', '.join(scenario.newly_over)}" if scenario.newly_over else ""
    was = f"was {scenario.renamed_from}" if scenario.renamed_from else ""
    text = "; ".join(part for part in (differences, over, was) if part)
    name = terminal(scenario.scenario_id, NAME_LIMIT)
    shown = terminal(text) if text else ""
    return Entry(name, f"{change_of(scenario)}, {before} -> {now}", shown)


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
