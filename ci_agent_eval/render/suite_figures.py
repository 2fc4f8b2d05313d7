"""Figures of the suite, its evidence line and the title of its evaluations, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.analysis.evaluation_totals import EvaluationTally, SideTotals
from ci_agent_eval.analysis.loaded_results import ModelCallCounts, OutcomeTally
from ci_agent_eval.analysis.summary import Summary, Totals, compute_pass_interval
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.numbers import ABSENT, count_noun, format_count
from ci_agent_eval.render.sentences import LIMITED_FIGURES, describe_saving

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
    "typical_latency_ms",
]


@dataclass(frozen=True, slots=True)
class SuiteFigure:
    """A figure of the suite that was measured."""

    kind: FigureKind
    name: str
    value: str
    note: str = ""
    """The population of the figure."""
    detail: str = ""
    """Its confidence interval, or its parts."""

    @property
    def label(self) -> str:
        """The name with its note."""
        return f"{self.name} ({self.note})" if self.note else self.name

    @property
    def text(self) -> str:
        """The value with its detail."""
        return f"{self.value} ({self.detail})" if self.detail else self.value


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A figure of the suite in this run and in the baseline, and its change."""

    label: str
    value: str
    before: str = ABSENT
    change: str = ABSENT
    certainty: str = ""
    """How certain the change is; empty: it was not tested."""


def build_figure_row(figure: SuiteFigure) -> FigureRow:
    """Return the row of a figure that is not compared."""
    return FigureRow(figure.label, figure.text)


def list_figures(report: Report) -> Iterator[SuiteFigure]:
    """Yield every figure of the suite that was measured."""
    yield from _list_pass_figures(report)
    yield from _list_evaluation_figures(report.summary.evaluations)
    totals, ran = report.summary.totals, report.summary.tally.ran
    yield from _list_cost_figures(totals, ran)
    if totals.tokens is not None and ran:
        judging = sum(side.tokens for _, side in _list_sides(totals))
        yield SuiteFigure(
            "tokens", "tokens per episode", format_count((totals.tokens - judging) / ran)
        )
    if totals.tokens is not None and (sides := _list_sides(totals)):
        shares = ", ".join(format_count(side.tokens) for _, side in sides)
        of_which = _name_sides(sides)
        yield SuiteFigure(
            "total_tokens", "total tokens", format_count(totals.tokens), of_which, shares
        )
    if totals.p95_latency_ms is not None:
        latency = numbers.format_milliseconds(totals.p95_latency_ms)
        yield SuiteFigure("p95_latency_ms", LIMITED_FIGURES["p95_latency_ms"], latency)


def _list_cost_figures(totals: Totals, ran: int) -> Iterator[SuiteFigure]:
    """Yield the agents' cost per episode, and the total cost with judging."""
    sides = _list_sides(totals)
    of_which = _name_sides(sides)
    shares = ", ".join(numbers.format_money(side.cost_usd) for _, side in sides)
    if totals.cost_usd is not None and ran:
        judging = math.fsum(side.cost_usd for _, side in sides)
        cost = numbers.format_money(max(totals.cost_usd - judging, 0.0) / ran)
        yield SuiteFigure("cost_usd", LIMITED_FIGURES["cost_usd"], cost)
        yield SuiteFigure(
            "total_usd", "total cost", numbers.format_money(totals.cost_usd), of_which, shares
        )
    elif totals.priced_usd is not None:
        least = f"at least {numbers.format_money(totals.priced_usd)}"
        yield SuiteFigure("total_usd", "total cost", least, of_which, shares)


def _list_pass_figures(report: Report) -> Iterator[SuiteFigure]:
    """Yield the figures of required and advisory scenarios, without evaluations."""
    tests = report.summary.tests.tally
    items = [item for item in report.judged_scenarios() if not item.only_measures]
    tally = sum((item.scenario.rated for item in items), OutcomeTally())
    if items:
        passing = sum(1 for item in items if item.is_passing)
        yield SuiteFigure(
            "scenarios", "scenarios passing", numbers.format_part(passing, len(items))
        )
    if tally.pass_rate is not None:
        rate, episodes = (
            numbers.format_percent(tally.pass_rate),
            count_noun(tally.judged, "episode"),
        )
        interval = compute_pass_interval(tally)
        within = "" if interval is None else numbers.format_percent_range(interval)
        yield SuiteFigure("pass_rate", "pass rate", rate, episodes, within)
    if tests.total:
        yield SuiteFigure("tests", "tests passing", numbers.format_part(tests.passed, tests.total))


