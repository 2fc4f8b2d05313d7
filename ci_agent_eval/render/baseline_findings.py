"""Findings of the comparison with the baseline, about scenarios and figures of the suite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from ci_agent_eval.analysis.comparison.findings import (
    DOWNGRADE_ADVICE,
    ComparisonFindingKind,
    LimitedMetric,
    MetricIncrease,
    describe_confirmation,
    describe_downgrade,
    describe_needed_iterations,
    describe_retries,
    describe_thinning,
    describe_unjudged,
)
from ci_agent_eval.analysis.comparison.model import (
    ScenarioComparison,
    ScenarioIncrease,
    ScenarioMetric,
    SuiteChange,
)
from ci_agent_eval.analysis.waivers import find_waiver
from ci_agent_eval.gate import Reason, ReasonKind
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.comparison_view import ComparisonRow
from ci_agent_eval.render.links import NO_PLACE, Links, Place
from ci_agent_eval.render.numbers import ABSENT, count_noun, format_count
from ci_agent_eval.render.phrases import ScenarioKey, ScenarioName, get_key
from ci_agent_eval.render.sentences import (
    SUITE_MEASURES,
    describe_difference,
    describe_increase,
    describe_reason,
    describe_scenario_increase,
    format_suite_mean,
)

_REMARKS = frozenset(get_args(ComparisonFindingKind))

_LISTED_ELSEWHERE = frozenset({"not_comparable", "newly_over", "baseline"})
"""Kinds that are among the changes since the baseline, unless they gate."""

_OF_A_RATE = frozenset({"regression", "unconfirmed", "undecided"})
"""Kinds that are in the note of a scenario that fails."""

_LABELS: dict[ReasonKind, str] = {
    "increase": "higher cost or latency",
    "scenario_increase": "higher cost or latency",
}
_INCREASES = frozenset({"increase", "scenario_increase"})
"""Kinds whose figures are costs or latencies."""

_SENTENCES: dict[str, Callable[[ScenarioComparison], str]] = {
    "fewer_iterations": describe_thinning,
    "flakier": describe_retries,
    "not_judged": describe_unjudged,
}
"""Kinds whose sentence is made of figures alone."""

_ORDER = ("suite_drop", "increase", "regression", "vanished", "vanished_cases", "downgraded")
"""The worst kinds, in order; `undecided` is last, all others are between."""


@dataclass(frozen=True, slots=True)
class BaselineFinding:
    """A scenario that passes or is gone, or a figure of the suite, that is worse than before."""

    kind: ReasonKind
    name: ScenarioName | None
    """None: it is about the suite."""
    gates: bool
    text: str
    """In our own words."""
    quoted: str = ""
    """A sentence after it, which may hold foreign text."""
    before: str = ABSENT
    now: str = ABSENT
    place: Place = NO_PLACE
    compared: ComparisonRow | None = None
    """None: it is about the suite."""

    @property
    def label(self) -> str:
        """One to four words for its kind."""
        return _LABELS.get(self.kind, self.kind.replace("_", " "))

    @property
    def key(self) -> ScenarioKey | None:
        """Scenario id and agent; None: it is about the suite."""
        return None if self.name is None else self.name.key

    @property
    def figures(self) -> str:
        """Both sides: `passes 3 / 5 now, 5 / 5 before`."""
        is_of_passes = self.compared is not None and self.kind not in _INCREASES
        return f"{'passes ' if is_of_passes else ''}{self.now} now, {self.before} before"

    @property
    def sentence(self) -> str:
        """The text with the quoted sentence."""
        return f"{self.text}: {self.quoted}" if self.quoted else self.text


def build_baseline_findings(
    report: Report, compared: Sequence[ComparisonRow], links: Links
) -> tuple[BaselineFinding, ...]:
    """Return the findings of the comparison against this run, the gating and the worst first.

    A failing scenario has a row with a note elsewhere; acknowledged findings have a list.
    """
    rows = {row.key: row for row in compared}
    places = {get_key(s): links.place(s.file, s.line) for s in report.summary.scenarios}
    failing = {
        get_key(item.scenario)
        for item in report.judged_scenarios()
        if item.judgement.status == "failing"
    }
    found: list[BaselineFinding] = []
    for gates, reasons in ((True, report.verdict.reasons), (False, report.verdict.warnings)):
        for reason in filter(lambda r: _is_listed(r, gates=gates, failing=failing), reasons):
            key = (reason.scenario_id or "", reason.agent)
            finding = _build_finding(reason, rows.get(key), report, gates=gates)
            found.append(replace(finding, place=places.get(key, NO_PLACE)))
    return tuple(
        sorted(found, key=lambda finding: (not finding.gates, _rank_finding(finding.kind)))
    )


def _is_listed(reason: Reason, *, gates: bool, failing: set[ScenarioKey]) -> bool:
    if reason.kind not in _REMARKS or (not gates and reason.kind in _LISTED_ELSEWHERE):
        return False
    return reason.kind not in _OF_A_RATE or (reason.scenario_id, reason.agent) not in failing


def _rank_finding(kind: ReasonKind) -> int:
    if kind in _ORDER:
        return _ORDER.index(kind)
    return len(_ORDER) + (kind == "undecided")


def _build_finding(
    reason: Reason, row: ComparisonRow | None, report: Report, *, gates: bool
) -> BaselineFinding:
    name = None if reason.scenario_id is None else ScenarioName(reason.scenario_id, reason.agent)
    if isinstance(reason.message, MetricIncrease):
        return _build_figure_finding(reason, reason.message, gates=gates)
    if isinstance(reason.message, SuiteChange):
        return _build_suite_finding(reason.kind, reason.message, gates=gates)
    kind = reason.kind.replace("_", " ")
    if row is None:
        return BaselineFinding(reason.kind, name, gates, kind, describe_reason(reason))
    if isinstance(reason.message, ScenarioIncrease):
        return _build_increase_finding(reason, row, report, reason.message, gates=gates)
    text, quoted = _describe_finding(row, reason), ""
    if text is None:
        text, quoted = kind, describe_reason(reason)
    else:
        text += _describe_acknowledgement(row.scenario, report)
    return BaselineFinding(
        reason.kind, name, gates, text, quoted, row.before, row.now, compared=row
    )


def _build_increase_finding(
    reason: Reason, row: ComparisonRow, report: Report, increase: ScenarioIncrease, *, gates: bool
) -> BaselineFinding:
    """Return the finding of a scenario whose cost or latency rose."""
    write = _WRITERS[increase.metric]
    text = describe_scenario_increase(increase) + _describe_acknowledgement(row.scenario, report)
    before, now = write(increase.before), write(increase.after)
    return BaselineFinding(reason.kind, row.name, gates, text, before=before, now=now, compared=row)


def _describe_finding(row: ComparisonRow, reason: Reason) -> str | None:
    """Describe a finding by its kind; None: the reason itself must."""
    scenario = row.scenario
    if reason.kind == "regression":
        return ", ".join(part for part in ("regression", row.certainty) if part)
    if reason.kind == "unconfirmed":
        return describe_confirmation(scenario)
    if reason.kind == "undecided":
        return (
            f"{row.call or 'not enough iterations to tell'}: {describe_needed_iterations(scenario)}"
        )
    if reason.kind == "vanished":
        return "vanished: it did not run"
    if reason.kind == "downgraded":
        return f"downgraded: {describe_downgrade(scenario)}; {DOWNGRADE_ADVICE}"
    sentence = _SENTENCES.get(reason.kind)
    return None if sentence is None else sentence(scenario)


def _describe_acknowledgement(scenario: ScenarioComparison, report: Report) -> str:
    """Say that its acknowledgement expired; one that holds has no finding."""
    found = find_waiver(report.verdict.acknowledged, *get_key(scenario))
    return "" if found is None else f"; its acknowledgement ended on {found.until}"


_WRITERS: dict[LimitedMetric | ScenarioMetric, Callable[[float], str]] = {
    "cost_usd": numbers.format_money,
    "tokens": format_count,
    "p95_latency_ms": numbers.format_milliseconds,
    "typical_latency_ms": numbers.format_milliseconds,
}


def _build_suite_finding(kind: ReasonKind, change: SuiteChange, *, gates: bool) -> BaselineFinding:
    """Return the finding of a measure that fell over the suite as a whole."""
    before, now = (format_suite_mean(change, mean) for mean in (change.before, change.after))
    scenarios = count_noun(change.scenarios, "scenario")
    text = f"{SUITE_MEASURES[change.measure]} fell over {scenarios}: {describe_difference(change)}"
    return BaselineFinding(kind, None, gates, text, before=before, now=now)


def _build_figure_finding(
    reason: Reason, increase: MetricIncrease, *, gates: bool
) -> BaselineFinding:
    """Return the finding of a figure of the suite that rose by more than is allowed."""
    write, moved = _WRITERS[increase.figure], increase.change
    before, now = (numbers.format_cell(value, write).text for value in (moved.before, moved.after))
    text = describe_increase(increase)
    return BaselineFinding(reason.kind, None, gates, text, before=before, now=now)
