"""The sections of the Markdown report, in the order in which a reader meets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from ci_agent_eval.contract.findings import Finding, FindingKind, SourceFile
from ci_agent_eval.facts import JUnitCase
from ci_agent_eval.render.blocks import Column, fold, items, place, table
from ci_agent_eval.render.escape import code_span, fenced
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.numbers import (
    ABSENT,
    NOT_MEASURED,
    count,
    counted,
    milliseconds,
    money,
    percent,
)
from ci_agent_eval.render.views import (
    Cause,
    Overrun,
    cause_of,
    causes,
    error_cause,
    figures,
    first_cause,
    of,
    overruns,
)
from ci_agent_eval.report import Judged, Report
from ci_agent_eval.summary import FailedAssertion, ScenarioSummary

T = TypeVar("T")

SectionName = Literal[
    "figures",
    "failing",
    "tests",
    "errors",
    "skipped",
    "overruns",
    "findings",
    "assertions",
    "outputs",
    "advisory",
    "warnings",
    "flaky",
    "passing",
    "sources",
]

NAMES: tuple[SectionName, ...] = get_args(SectionName)

ID_LIMIT = 120
REASON_LIMIT = 300
WHOLE_REASON_LIMIT = 1_000
OUTPUT_LIMIT = 2_000


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report that can be shortened to its first lines, or left out."""

    name: SectionName
    title: str
    noun: tuple[str, str]
    """What one of its lines is called, and several."""
    total: int
    """How many lines it has."""
    body: Callable[[int], str]
    """Its Markdown with that many lines, at least one."""
    folded: bool = False
    """Whether it is folded in a report of a run that failed."""

    def render(self, lines: int, *, folded: bool, whole: str) -> str:
        """Return the section with at most so many lines, saying how many more there are.

        `whole` says where all of them are.
        """
        shown = min(lines, self.total)
        if not shown:
            return ""
        body = self.body(shown)
        if rest := self.total - shown:
            body = f"{body}\n\nand {count(rest)} more; {whole}"
        if self.name == "figures":
            return body
        return fold(self.title, body) if folded else f"**{self.title}**\n\n{body}"


def sections(report: Report, links: Links) -> tuple[Section, ...]:
    """Return the sections that have something to say."""
    built = (
        _figures(report),
        _failing(report, links),
        _tests(report, links),
        _errors(report, links),
        _skipped(report, links),
        _overruns(report, links),
        _findings(report),
        _assertions(report, links),
        _outputs(report),
        _advisory(report, links),
        _warnings(report, links),
        _flaky(report, links),
        _passing(report, links),
        _sources(report),
    )
    return tuple(section for section in built if section.total)


def _of_table(
    columns: Sequence[Column], found: Sequence[T], row: Callable[[T], Sequence[str]]
) -> Callable[[int], str]:
    return lambda lines: table(columns, [row(item) for item in found[:lines]])


def _of_list(found: Sequence[T], line: Callable[[T], str]) -> Callable[[int], str]:
    return lambda lines: items(line(item) for item in found[:lines])


def _figures(report: Report) -> Section:
    # A comparison adds its columns here.
    found = list(figures(report))
    columns = (Column("figure"), Column("this run", figures=True))
    return Section(
        "figures",
        "Figures",
        ("figure", "figures"),
        len(found),
        _of_table(columns, found, lambda figure: figure),
    )


_SCENARIO = Column("scenario")
_WHERE = Column("where")


def _failing(report: Report, links: Links) -> Section:
    found = [item for item in report.required if item.judgement.status == "failing"]
    columns = (_SCENARIO, Column("passes", figures=True), Column("first failing assertion"), _WHERE)
    return Section(
        "failing",
        "Failing",
        ("failing scenario", "failing scenarios"),
        len(found),
        _of_table(columns, found, lambda item: _failing_row(item, links)),
    )


def _failing_row(item: Judged, links: Links) -> Sequence[str]:
    scenario, cause = item.scenario, first_cause(item.scenario)
    return (
        _scenario(scenario),
        _passes(item),
        _cause(cause, REASON_LIMIT, cell=True),
        place(cause.file, cause.line, links, cell=True),
    )


def _passes(item: Judged) -> str:
    passes = of(item.scenario.tally.passed, item.scenario.tally.judged)
    required = item.judgement.required_pass_rate
    return passes if required == 1 else f"{passes} ({percent(required)} required)"


def _tests(report: Report, links: Links) -> Section:
    found = report.summary.tests.failing
    columns = (Column("test"), Column("ended"), Column("message"), _WHERE)
    return Section(
        "tests",
        "Failing tests",
        ("failing test", "failing tests"),
        len(found),
        _of_table(columns, found, lambda case: _test_row(case, links)),
    )


def _test_row(case: JUnitCase, links: Links) -> Sequence[str]:
    return (
        code_span(case.title, limit=ID_LIMIT, cell=True),
        case.outcome,
        code_span(case.message, limit=REASON_LIMIT, cell=True) if case.message else ABSENT,
        place(case.file, case.line, links, cell=True),
    )


