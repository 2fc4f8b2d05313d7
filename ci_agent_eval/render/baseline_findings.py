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
from ci_agent_eval.gate.failure_groups import index_comparison
from ci_agent_eval.gate.model import Reason, ReasonKind
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.comparison_wording import (
    describe_call,
    describe_certainty,
    format_sides,
)
from ci_agent_eval.render.links import NO_PLACE, Links, Place
from ci_agent_eval.render.numbers import ABSENT, format_count
from ci_agent_eval.render.phrases import ScenarioKey, ScenarioName, get_key
from ci_agent_eval.render.sentences import (
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

_ORDER = ("suite_drop", "increase", "regression", "vanished", "vanished_cases", "downgraded")
"""The worst kinds, in order; `undecided` is last, all others are between."""


@dataclass(frozen=True, slots=True)
class BaselineFinding:
    """A scenario that passes or is gone, or a figure of the suite, that is worse than before."""

    kind: ReasonKind
    name: ScenarioName | None
    """None: it is about the suite."""
    key: ScenarioKey | None
    gates: bool
    text: str
    """In our own words."""
    quoted: str
    """A sentence after it, which may hold foreign text."""
    before: str
    now: str
    place: Place

    @property
    def label(self) -> str:
        """One to four words for its kind."""
        return _LABELS.get(self.kind, self.kind.replace("_", " "))

    @property
    def figures(self) -> str:
        """Both sides: `passes 3/5 now, 5/5 before`."""
        is_of_passes = self.name is not None and self.kind not in _INCREASES
        return f"{'passes ' if is_of_passes else ''}{self.now} now, {self.before} before"

    @property
    def sentence(self) -> str:
        """The text with the quoted sentence."""
        return f"{self.text}: {self.quoted}" if self.quoted else self.text


def build_baseline_findings(report: Report, links: Links) -> tuple[BaselineFinding, ...]:
    """Return the findings of the comparison against this run, the gating and the worst first.

    A failing scenario has a row with a note elsewhere; acknowledged findings have a list.
    """
    failing = {
        get_key(item.scenario)
        for item in report.judged_scenarios()
        if item.judgement.status == "failing"
    }
    found = [
        _build_finding(reason, report, links, gates=gates)
        for gates, reasons in ((True, report.verdict.reasons), (False, report.verdict.warnings))
        for reason in reasons
        if _is_listed(reason, failing, gates=gates)
    ]
    return tuple(sorted(found, key=lambda one: (not one.gates, _rank_finding(one.kind))))


def _is_listed(reason: Reason, failing: set[ScenarioKey], *, gates: bool) -> bool:
    if reason.kind not in _REMARKS or (not gates and reason.kind in _LISTED_ELSEWHERE):
        return False
    return reason.kind not in _OF_A_RATE or (reason.scenario_id, reason.agent) not in failing


def _rank_finding(kind: ReasonKind) -> int:
    if kind in _ORDER:
        return _ORDER.index(kind)
    return len(_ORDER) + (kind == "undecided")


def _build_finding(reason: Reason, report: Report, links: Links, *, gates: bool) -> BaselineFinding:
    name, key, place, compared = None, None, NO_PLACE, None
    if reason.scenario_id is not None:
        key = (reason.scenario_id, reason.agent)
        own = next((one for one in report.summary.scenarios if get_key(one) == key), None)
        name = ScenarioName.of(own) if own else ScenarioName(*key)
        place = links.place(own.file, own.line) if own else NO_PLACE
        compared = index_comparison(report).get(key)
    text, (before, now) = _describe_finding(reason, compared), _format_sides(reason, compared)
    quoted = "" if text else describe_reason(reason)
    if compared is not None and text:
        text += _describe_acknowledgement(compared, report)
    text = text or reason.kind.replace("_", " ")
    return BaselineFinding(reason.kind, name, key, gates, text, quoted, before, now, place)


def _describe_finding(reason: Reason, compared: ScenarioComparison | None) -> str:
    """Describe a finding; empty: the reason itself must."""
    message = reason.message
    if isinstance(message, MetricIncrease):
        return describe_increase(message)
    if isinstance(message, SuiteChange):
        return describe_reason(replace(reason, note=""))
    if compared is None:
        return ""
    if isinstance(message, ScenarioIncrease):
        return describe_scenario_increase(message)
    describe = _SENTENCES.get(reason.kind)
    return "" if describe is None else describe(compared)


def _describe_regression(one: ScenarioComparison) -> str:
    return ", ".join(filter(None, ("regression", describe_certainty(one))))


def _describe_undecided(one: ScenarioComparison) -> str:
    call = describe_call(one) or "not enough iterations to tell"
    return f"{call}: {describe_needed_iterations(one)}"


_SENTENCES: dict[str, Callable[[ScenarioComparison], str]] = {
    "regression": _describe_regression,
    "unconfirmed": describe_confirmation,
    "undecided": _describe_undecided,
    "vanished": lambda _: "vanished: it did not run",
    "downgraded": lambda one: f"downgraded: {describe_downgrade(one)}; {DOWNGRADE_ADVICE}",
    "fewer_iterations": describe_thinning,
    "flakier": describe_retries,
    "not_judged": describe_unjudged,
}
"""Kinds whose sentence is made of figures alone."""


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


def _format_sides(reason: Reason, compared: ScenarioComparison | None) -> Sequence[str]:
    """Return the figures of the baseline and of this run."""
    message = reason.message
    if isinstance(message, MetricIncrease):
        sides, write = (message.change.before, message.change.after), _WRITERS[message.figure]
        return [ABSENT if side is None else write(side) for side in sides]
    if isinstance(message, SuiteChange):
        return [format_suite_mean(message, mean) for mean in (message.before, message.after)]
    if isinstance(message, ScenarioIncrease) and compared is not None:
        return list(map(_WRITERS[message.metric], (message.before, message.after)))
    return (ABSENT, ABSENT) if compared is None else format_sides(compared)
