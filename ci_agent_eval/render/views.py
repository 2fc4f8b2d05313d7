"""What several renderings show, before it is escaped for one of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.analysis.evaluation_totals import EvaluationTally, SideTotals
from ci_agent_eval.analysis.loaded_results import ModelCallCounts, OutcomeTally
from ci_agent_eval.analysis.reliability import Reliability
from ci_agent_eval.analysis.summary import (
    FailedAssertion,
    ScenarioSummary,
    Totals,
    compute_pass_interval,
)
from ci_agent_eval.contract.findings import Finding, FindingKind
from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.numbers import ABSENT, count, counted
from ci_agent_eval.render.sentences import LIMITED_FIGURES

NO_REASON = "no reason given"
NO_AGENT = "no agent named"
FEW_TRIES = 3
"""A number of tries of which a reader asks what they come to."""

FINDING_KINDS: dict[FindingKind, str] = {
    "no_results": "no results",
    "interrupted": "interrupted",
    "stopped": "stopped",
    "collection_error": "collection error",
    "install_failed": "set-up failed",
    "unreadable_file": "unreadable file",
    "disagreement": "disagreement",
    "handover": "hand-over",
    "default_settings": "settings",
    "declared_counts_differ": "misstated counts",
    "shards": "shards",
    "duplicate": "duplicate",
    "shared_scenario": "shared scenario",
    "repaired_file": "repaired file",
    "unused_entry": "unused entry",
    "baseline": "baseline",
}
"""What each kind of finding is called."""


RUN_AGAIN = "shard run again"
"""What a finding about shards is called that is no fault: a later attempt took its place."""

_OF_BROKEN_SHARDS = frozenset({"disagreement", "duplicate"})
"""Kinds that come by the dozen where the shards are not those of one run."""


def finding_name(finding: Finding) -> str:
    """Return what a finding is called."""
    if finding.kind == "shards" and not finding.blocking:
        return RUN_AGAIN
    return FINDING_KINDS.get(finding.kind, finding.kind.replace("_", " "))


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings about the result files, in the order in which a reader needs them."""

    told: Sequence[Finding] = ()
    """What gates first; of that what is wrong with the shards."""
    consequences: Sequence[Finding] = ()
    """What need not be read where the shards are not one whole run: it goes with that."""

    @property
    def summary(self) -> str:
        """Say how many findings go with those about the shards."""
        return f"{counted(len(self.consequences), 'finding')} that may follow from it"