def _errors(report: Report, links: Links) -> Section:
    found = [item for item in report.judged() if item.scenario.tally.error]
    columns = (_SCENARIO, Column("errors", figures=True), Column("first reason"), _WHERE)
    return Section(
        "errors",
        "Errors, not the agent's fault",
        ("scenario with errors", "scenarios with errors"),
        len(found),
        _of_table(columns, found, lambda item: _error_row(item, links)),
    )


def _error_row(item: Judged, links: Links) -> Sequence[str]:
    scenario, cause = item.scenario, error_cause(item.scenario)
    return (
        _scenario(scenario),
        of(scenario.tally.error, scenario.tally.ran),
        _cause(cause, REASON_LIMIT, cell=True) + _more_reasons(scenario),
        place(cause.file, cause.line, links, cell=True),
    )


def _more_reasons(scenario: ScenarioSummary) -> str:
    more = len(scenario.reasons) - 1
    return f" (and {counted(more, 'other reason')})" if more > 0 else ""


def _skipped(report: Report, links: Links) -> Section:
    found = [item for item in report.judged() if item.judgement.status == "skipped"]
    columns = (_SCENARIO, Column("reason"), _WHERE)
    gating = any(reason.kind == "skipped" for reason in report.verdict.reasons)
    return Section(
        "skipped",
        "Skipped",
        ("skipped scenario", "skipped scenarios"),
        len(found),
        _of_table(columns, found, lambda item: _skipped_row(item, links)),
        folded=not gating,
    )


def _skipped_row(item: Judged, links: Links) -> Sequence[str]:
    scenario, cause = item.scenario, error_cause(item.scenario)
    return (
        _scenario(scenario),
        _cause(cause, REASON_LIMIT, cell=True),
        place(cause.file, cause.line, links, cell=True),
    )


def _overruns(report: Report, links: Links) -> Section:
    found = overruns(report)
    columns = (
        _SCENARIO,
        Column("budget"),
        Column("limit", figures=True),
        Column("observed", figures=True),
        Column("over by", figures=True),
        _WHERE,
    )
    return Section(
        "overruns",
        "Over budget",
        ("line of budgets", "lines of budgets"),
        len(found),
        _of_table(columns, found, lambda overrun: _overrun_row(overrun, links)),
        folded=not any(overrun.gates for overrun in found),
    )


def _overrun_row(overrun: Overrun, links: Links) -> Sequence[str]:
    scenario = overrun.scenario
    label = overrun.label or code_span(overrun.custom, limit=ID_LIMIT, cell=True)
    return (
        _scenario(scenario) if scenario else "the whole suite",
        f"{label} ({overrun.strength})",
        overrun.limit,
        _observed(overrun),
        overrun.over_by,
        place(scenario.file, scenario.line, links, cell=True) if scenario else ABSENT,
    )


def _observed(overrun: Overrun) -> str:
    if overrun.observed == NOT_MEASURED:
        return f"*{NOT_MEASURED}*"
    worst = f" (worst of {count(overrun.iterations)})" if overrun.iterations > 1 else ""
    return overrun.observed + worst


_KINDS: dict[FindingKind, str] = {
    "no_results": "no results",
    "interrupted": "interrupted",
    "collection_error": "collection error",
    "unreadable_file": "unreadable file",
    "disagreement": "disagreement",
    "declared_counts_differ": "misstated counts",
    "duplicate": "duplicate",
    "repaired_file": "repaired file",
}


def _findings(report: Report) -> Section:
    found = sorted(report.summary.findings, key=lambda finding: not finding.blocking)
    blocking = any(finding.blocking for finding in found)
    return Section(
        "findings",
        "Findings about the result files",
        ("finding", "findings"),
        len(found),
        _of_list(found, _finding_line),
        folded=not blocking,
    )


def _finding_line(finding: Finding) -> str:
    where = code_span(finding.where, limit=ID_LIMIT)
    kind = _KINDS[finding.kind] if finding.blocking else f"{_KINDS[finding.kind]} (does not gate)"
    return f"{kind} in {where}: {code_span(finding.message, limit=WHOLE_REASON_LIMIT)}"


def _assertions(report: Report, links: Links) -> Section:
    found = [
        (item.scenario, cause)
        for item in report.judged()
        if item.scenario.tally.failed and not _told_by_table(item)
        for cause in causes(item.scenario)
    ]
    title = counted(len(found), "failed assertion", "failed assertions")
    return Section(
        "assertions",
        f"{title} in full",
        ("failing assertion", "failing assertions"),
        len(found),
        _of_list(found, lambda pair: _assertion_line(pair[0], pair[1], links)),
        folded=True,
    )


def _told_by_table(item: Judged) -> bool:
    """Whether the one row of a failing scenario says all there is to say."""
    found = list(causes(item.scenario))
    texts = [text or "" for cause in found for text in (cause.name, cause.reason)]
    short = all(len(text) <= REASON_LIMIT for text in texts)
    return item.judgement.status == "failing" and len(found) <= 1 and short


