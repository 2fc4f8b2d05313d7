"""The sections of a comparison: what the baseline speaks against, what moved, which way it went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_agent_eval.comparison.model import Comparison, Divergence, ScenarioComparison
from ci_agent_eval.render.blocks import Column
from ci_agent_eval.render.compared import (
    CHANGES,
    PATH_STEPS,
    Doubt,
    comparison_of,
    doubts,
    figure_rows,
    method,
    passes_of,
    shifted,
)
from ci_agent_eval.render.escape import code_span, fenced, one_line
from ci_agent_eval.render.numbers import count, counted
from ci_agent_eval.render.section import (
    ID_LIMIT,
    REASON_LIMIT,
    SCENARIO,
    Section,
    of_list,
    of_table,
)
from ci_agent_eval.report import Report

_STEP_LIMIT = 80
"""Characters of a tool's name in a sequence."""


def figures(report: Report) -> Section:
    """Return the figures of the suite that were measured, beside those of the baseline."""
    rows, found = figure_rows(report), comparison_of(report)
    columns = [Column("figure"), Column("this run", figures=True)]
    if found is not None:
        columns.append(Column(f"baseline {code_span(found.label, limit=60, cell=True)}", True))
        columns.append(Column("change", figures=True))
    width = len(columns)
    body = of_table(
        columns, rows, lambda row: (row.label, row.value, row.before, row.change)[:width]
    )
    return Section(
        "figures",
        "Figures",
        ("figure", "figures"),
        len(rows),
        body if found is None else lambda lines: f"{body(lines)}\n\n{method(found)}",
    )


def against(report: Report) -> Section:
    """Return what passes, or did not run, and the baseline speaks against."""
    found = doubts(report)
    columns = (
        SCENARIO,
        Column("before", figures=True),
        Column("now", figures=True),
        Column("against the baseline"),
    )
    return Section(
        "against",
        "Against the baseline",
        ("scenario against the baseline", "scenarios against the baseline"),
        len(found),
        of_table(columns, found, _doubt_row),
        folded=not any(doubt.gates for doubt in found),
    )


def _doubt_row(doubt: Doubt) -> Sequence[str]:
    note = "" if doubt.scenario.required else " (advisory)"
    return (named(doubt.scenario, cell=True) + note, *passes_of(doubt.scenario), doubt.what)


def named(scenario: ScenarioComparison, *, cell: bool = False) -> str:
    """Return a scenario's name and agent, in code."""
    name = code_span(scenario.scenario_id, limit=ID_LIMIT, cell=cell)
    if scenario.agent is None:
        return name
    return f"{name} (agent {code_span(scenario.agent, limit=ID_LIMIT, cell=cell)})"


def moved(report: Report) -> Section:
    """Return what was fixed, is new, was renamed, is newly over budget or not comparable."""
    found = comparison_of(report)
    lines = [] if found is None else list(_moved(found))
    kinds = list(dict.fromkeys(kind for kind, _ in lines))
    title = ", ".join(f"{sum(k == kind for k, _ in lines)} {kind}" for kind in kinds)
    return Section(
        "moved",
        f"Since the baseline: {title}",
        ("change since the baseline", "changes since the baseline"),
        len(lines),
        of_list(lines, lambda line: f"{line[0]}: {line[1]}"),
        folded=True,
    )


def _moved(found: Comparison) -> Iterator[tuple[str, str]]:
    for scenario in found.of("fixed"):
        before, now = passes_of(scenario)
        yield CHANGES["fixed"], f"{named(scenario)}, {now} now, {before} before"
    for scenario in found.scenarios:
        if scenario.newly_over:
            budgets = ", ".join(code_span(name, limit=ID_LIMIT) for name in scenario.newly_over)
            yield "newly over budget", f"{named(scenario)}, {budgets}"
    for scenario in found.of("not_comparable"):
        differences = "; ".join(
            f"{d.condition} was {code_span(d.before)}, is {code_span(d.after)}"
            for d in scenario.differences
        )
        yield CHANGES["not_comparable"], f"{named(scenario)}, {differences}"
    for scenario in found.scenarios:
        if scenario.renamed_from is not None:
            yield "renamed", f"{named(scenario)} was {code_span(scenario.renamed_from)}"
    for scenario in found.of("new"):
        yield CHANGES["new"], named(scenario)


def ways(report: Report) -> Section:
    """Return the trajectory diff of each scenario that changed."""
    found = comparison_of(report)
    changed = [] if found is None else shifted(found)
    return Section(
        "ways",
        f"What changed in {counted(len(changed), 'scenario')}",
        ("trajectory that changed", "trajectories that changed"),
        len(changed),
        lambda lines: "\n\n".join(_way(scenario) for scenario in changed[:lines]),
        folded=True,
    )


def _way(scenario: ScenarioComparison) -> str:
    parted = scenario.divergence
    assert parted is not None, "only what took another way is shown"  # noqa: S101 - see shifted
    return f"{named(scenario)}, {_where(parted)}:\n\n{fenced(_diff(parted), 20_000, 'diff')}"


def _where(parted: Divergence) -> str:
    place = f"first divergence at turn {count(parted.turn)}, tool call {count(parted.call)}"
    if parted.argument is None:
        return place
    return f"{place}, argument {code_span(parted.argument, limit=REASON_LIMIT)}"


def _diff(parted: Divergence) -> str:
    if parted.before == parted.after:
        return f"  {_sequence(parted.before, parted.call)}"
    before, after = (_sequence(names, parted.call) for names in (parted.before, parted.after))
    return f"- {before}\n+ {after}"


def _sequence(names: Sequence[str], call: int) -> str:
    """Return tool calls in order; of a long sequence the part where it leaves the other."""
    start = max(0, min(call - PATH_STEPS // 2, len(names) - PATH_STEPS))
    shown = [one_line(name, _STEP_LIMIT) for name in names[start : start + PATH_STEPS]]
    if start:
        shown.insert(0, f"… ({counted(start, 'call')} before)")
    if rest := len(names) - start - PATH_STEPS:
        shown += [f"… ({count(rest)} more)"] if rest > 0 else []
    return " → ".join(shown) or "(no tool call)"