def findings_of(report: Report) -> Findings:
    """Return the findings, those apart that broken shards bring with them."""
    found = report.summary.findings
    broken = any(f.kind == "shards" and f.blocking for f in found)
    consequences = [f for f in found if broken and f.blocking and f.kind in _OF_BROKEN_SHARDS]
    told = [finding for finding in found if finding not in consequences]
    told.sort(key=lambda f: (not f.blocking, not (broken and f.kind == "shards")))
    return Findings(told, consequences)


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a scenario fails, as its test says it, and where; name and reason are hostile text."""

    name: str | None
    reason: str | None
    file: str | None
    line: int | None
    iterations: int | None = None
    """In how many iterations, where that is known."""


def causes(scenario: ScenarioSummary) -> Iterator[Cause]:
    """Every failed assertion, then every reason of iterations that failed without one."""
    for failed in scenario.failures:
        yield cause_of(scenario, failed)
    for reason in scenario.reasons:
        yield Cause(None, reason, scenario.file, scenario.line)


def cause_of(scenario: ScenarioSummary, failed: FailedAssertion) -> Cause:
    """Return a failed assertion where it stands, or where its test stands."""
    assertion = failed.assertion
    stands = assertion if assertion.file else scenario
    return Cause(assertion.name, assertion.reason, stands.file, stands.line, failed.iterations)


def first_cause(scenario: ScenarioSummary) -> Cause:
    """Return the first of the causes, or one that says that none was given."""
    nothing = Cause(None, NO_REASON, scenario.file, scenario.line)
    return next(causes(scenario), nothing)


def reason_of(cause: Cause) -> str:
    """Return why a check failed; of one without a reason that it did, and how it is called."""
    if cause.reason:
        return cause.reason
    return f"the check failed: {cause.name}" if cause.name else NO_REASON


def error_cause(scenario: ScenarioSummary) -> Cause:
    """Return the first reason of an iteration that was not judged."""
    reason = scenario.unjudged_reasons[0] if scenario.unjudged_reasons else NO_REASON
    return Cause(None, reason, scenario.file, scenario.line)


def skipped_scenarios(report: Report) -> Sequence[JudgedScenario]:
    """Return the scenarios of which iterations were skipped, or never ran, and none failed."""
    return [
        item
        for item in report.judged_scenarios()
        if item.judgement.status in {"skipped", "incomplete"}
    ]


def skip_cause(scenario: ScenarioSummary) -> Cause:
    """Return the last reason of an iteration that was skipped; errors have theirs before it."""
    reason = scenario.unjudged_reasons[-1] if scenario.unjudged_reasons else NO_REASON
    told = reason if scenario.tally.skipped else "removed from the run before it began"
    return Cause(None, told, scenario.file, scenario.line)


def unjudged_note(scenario: ScenarioSummary) -> str:
    """Say how many iterations were not judged, where others were."""
    left_out, ran = scenario.unjudged_iterations, scenario.tally.ran
    return f"{count(left_out)} of {count(ran + left_out)} iterations not judged" if ran else ""


def agent_of(scenario: ScenarioSummary) -> str | None:
    """Return the agent where it tells this row from another one: hostile text, may be empty."""
    return (scenario.agent or "") if scenario.among_agents else None


def title_of(scenario: ScenarioSummary) -> str:
    """Return what a scenario is called in plain text; hostile."""
    agent = agent_of(scenario)
    if agent is None:
        return scenario.scenario_id
    return f"{scenario.scenario_id} ({f'agent {agent}' if agent else NO_AGENT})"


def rate_of(scenario: ScenarioSummary) -> str:
    """Write the pass rate with its interval, where there is more than one iteration judged."""
    rate = scenario.tally.pass_rate
    if rate is None or scenario.tally.judged < 2:
        return ABSENT
    return numbers.percent_within(rate, scenario.pass_interval)


@dataclass(frozen=True, slots=True)
class Flaky:
    """What passed only on a retry; the title is hostile text."""

    title: str
    iterations: int
    """Of a scenario; 0: it is a test that is no episode."""
    file: str | None = None
    line: int | None = None


def flaky(report: Report) -> Sequence[Flaky]:
    """Return the scenarios, then the tests, that passed only on a retry."""
    found = [
        Flaky(title_of(scenario), scenario.flaky, scenario.file, scenario.line)
        for scenario in report.summary.scenarios
        if scenario.flaky
    ]
    return [*found, *(Flaky(title, 0) for title in report.summary.tests.flaky)]


def repeated(report: Report) -> Sequence[JudgedScenario]:
    """Return the scenarios that ran more than once and were judged."""
    tallies = ((item, item.scenario.tally) for item in report.judged_scenarios())
    return [item for item, tally in tallies if tally.ran > 1 and tally.judged]


def tries(scenario: ScenarioSummary) -> Sequence[Reliability]:
    """Return what few tries of a scenario come to, and the most that can be told of.

    Of as many tries as there were iterations one says whether any failed, the other no more.
    """
    few = [one for one in scenario.reliability if one.k <= FEW_TRIES][-1:]
    return [*few, *(one for one in scenario.reliability[-1:] if one not in few)]


FigureKind = Literal[
    "scenarios",
    "pass_rate",
    "tests",
    "evaluations",
    "evaluation_score",
    "cost_usd",
    "total_usd",
    "tokens",
    "total_tokens",
    "tool_calls",
    "p95_latency_ms",
]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the suite that was measured."""

    kind: FigureKind
    name: str
    value: str
    note: str = ""
    """What it is a figure of."""
    detail: str = ""
    """The interval that the value lies in, or the parts that it has."""

    @property
    def label(self) -> str:
        """The name with its note."""
        return f"{self.name} ({self.note})" if self.note else self.name

    @property
    def text(self) -> str:
        """The value with its detail."""
        return f"{self.value} ({self.detail})" if self.detail else self.value


def figures(report: Report) -> Iterator[Figure]:
    """Every figure of the suite that was measured."""
    yield from _pass_figures(report)
    yield from _evaluation_figures(report.summary.evaluations)
    yield from _cost_figures(report.summary.totals, report.summary.tally.ran)
    totals, ran = report.summary.totals, report.summary.tally.ran
    if totals.tokens is not None and ran:
        beside = sum(side.tokens for _, side in _beside(totals))
        yield Figure("tokens", "tokens per episode", count((totals.tokens - beside) / ran))
    if totals.tokens is not None and (sides := _beside(totals)):
        shares = ", ".join(count(side.tokens) for _, side in sides)
        of_which = _of_which(sides)
        yield Figure("total_tokens", "total tokens", count(totals.tokens), of_which, shares)
    if totals.p95_latency_ms is not None:
        latency = numbers.milliseconds(totals.p95_latency_ms)
        yield Figure("p95_latency_ms", LIMITED_FIGURES["p95_latency_ms"], latency)


def _cost_figures(totals: Totals, ran: int) -> Iterator[Figure]:
    """Tell costs: an episode's is its agent's, judging is in the total."""
    sides = _beside(totals)
    of_which = _of_which(sides)
    shares = ", ".join(numbers.money(side.cost_usd) for _, side in sides)
    if totals.cost_usd is not None and ran:
        beside = math.fsum(side.cost_usd for _, side in sides)
        cost = numbers.money(max(totals.cost_usd - beside, 0.0) / ran)
        yield Figure("cost_usd", LIMITED_FIGURES["cost_usd"], cost)
        yield Figure("total_usd", "total cost", numbers.money(totals.cost_usd), of_which, shares)
    elif totals.priced_usd is not None:
        least = f"at least {numbers.money(totals.priced_usd)}"
        yield Figure("total_usd", "total cost", least, of_which, shares)


