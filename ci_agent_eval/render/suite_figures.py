"""Figures of the suite, also beside the baseline's; its last line, and its evaluations' title."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ci_agent_eval.analysis.comparison.model import (
    Comparison,
    MetricChange,
    SuiteMeasure,
)
from ci_agent_eval.analysis.evaluation_totals import EvaluationTally, SideTotals
from ci_agent_eval.analysis.loaded_results import ModelCallCounts, OutcomeTally
from ci_agent_eval.analysis.summary import Summary, Totals, compute_pass_interval
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.numbers import ABSENT, count_noun, format_count
from ci_agent_eval.render.sentences import (
    LIMITED_FIGURES,
    describe_saving,
    format_suite_difference,
    format_suite_mean,
)

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
    """A figure of the suite that was measured, beside the baseline's if there is one."""

    kind: FigureKind
    name: str
    value: str
    note: str = ""
    """The population of the figure."""
    detail: str = ""
    """Its confidence interval, or its parts."""
    before: str = ABSENT
    change: str = ABSENT
    certainty: str = ""
    """How certain the change is; empty: it was not tested."""

    @property
    def label(self) -> str:
        """The name with its note."""
        return f"{self.name} ({self.note})" if self.note else self.name

    @property
    def text(self) -> str:
        """The value with its detail."""
        return f"{self.value} ({self.detail})" if self.detail else self.value


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


def compare_figures(
    figures: Sequence[SuiteFigure], found: Comparison, report: Report
) -> Sequence[SuiteFigure]:
    """Return every measured figure beside the baseline's.

    A figure of all scenarios and one of the compared scenarios have a row each.
    """
    typical, calls = found.typical_latency_ms, found.tool_calls
    rows = [row for figure in figures for row in _compare_figure(figure, found, report)]
    if typical.before is not None and typical.after is not None:
        value = numbers.format_milliseconds(typical.after)
        figure = SuiteFigure("typical_latency_ms", LIMITED_FIGURES["typical_latency_ms"], value)
        write, limit = numbers.format_milliseconds, _describe_limit(report, figure.kind)
        rows += _list_changed(figure, typical, write, limit=limit)
    if calls.before is not None and calls.after is not None and calls.before + calls.after:
        value = numbers.format_amount(calls.after)
        figure = SuiteFigure("tool_calls", "tool calls per episode", value)
        rows += _list_changed(figure, calls, numbers.format_amount)
    return rows


def _compare_figure(
    figure: SuiteFigure, found: Comparison, report: Report
) -> Sequence[SuiteFigure]:
    if figure.kind == "scenarios":
        return [_compare_passing(figure, found)]
    if figure.kind == "pass_rate":
        whole = replace(figure, before=_format_raw_rate(found))
        return _list_changed(
            whole, _get_tested_rate(found), numbers.format_percent, is_of_points=True
        )
    if figure.kind == "total_usd":
        return [_compare_total_cost(figure, found)]
    if figure.kind in _FIGURES:
        get_change, write = _FIGURES[figure.kind]
        if figure.kind == "cost_usd":
            figure = replace(figure, before=_format_raw_cost(figure, found))
        limit = _describe_limit(report, figure.kind)
        return _list_changed(figure, get_change(found), write, limit=limit)
    if figure.kind in _EVALUATION_MEASURES:
        return [_compare_evaluations(figure, found, report)]
    return [figure]


_EVALUATION_MEASURES: dict[FigureKind, SuiteMeasure] = {
    "evaluations": "evaluation_pass_rate",
    "evaluation_score": "evaluation_score",
}
_FIGURES: dict[FigureKind, tuple[Callable[[Comparison], MetricChange], Callable[[float], str]]] = {
    "cost_usd": (lambda found: found.cost_usd, numbers.format_money),
    "tokens": (lambda found: found.tokens, format_count),
    "p95_latency_ms": (lambda found: found.p95_latency_ms, numbers.format_milliseconds),
}


