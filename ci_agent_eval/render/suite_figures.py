"""Figures of the suite, its evidence line and the title of its evaluations, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.analysis.evaluation_totals import EvaluationTally, SideTotals
from ci_agent_eval.analysis.loaded_results import ModelCallCounts, OutcomeTally
from ci_agent_eval.analysis.summary import Totals, compute_pass_interval
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.numbers import count, counted
from ci_agent_eval.render.sentences import LIMITED_FIGURES

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
        yield Figure("scenarios", "scenarios passing", numbers.of(passing, len(items)))
    if tally.pass_rate is not None:
        rate, episodes = numbers.percent(tally.pass_rate), counted(tally.judged, "episode")
        interval = compute_pass_interval(tally)
        within = "" if interval is None else numbers.percent_range(interval)
        yield Figure("pass_rate", "pass rate", rate, episodes, within)
    if tests.total:
        yield Figure("tests", "tests passing", numbers.of(tests.passed, tests.total))


def _evaluation_figures(found: EvaluationTally) -> Iterator[Figure]:
    if found.conversations:
        passed = numbers.of(found.passed, found.conversations)
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