def _pass_figures(report: Report) -> Iterator[Figure]:
    """Tell what was required or advised; evaluations have figures of their own."""
    tests = report.summary.tests.tally
    items = [item for item in report.judged_scenarios() if not item.only_measures]
    tally = sum((item.scenario.tally for item in items), OutcomeTally())
    if items:
        passing = sum(1 for item in items if item.is_passing)
        yield Figure("scenarios", "scenarios passing", of(passing, len(items)))
    if tally.pass_rate is not None:
        rate, episodes = numbers.percent(tally.pass_rate), counted(tally.judged, "episode")
        interval = compute_pass_interval(tally)
        within = "" if interval is None else numbers.percent_range(interval)
        yield Figure("pass_rate", "pass rate", rate, episodes, within)
    if tests.total:
        yield Figure("tests", "tests passing", of(tests.passed, tests.total))


def _evaluation_figures(found: EvaluationTally) -> Iterator[Figure]:
    if found.conversations:
        passed = of(found.passed, found.conversations)
        yield Figure("evaluations", "evaluation conversations passed", passed)
    if found.mean_score is not None:
        mean = numbers.score(found.mean_score)
        yield Figure("evaluation_score", "average evaluation score", mean)


def evaluations_title(report: Report) -> str:
    """Say what the evaluations came to, and what is required of them where anything is."""
    found, thresholds = report.summary.evaluations, report.verdict.thresholds
    passed = f"{count(found.passed)} of {counted(found.conversations, 'conversation')} passed"
    rate, least = thresholds.min_pass_rate, thresholds.min_score
    required = "" if rate is None else f" ({numbers.percent(rate)} required)"
    parts = [f"{passed}{required}", *_average(found.mean_score, least)]
    if found.tally.error:
        parts.append(f"{count(found.tally.error)} ended in an error")
    if found.tally.skipped:
        parts.append(f"{count(found.tally.skipped)} skipped")
    return f"Evaluations: {', '.join(parts)}"


def _average(mean: float | None, least: float | None) -> Iterator[str]:
    if mean is not None and least is not None and mean < least:
        shown = numbers.score_below(mean, least)
        yield f"average score {shown} ({numbers.required_score(least)} required)"
    elif mean is not None:
        required = "" if least is None else f" ({numbers.required_score(least)} required)"
        yield f"average score {numbers.score(mean)}{required}"


def of(part: int, whole: int) -> str:
    """Write a part of a whole: `4 / 5`."""
    return f"{count(part)} / {count(whole)}"


def _beside(totals: Totals) -> tuple[tuple[str, SideTotals], ...]:
    """Return what models beside the agents took, of those that were asked."""
    sides = (("judge", totals.judge), ("simulated user", totals.simulated_user))
    return tuple((name, side) for name, side in sides if side.calls)


def _of_which(sides: Sequence[tuple[str, SideTotals]]) -> str:
    names = ", ".join(name for name, _ in sides)
    return f"of which {names}" if sides else ""


def evidence(report: Report) -> tuple[str, ...]:
    """Return the parts of the evidence line: what ran, how it ended, where replies came from."""
    summary = report.summary
    calls = summary.calls
    parts = [_episodes_ran(summary.tally)]
    if summary.deselected:
        parts.append(f"{count(summary.deselected)} deselected")
    if summary.tests.tally.total:
        parts.append(_tests_ran(summary.tests.tally))
    parts.append(_calls(calls))
    for name, side in _beside(summary.totals):
        without = f" ({counted(side.unpriced, 'episode')} without a price)"
        told = counted(side.calls, f"{name} call")
        parts.append(f"{told}{without}" if side.unpriced else told)
    if calls.rate_limited:
        parts.append(f"rate limited {counted(calls.rate_limited, 'time')}")
    if summary.stops:
        stops = (f"{count(s.episodes)} {s.reason.replace('_', ' ')}" for s in summary.stops)
        parts.append(f"stopped: {', '.join(stops)}")
    # A script or a recording costs nothing; only a live reply without a price is a gap.
    if calls.live and (unpriced := summary.totals.unpriced):
        parts.append(f"{counted(unpriced, 'episode')} without a cost")
    return tuple(parts)


def _calls(calls: ModelCallCounts) -> str:
    told = (
        f"calls: {count(calls.live)} live, {count(calls.replayed)} replayed, "
        f"{count(calls.scripted)} scripted"
    )
    misses = counted(calls.misses, "cassette miss", "cassette misses")
    return f"{told}, {misses}" if calls.misses else told


def _episodes_ran(tally: OutcomeTally) -> str:
    if not tally.total:
        return "no episodes ran"
    ended = f"{counted(tally.error, 'error')}, {count(tally.skipped)} skipped"
    return f"{counted(tally.ran, 'episode')} ran: {count(tally.judged)} judged, {ended}"


def _tests_ran(tally: OutcomeTally) -> str:
    return (
        f"{counted(tally.ran, 'test')} ran: {count(tally.passed)} passed, "
        f"{count(tally.failed)} failed, {counted(tally.error, 'error')}, "
        f"{count(tally.skipped)} skipped"
    )