def _describe_limit(report: Report, kind: FigureKind) -> str:
    """Return the allowed increase of a figure: `50 % allowed`; empty without a limit."""
    increases = report.verdict.increases
    limits = {
        "cost_usd": increases.cost,
        "p95_latency_ms": increases.latency,
        "typical_latency_ms": increases.typical_latency,
    }
    share = limits.get(kind)
    return "" if share is None else numbers.format_allowed(share)


def _compare_evaluations(figure: SuiteFigure, found: Comparison, report: Report) -> SuiteFigure:
    """Compare a figure of the evaluations, if all of them are in the baseline."""
    scenarios = sum(1 for s in report.summary.scenarios if s.mode == "evaluation")
    for change in found.suite:
        measure = _EVALUATION_MEASURES[figure.kind]
        if change.measure == measure and change.scenarios == scenarios:
            before = format_suite_mean(change, change.before)
            return replace(figure, before=before, change=format_suite_difference(change))
    return figure


def _get_tested_rate(found: Comparison) -> MetricChange:
    """Return the change of the pass rate, with its test if it is of the same scenarios."""
    for change in found.suite:
        if change.measure == "pass_rate" and change.scenarios == found.pass_rate.scenarios:
            certainty = change.find_certainty(found.suite_level)
            return found.pass_rate._replace(interval=change.interval, certainty=certainty)
    return found.pass_rate


def _compare_passing(figure: SuiteFigure, found: Comparison) -> SuiteFigure:
    before = [s.before.passing for s in found.scenarios if s.before is not None]
    after = [s.after.passing for s in found.scenarios if s.after is not None]
    change = numbers.format_difference(after.count(True) - before.count(True))
    passed = numbers.format_part(before.count(True), len(before))
    return replace(figure, before=passed, change=change)


def _format_raw_rate(found: Comparison) -> str:
    """Format the pass rate over all iterations of the baseline."""
    sides = [s.before for s in found.scenarios if s.before is not None]
    judged = sum(side.judged for side in sides)
    return numbers.format_percent(sum(side.passed for side in sides) / judged) if judged else ABSENT


def _format_raw_cost(figure: SuiteFigure, found: Comparison) -> str:
    """Format the cost per episode of the baseline's latest run.

    Absent where the figure of this run is another one, because it leaves out judging.
    """
    before, now = found.latest_cost.per_episode_usd, found.head_cost.per_episode_usd
    if before is None or now is None or numbers.format_money(now) != figure.value:
        return ABSENT
    return numbers.format_money(before)


def _compare_total_cost(figure: SuiteFigure, found: Comparison) -> SuiteFigure:
    """Compare the total cost with the baseline's latest run."""
    before, now = found.latest_cost.total_usd, found.head_cost.total_usd
    if before is None or now is None:
        return figure
    change = numbers.format_change(before, now, None)
    return replace(figure, before=numbers.format_money(before), change=change)


def _list_changed(
    figure: SuiteFigure,
    moved: MetricChange,
    write: Callable[[float], str],
    *,
    is_of_points: bool = False,
    limit: str = "",
) -> Sequence[SuiteFigure]:
    """Return the figure of all scenarios, and the one of the compared scenarios if it differs."""
    if moved.before is None or moved.after is None:
        return [figure]
    if is_of_points:
        change = numbers.format_points(moved.after - moved.before, moved.interval)
    else:
        change = numbers.format_change(moved.before, moved.after, moved.interval)
        if moved.interval is None and moved.before and moved.after != moved.before:
            change = f"{change} (too few iterations)"
    change = f"{change}, {limit}" if limit else change
    before, now = write(moved.before), write(moved.after)
    certainty = moved.certainty if before != now else ""
    if figure.value == now and figure.before in {ABSENT, before}:
        return [replace(figure, before=before, change=change, certainty=certainty)]
    name = f"{figure.name}, the {count_noun(moved.scenarios, 'scenario')} compared"
    compared = SuiteFigure(figure.kind, name, now, "", "", before, change, certainty)
    return [replace(figure, name=f"{figure.label}, all", note=""), compared]
