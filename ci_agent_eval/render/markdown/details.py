"""The sections that are folded: everything in full, what passed, where it was read from."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.analysis.summary import FailedAssertion, ScenarioSummary
from ci_agent_eval.contract.findings import SourceFile
from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render.baseline_findings import doubts, gating
from ci_agent_eval.render.comparison import key_of, notes
from ci_agent_eval.render.escape import code_span, fenced
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.blocks import Column, place
from ci_agent_eval.render.markdown.section import (
    ID_LIMIT,
    OUTPUT_LIMIT,
    REASON_LIMIT,
    SCENARIO,
    WHERE,
    WHOLE_REASON_LIMIT,
    Section,
    are_rated,
    cause_cell,
    failing_table,
    of_blocks,
    of_list,
    of_table,
    passes_cells,
    passes_columns,
    scenario_cell,
)
from ci_agent_eval.render.numbers import ABSENT, count, counted, milliseconds, money, percent
from ci_agent_eval.render.views import Cause, cause_of, causes, repeated, tries


def assertions(report: Report, links: Links) -> Section:
    """Return every failed assertion that a table above does not tell in full."""
    found = [
        (item.scenario, cause)
        for item in report.judged_scenarios()
        if item.scenario.tally.failed and not item.only_measures and not told_by_row(item)
        for cause in causes(item.scenario)
    ]
    title = counted(len(found), "failed assertion", "failed assertions")
    return Section(
        "assertions",
        f"{title} in full",
        ("failing assertion", "failing assertions"),
        of_list(found, lambda pair: assertion_line(pair[0], pair[1], links)),
        folded=True,
    )


def told_by_row(item: JudgedScenario) -> bool:
    """Say whether the one row of a failing scenario says all there is to say."""
    found = list(causes(item.scenario))
    texts = [text or "" for cause in found for text in (cause.name, cause.reason)]
    short = all(len(text) <= REASON_LIMIT for text in texts)
    return item.judgement.status == "failing" and len(found) <= 1 and short


def assertion_line(scenario: ScenarioSummary, cause: Cause, links: Links) -> str:
    """Return the line of a failed assertion: of what, how often, which, why, where."""
    where = place(cause.file, cause.line, links)
    times = ""
    if cause.iterations is not None and scenario.tally.ran > 1:
        times = f" in {count(cause.iterations)} of {count(scenario.tally.ran)} iterations"
    name = scenario_cell(scenario, cell=False)
    return f"{name}{times}: {cause_cell(cause, WHOLE_REASON_LIMIT)}, {where}"


def outputs(report: Report) -> Section:
    """Return what failing tests printed, mostly tracebacks."""
    found = [case for case in report.summary.tests.failing if case.detail]
    return Section(
        "outputs",
        f"Output of {counted(len(found), 'failing test')}",
        ("output of a test", "outputs of tests"),
        of_blocks(found, _output),
        folded=True,
    )


def _output(case: JUnitCase) -> str:
    return f"{code_span(case.title)}\n\n{fenced(case.detail or '', OUTPUT_LIMIT)}"


def advisory(report: Report, links: Links) -> Section:
    """Return scenarios that fail and only inform."""
    found = [item for item in report.advisory if item.judgement.status == "failing"]
    return Section(
        "advisory",
        f"Advisory, not gating: {counted(len(found), 'failing scenario')}",
        ("failing advisory scenario", "failing advisory scenarios"),
        failing_table(found, links, notes(report)),
        folded=True,
    )


def warnings(report: Report, links: Links) -> Section:
    """Return failed assertions that are warnings."""
    found = [
        (scenario, failed) for scenario in report.summary.scenarios for failed in scenario.warnings
    ]
    return Section(
        "warnings",
        counted(len(found), "warning"),
        ("warning", "warnings"),
        of_list(found, lambda pair: _warning_line(pair, links)),
        folded=True,
    )


def _warning_line(pair: tuple[ScenarioSummary, FailedAssertion], links: Links) -> str:
    scenario, failed = pair
    return assertion_line(scenario, cause_of(scenario, failed), links)


def flaky(report: Report, links: Links) -> Section:
    """Return what passed only on a retry."""
    found = [
        f"{scenario_cell(scenario, cell=False)}, {counted(scenario.flaky, 'iteration')}, "
        f"{place(scenario.file, scenario.line, links)}"
        for scenario in report.summary.scenarios
        if scenario.flaky
    ]
    found += [code_span(title) for title in report.summary.tests.flaky]
    return Section(
        "flaky",
        f"{count(len(found))} flaky: passed only on a retry",
        ("flaky scenario or test", "flaky scenarios or tests"),
        of_list(found, str),
        folded=True,
    )


def passing(report: Report, links: Links) -> Section:
    """Return what passed, with its cost and latency; what is over a hard budget is marked.

    What the gate fails by the baseline is no passing scenario; where it only warns, it says so.
    """
    against, told = gating(report), notes(report)
    found = [
        item
        for item in report.judged_scenarios()
        if item.is_passing and not item.only_measures and key_of(item.scenario) not in against
    ]
    over = sum(1 for item in found if _is_over(item))
    title = counted(len(found), "passing scenario")
    doubted = {doubt.key for doubt in doubts(report)}
    rated = are_rated(found)
    columns = (
        SCENARIO,
        *passes_columns(rated=rated),
        Column("cost per episode", figures=True),
        Column("p95 turn latency", figures=True),
        WHERE,
    )

    def row(item: JudgedScenario) -> Sequence[str]:
        key = key_of(item.scenario)
        note = told.get(key, "") if key in doubted else ""
        return _passing_row(item, links, note, rated=rated)

    return Section(
        "passing",
        f"{title}, {count(over)} over budget" if over else title,
        ("passing scenario", "passing scenarios"),
        of_table(columns, found, row),
        folded=True,
    )


def _passing_row(item: JudgedScenario, links: Links, note: str, *, rated: bool) -> Sequence[str]:
    scenario = item.scenario
    cost, latency = scenario.cost_usd, scenario.p95_latency_ms
    return (
        scenario_cell(scenario) + (f" ({note})" if note else ""),
        *passes_cells(item, rated=rated, note=", over budget" if _is_over(item) else ""),
        ABSENT if cost is None else money(cost / max(scenario.tally.ran, 1)),
        ABSENT if latency is None else milliseconds(latency),
        place(scenario.file, scenario.line, links, cell=True),
    )


def _is_over(item: JudgedScenario) -> bool:
    return any(found.violation.hard for found in item.scenario.violations)


def iterations(report: Report) -> Section:
    """Return what the iterations of a scenario came to together, and what they used."""
    found = repeated(report)
    titles = ("`pass@k`", "`pass^k`", "duration", "tokens", "cost")
    columns = (
        SCENARIO,
        *passes_columns(rated=True),
        *(Column(title, figures=True) for title in titles),
    )
    return Section(
        "iterations",
        f"Iterations of {counted(len(found), 'scenario')}, all together",
        ("scenario in iterations", "scenarios in iterations"),
        of_table(columns, found, _iterations_row),
        folded=True,
    )


def _iterations_row(item: JudgedScenario) -> Sequence[str]:
    scenario = item.scenario
    duration, tokens, cost = scenario.duration_ms, scenario.tokens, scenario.cost_usd
    return (
        scenario_cell(scenario),
        *passes_cells(item, rated=True),
        *_tries(scenario),
        ABSENT if duration is None else milliseconds(duration),
        ABSENT if tokens is None else count(tokens),
        ABSENT if cost is None else money(cost),
    )


def _tries(scenario: ScenarioSummary) -> Sequence[str]:
    """Write the chance that one of k tries passes, and that all do, for few tries and for most."""
    if not scenario.reliability:
        return ABSENT, ABSENT
    shown = tries(scenario)
    return (
        ", ".join(f"{percent(one.pass_at_k)} (k = {count(one.k)})" for one in shown),
        ", ".join(f"{percent(one.pass_hat_k)} (k = {count(one.k)})" for one in shown),
    )


def sources(report: Report) -> Section:
    """Return the files, with the counts of their cases."""
    found = report.summary.sources
    figure_columns = ("cases", "passed", "failures", "errors", "skipped")
    columns = (Column("file"), *(Column(title, figures=True) for title in figure_columns))
    return Section(
        "sources",
        counted(len(found), "result file"),
        ("result file", "result files"),
        of_table(columns, found, _source_row),
        folded=True,
    )


def _source_row(source: SourceFile) -> Sequence[str]:
    unreadable = "" if source.readable else " (not read to its end)"
    figures_ = (source.cases, source.passed, source.failures, source.errors, source.skipped)
    return (
        f"{code_span(source.path, limit=ID_LIMIT, cell=True)}{unreadable}",
        *(count(figure) for figure in figures_),
    )
