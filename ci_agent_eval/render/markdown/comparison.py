"""The sections of a comparison: what the baseline speaks against, what moved, which way it went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_agent_eval.analysis.comparison.findings import describe_set_aside
from ci_agent_eval.analysis.comparison.model import Comparison, Divergence, ScenarioComparison
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.baseline_findings import Doubt, doubts
from ci_agent_eval.render.comparison import (
    CHANGES,
    change_of,
    comparison_of,
    figure_rows,
    key_of,
    method,
    passes_of,
)
from ci_agent_eval.render.escape import code_span, fenced
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.blocks import Column, place
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
)
from ci_agent_eval.render.numbers import ABSENT, counted
from ci_agent_eval.render.trajectory_diff import (
    MOST_DETOURS,
    detours,
    place_of,
    sequence,
    shifted,
    ways_of,
)


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
        body if found is None else Body(len(rows), lambda n: f"{body.write(n)}\n\n{method(found)}"),
    )


def against(report: Report, links: Links) -> Section:
    """Return what passes, or did not run, and the baseline speaks against; figures that rose."""
    found = doubts(report)
    scenarios = {key_of(scenario): scenario for scenario in report.summary.scenarios}
    columns = (
        SCENARIO,
        Column("before", figures=True),
        Column("now", figures=True),
        Column("against the baseline"),
        WHERE,
    )

    def row(doubt: Doubt) -> Sequence[str]:
        stands = None if doubt.key is None else scenarios.get(doubt.key)
        return (
            _about(doubt),
            doubt.before,
            doubt.now,
            _what(doubt),
            place(stands.file, stands.line, links, cell=True) if stands else ABSENT,
        )

    return Section(
        "against",
        "Against the baseline",
        ("line against the baseline", "lines against the baseline"),
        of_table(columns, found, row),
        folded=not any(doubt.gates for doubt in found),
    )


def _about(doubt: Doubt) -> str:
    if doubt.scenario is not None:
        note = "" if doubt.scenario.required else " (advisory)"
        return named(doubt.scenario, cell=True) + note
    name = doubt.reason.scenario_id
    return "the whole suite" if name is None else code_span(name, limit=ID_LIMIT, cell=True)


def _what(doubt: Doubt) -> str:
    if not doubt.quoted:
        return doubt.what
    return f"{doubt.what}: {code_span(doubt.quoted, limit=REASON_LIMIT, cell=True)}"


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
        of_list(lines, lambda line: f"{line[0]}: {line[1]}"),
        folded=True,
    )


def _moved(found: Comparison) -> Iterator[tuple[str, str]]:
    """Yield what became of scenarios that are in no list of trouble: the kind, then which."""
    each = (_fixed, _newly_over, _other_conditions, _renamed, _new, _otherwise)
    for said in each:
        for scenario in found.scenarios:
            yield from said(scenario)


Said = Iterator[tuple[str, str]]


def _fixed(scenario: ScenarioComparison) -> Said:
    if scenario.change == "fixed":
        yield CHANGES["fixed"], _with_passes(scenario)


def _newly_over(scenario: ScenarioComparison) -> Said:
    if scenario.newly_over:
        budgets = ", ".join(code_span(name, limit=ID_LIMIT) for name in scenario.newly_over)
        yield "newly over budget", f"{named(scenario)}, {budgets}"


def _other_conditions(scenario: ScenarioComparison) -> Said:
    if scenario.differences:
        whole = CHANGES["not_comparable"]
        if scenario.change == "not_comparable":
            yield whole, f"{_with_passes(scenario)}, {_differences(scenario)}"
        else:
            told = f"{describe_set_aside(scenario)}: {_differences(scenario)}"
            yield f"partly {whole}", f"{_with_passes(scenario)}, {told}"


def _renamed(scenario: ScenarioComparison) -> Said:
    if scenario.renamed_from is not None:
        yield "renamed", f"{named(scenario)} was {code_span(scenario.renamed_from)}"


def _new(scenario: ScenarioComparison) -> Said:
    if scenario.change == "new":
        yield CHANGES["new"], named(scenario)


def _otherwise(scenario: ScenarioComparison) -> Said:
    if scenario.change not in CHANGES:
        yield change_of(scenario), _with_passes(scenario)


def _with_passes(scenario: ScenarioComparison) -> str:
    before, now = passes_of(scenario)
    return f"{named(scenario)}, {now} now, {before} before"


def _differences(scenario: ScenarioComparison) -> str:
    return "; ".join(
        f"{d.condition} was {code_span(d.before)}, is {code_span(d.after)}"
        for d in scenario.differences
    )


def changed_ways(report: Report) -> Section:
    """Return the trajectory diff of each scenario that changed."""
    found = comparison_of(report)
    changed = [] if found is None else shifted(found)
    return Section(
        "ways",
        f"What changed in {counted(len(changed), 'scenario')}",
        ("trajectory that changed", "trajectories that changed"),
        of_blocks(changed, _way),
        folded=True,
    )


def other_ways(report: Report) -> Section:
    """Return the trajectory diffs of the first scenarios that pass, but by another way."""
    found = comparison_of(report)
    passing = [] if found is None else detours(found)
    takes = "takes" if len(passing) == 1 else "take"
    return Section(
        "detours",
        f"{counted(len(passing), 'scenario')} {takes} another way",
        ("other way", "other ways"),
        of_blocks(passing, _way),
        folded=True,
        most=MOST_DETOURS,
    )


def _way(scenario: ScenarioComparison) -> str:
    parted = scenario.divergence
    assert parted is not None, "only what took another way is shown"  # noqa: S101 - see shifted
    return f"{named(scenario)}, {_where(parted)}:\n\n{fenced(_diff(parted), 20_000, 'diff')}"


def _where(parted: Divergence) -> str:
    where = f"first divergence at {place_of(parted)}"
    if parted.argument is None:
        return where
    return f"{where}, argument {code_span(parted.argument, limit=REASON_LIMIT)}"


def _diff(parted: Divergence) -> str:
    before, after = (sequence(names, parted.call, " → ") for names in ways_of(parted))
    return f"  {before}" if before == after else f"- {before}\n+ {after}"
