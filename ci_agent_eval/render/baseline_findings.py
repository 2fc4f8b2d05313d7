"""What the baseline speaks against, of scenarios and of the suite, as the gate weighed it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from ci_agent_eval.analysis.comparison.findings import (
    DOWNGRADE_ADVICE,
    ComparisonFindingKind,
    LimitedMetric,
    MetricIncrease,
    compute_increase,
    compute_least_increase,
    describe_downgrade,
    describe_needed_iterations,
    describe_retries,
    describe_thinning,
    describe_unjudged,
)
from ci_agent_eval.analysis.comparison.model import ScenarioComparison
from ci_agent_eval.analysis.waivers import find_waiver
from ci_agent_eval.gate import Reason
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.comparison import (
    Key,
    call_of,
    comparison_of,
    key_of,
    passes_of,
    sureness,
)
from ci_agent_eval.render.numbers import ABSENT
from ci_agent_eval.render.sentences import LIMITED_FIGURES, reason_sentence

_REMARKS = frozenset(get_args(ComparisonFindingKind))

_TOLD_ELSEWHERE = frozenset({"not_comparable", "newly_over", "baseline"})
"""Kinds that are among the changes since the baseline, unless they gate."""

_OF_A_RATE = frozenset({"regression", "undecided"})
"""Kinds that a scenario has in a note beside its name where it fails by itself."""

_SENTENCES: dict[str, Callable[[ScenarioComparison], str]] = {
    "fewer_iterations": describe_thinning,
    "flakier": describe_retries,
    "not_judged": describe_unjudged,
}
"""What is said of a scenario by figures alone."""

_ORDER = ("increase", "regression", "vanished", "downgraded")
"""What is worst stands first; `undecided` is last, all others are between."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A scenario that passes, or is gone, or a figure of the suite, and what speaks against it."""

    reason: Reason
    """As the gate has it; no words of ours."""
    gates: bool
    what: str
    """In our own words."""
    scenario: ScenarioComparison | None = None
    """None: it is about the suite."""
    quoted: str = ""
    """What is said besides, which may hold foreign text."""
    before: str = ABSENT
    now: str = ABSENT

    @property
    def key(self) -> Key | None:
        """What tells the scenario from others; None: it is about the suite."""
        name = self.reason.scenario_id
        return None if name is None else (name, self.reason.agent)


def doubts(report: Report) -> Sequence[Doubt]:
    """Return what comparing found against this run, what gates first and of that the worst.

    What fails by itself has its row elsewhere, with a note; what was acknowledged, a list.
    """
    verdict, found = report.verdict, comparison_of(report)
    scenarios = {} if found is None else {key_of(s): s for s in found.scenarios}
    failing = {
        key_of(item.scenario)
        for item in report.judged_scenarios()
        if item.judgement.status == "failing"
    }
    told: list[Doubt] = []
    for gates, reasons in ((True, verdict.reasons), (False, verdict.warnings)):
        for reason in filter(lambda r: _is_told(r, gates=gates, failing=failing), reasons):
            key = (reason.scenario_id or "", reason.agent)
            told.append(_doubt(reason, scenarios.get(key), report, gates=gates))
    return sorted(told, key=lambda doubt: (not doubt.gates, _weight(doubt.reason)))


def by_scenario(report: Report) -> Mapping[Key, Sequence[Doubt]]:
    """Return what the baseline speaks against each scenario."""
    found: dict[Key, list[Doubt]] = defaultdict(list)
    for doubt in doubts(report):
        if doubt.key is not None:
            found[doubt.key].append(doubt)
    return dict(found)


def gating(report: Report) -> frozenset[Key]:
    """Return the scenarios that fail the gate by what the baseline says of them."""
    kinds = ((r.kind, r.scenario_id, r.agent) for r in report.verdict.reasons)
    return frozenset((name, agent) for kind, name, agent in kinds if kind in _REMARKS and name)


def _is_told(reason: Reason, *, gates: bool, failing: set[Key]) -> bool:
    if reason.kind not in _REMARKS or (not gates and reason.kind in _TOLD_ELSEWHERE):
        return False
    return reason.kind not in _OF_A_RATE or (reason.scenario_id, reason.agent) not in failing


def _weight(reason: Reason) -> int:
    if reason.kind in _ORDER:
        return _ORDER.index(reason.kind)
    return len(_ORDER) + (reason.kind == "undecided")


def _doubt(
    reason: Reason, scenario: ScenarioComparison | None, report: Report, *, gates: bool
) -> Doubt:
    if isinstance(reason.message, MetricIncrease):
        return _of_a_figure(reason, reason.message, gates=gates)
    if scenario is None:
        return _unknown(reason, gates=gates)
    before, now = passes_of(scenario)
    what = _words(scenario, reason)
    if what is None:
        unknown = _unknown(reason, gates=gates)
        return Doubt(reason, gates, unknown.what, scenario, unknown.quoted, before, now)
    return Doubt(reason, gates, what + _ended(scenario, report), scenario, "", before, now)


def _words(scenario: ScenarioComparison, reason: Reason) -> str | None:
    """Say in our own words what is known by its kind; None: the reason itself must."""
    if reason.kind == "regression":
        return ", ".join(part for part in ("regression", sureness(scenario)) if part)
    if reason.kind == "undecided":
        return f"{call_of(scenario) or 'not enough iterations to tell'}: {describe_needed_iterations(scenario)}"
    if reason.kind == "vanished":
        return "vanished: it did not run"
    if reason.kind == "downgraded":
        return f"downgraded: {describe_downgrade(scenario)}; {DOWNGRADE_ADVICE}"
    said = _SENTENCES.get(reason.kind)
    return None if said is None else said(scenario)


def _unknown(reason: Reason, *, gates: bool) -> Doubt:
    return Doubt(reason, gates, reason.kind.replace("_", " "), quoted=reason_sentence(reason))


def _ended(scenario: ScenarioComparison, report: Report) -> str:
    """Say that an acknowledgement is over, where there was one; one that holds is not seen here."""
    found = find_waiver(report.verdict.acknowledged, *key_of(scenario))
    return "" if found is None else f"; its acknowledgement ended on {found.until}"


_WRITERS: dict[LimitedMetric, Callable[[float], str]] = {
    "cost_usd": numbers.money,
    "p95_latency_ms": numbers.milliseconds,
}


def _of_a_figure(reason: Reason, increase: MetricIncrease, *, gates: bool) -> Doubt:
    """Say which figure of the suite rose, from what to what, and what was allowed."""
    write, moved = _WRITERS[increase.figure], increase.moved
    before, now = (
        ABSENT if value is None else write(value) for value in (moved.before, moved.after)
    )
    figure, limit = LIMITED_FIGURES[increase.figure], numbers.allowed(increase.allowed)
    return Doubt(reason, gates, f"{figure} {_rose(increase)}, {limit}", before=before, now=now)


def _rose(increase: MetricIncrease) -> str:
    moved = increase.moved
    if increase.kind == "not_measured":
        missing = numbers.count(moved.compared - moved.scenarios)
        scenarios = numbers.counted(moved.compared, "scenario")
        return f"is not measured on both sides in {missing} of {scenarios}"
    rise = compute_increase(moved) if increase.kind == "possible" else compute_least_increase(moved)
    if rise is None or math.isinf(rise):
        return "rose from nothing"
    if increase.kind == "possible":
        return f"rose {numbers.rise(rise)}, which may be chance"
    return f"rose {numbers.rise(rise)}{'' if moved.interval is None else ' or more'}"