def _list_evaluation_figures(found: EvaluationTally) -> Iterator[SuiteFigure]:
    if found.conversations:
        passed = numbers.format_part(found.passed, found.conversations)
        yield SuiteFigure("evaluations", "evaluation conversations passed", passed)
    if found.mean_score is not None:
        mean = numbers.format_score(found.mean_score)
        yield SuiteFigure("evaluation_score", "average evaluation score", mean)


def title_evaluations(report: Report) -> str:
    """Return results and thresholds of the evaluations in one sentence."""
    found, thresholds = report.summary.evaluations, report.verdict.thresholds
    passed = (
        f"{format_count(found.passed)} of {count_noun(found.conversations, 'conversation')} passed"
    )
    rate, least = thresholds.min_pass_rate, thresholds.min_score
    required = "" if rate is None else f" ({numbers.format_percent(rate)} required)"
    parts = [f"{passed}{required}", *_describe_average(found.mean_score, least)]
    if found.tally.error:
        parts.append(f"{format_count(found.tally.error)} ended in an error")
    if found.tally.skipped:
        parts.append(f"{format_count(found.tally.skipped)} skipped")
    return f"Evaluations: {', '.join(parts)}"


def _describe_average(mean: float | None, least: float | None) -> Iterator[str]:
    if mean is not None and least is not None and mean < least:
        shown = numbers.format_score_below(mean, least)
        yield f"average score {shown} ({numbers.format_required_score(least)} required)"
    elif mean is not None:
        required = "" if least is None else f" ({numbers.format_required_score(least)} required)"
        yield f"average score {numbers.format_score(mean)}{required}"


def _list_sides(totals: Totals) -> tuple[tuple[str, SideTotals], ...]:
    """Return the usage of judge and simulated user, where they were called."""
    sides = (("judge", totals.judge), ("simulated user", totals.simulated_user))
    return tuple((name, side) for name, side in sides if side.calls)


def _name_sides(sides: Sequence[tuple[str, SideTotals]]) -> str:
    names = ", ".join(name for name, _ in sides)
    return f"including {names}" if sides else ""


def list_ending(report: Report) -> Iterator[str]:
    """Yield episodes, tests and cost, in short; calls only if not all were live."""
    summary = report.summary
    tally, totals = summary.tally, summary.totals
    if tally.total or not summary.tests.tally.total:
        parts = [f"{format_count(tally.judged)} judged"]
        parts += [count_noun(tally.error, "error")] if tally.error else []
        parts += [f"{format_count(tally.skipped)} skipped"] if tally.skipped else []
        others = tally.total - tally.judged
        episodes = count_noun(tally.total, "episode") if tally.total else "no episodes ran"
        yield f"{episodes}: {', '.join(parts)}" if others else episodes
    if summary.tests.tally.total:
        files = sum(1 for source in summary.sources if source.kind == "junit")
        tests = count_noun(summary.tests.tally.total, "test")
        yield f"{tests} in {count_noun(files, 'file')}" if files else tests
    if totals.cost_usd is not None and (tally.ran or totals.cost_usd):
        yield numbers.format_money(totals.cost_usd)
    elif totals.priced_usd is not None:
        yield f"at least {numbers.format_money(totals.priced_usd)}"
    if saving := describe_saving(summary):
        yield saving
    yield from _list_not_run(summary)
    yield from _list_gaps(summary)


def _list_gaps(summary: Summary) -> Iterator[str]:
    """Yield why the figures may say less than those of a live run."""
    calls, totals = summary.calls, summary.totals
    if calls.replayed or calls.scripted or calls.misses:
        yield _describe_calls(calls)
    if summary.stops:
        stops = (f"{format_count(s.episodes)} {s.reason.replace('_', ' ')}" for s in summary.stops)
        yield f"stopped: {', '.join(stops)}"
    if calls.rate_limited:
        yield f"rate limited {count_noun(calls.rate_limited, 'time')}"
    # A script or a recording costs nothing; only a live reply without a price is a gap.
    if calls.live and totals.unpriced:
        yield f"{count_noun(totals.unpriced, 'episode')} without a cost"
    for name, side in _list_sides(totals):
        if side.unpriced:
            yield f"{count_noun(side.unpriced, 'episode')} without a price of the {name}"


def _list_not_run(summary: Summary) -> Iterator[str]:
    if summary.deselected:
        yield f"{format_count(summary.deselected)} deselected"
    if summary.left_out:
        yield f"{count_noun(len(summary.left_out), 'scenario')} not affected (declared)"


def _describe_calls(calls: ModelCallCounts) -> str:
    text = (
        f"calls: {format_count(calls.live)} live, {format_count(calls.replayed)} replayed, "
        f"{format_count(calls.scripted)} scripted"
    )
    misses = count_noun(calls.misses, "cassette miss", "cassette misses")
    return f"{text}, {misses}" if calls.misses else text