def _assertion_line(scenario: ScenarioSummary, cause: Cause, links: Links) -> str:
    where = place(cause.file, cause.line, links)
    times = ""
    if cause.iterations is not None and scenario.tally.ran > 1:
        times = f" in {count(cause.iterations)} of {count(scenario.tally.ran)} iterations"
    return f"{_scenario(scenario, cell=False)}{times}: {_cause(cause, WHOLE_REASON_LIMIT)}, {where}"


def _outputs(report: Report) -> Section:
    found = [case for case in report.summary.tests.failing if case.detail]
    return Section(
        "outputs",
        f"Output of {counted(len(found), 'failing test')}",
        ("output of a test", "outputs of tests"),
        len(found),
        lambda lines: "\n\n".join(_output(case) for case in found[:lines]),
        folded=True,
    )


def _output(case: JUnitCase) -> str:
    return f"{code_span(case.title)}\n\n{fenced(case.detail or '', OUTPUT_LIMIT)}"


def _advisory(report: Report, links: Links) -> Section:
    found = [item for item in report.advisory if item.judgement.status == "failing"]
    columns = (_SCENARIO, Column("passes", figures=True), Column("first failing assertion"), _WHERE)
    return Section(
        "advisory",
        f"Advisory, not gating: {counted(len(found), 'failing scenario')}",
        ("failing advisory scenario", "failing advisory scenarios"),
        len(found),
        _of_table(columns, found, lambda item: _failing_row(item, links)),
        folded=True,
    )


def _warnings(report: Report, links: Links) -> Section:
    found = [
        (scenario, failed) for scenario in report.summary.scenarios for failed in scenario.warnings
    ]
    return Section(
        "warnings",
        counted(len(found), "warning"),
        ("warning", "warnings"),
        len(found),
        _of_list(found, lambda pair: _warning_line(pair, links)),
        folded=True,
    )


def _warning_line(pair: tuple[ScenarioSummary, FailedAssertion], links: Links) -> str:
    scenario, failed = pair
    return _assertion_line(scenario, cause_of(scenario, failed), links)


def _flaky(report: Report, links: Links) -> Section:
    found = [
        f"{_scenario(scenario, cell=False)}, {counted(scenario.flaky, 'iteration')}, "
        f"{place(scenario.file, scenario.line, links)}"
        for scenario in report.summary.scenarios
        if scenario.flaky
    ]
    found += [code_span(title) for title in report.summary.tests.flaky]
    return Section(
        "flaky",
        f"{count(len(found))} flaky: passed only on a retry",
        ("flaky scenario or test", "flaky scenarios or tests"),
        len(found),
        _of_list(found, str),
        folded=True,
    )


def _passing(report: Report, links: Links) -> Section:
    found = [item for item in report.judged() if item.passing]
    columns = (
        _SCENARIO,
        Column("passes", figures=True),
        Column("cost per episode", figures=True),
        Column("p95 turn latency", figures=True),
        _WHERE,
    )
    return Section(
        "passing",
        counted(len(found), "passing scenario"),
        ("passing scenario", "passing scenarios"),
        len(found),
        _of_table(columns, found, lambda item: _passing_row(item, links)),
        folded=True,
    )


def _passing_row(item: Judged, links: Links) -> Sequence[str]:
    scenario = item.scenario
    cost, latency = scenario.cost_usd, scenario.p95_latency_ms
    return (
        _scenario(scenario),
        _passes(item),
        ABSENT if cost is None else money(cost / max(scenario.tally.ran, 1)),
        ABSENT if latency is None else milliseconds(latency),
        place(scenario.file, scenario.line, links, cell=True),
    )


def _sources(report: Report) -> Section:
    found = report.summary.sources
    figure_columns = ("cases", "passed", "failures", "errors", "skipped")
    columns = (Column("file"), *(Column(title, figures=True) for title in figure_columns))
    return Section(
        "sources",
        counted(len(found), "result file"),
        ("result file", "result files"),
        len(found),
        _of_table(columns, found, _source_row),
        folded=True,
    )


def _source_row(source: SourceFile) -> Sequence[str]:
    unreadable = "" if source.readable else " (not read to its end)"
    figures_ = (source.cases, source.passed, source.failures, source.errors, source.skipped)
    return (
        f"{code_span(source.path, limit=ID_LIMIT, cell=True)}{unreadable}",
        *(count(figure) for figure in figures_),
    )


def _scenario(scenario: ScenarioSummary, *, cell: bool = True) -> str:
    name = code_span(scenario.scenario_id, limit=ID_LIMIT, cell=cell)
    return f"{name} (advisory)" if scenario.gate == "advisory" else name


def _cause(cause: Cause, limit: int, *, cell: bool = False) -> str:
    texts: Iterator[str | None] = iter((cause.name, cause.reason))
    shown = [code_span(text, limit=limit, cell=cell) for text in texts if text]
    return ": ".join(shown) or ABSENT
