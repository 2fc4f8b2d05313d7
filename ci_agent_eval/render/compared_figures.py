"""The figures of a suite beside the baseline's, as rows of the report view."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ci_agent_eval.analysis.comparison.model import (
    Comparison,
    MetricChange,
    SuiteChange,
    SuiteMeasure,
)
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.numbers import ABSENT, count_noun, format_count
from ci_agent_eval.render.sentences import (
    LIMITED_FIGURES,
    format_suite_difference,
    format_suite_mean,
)
from ci_agent_eval.render.suite_figures import (
    FigureKind,
    FigureRow,
    SuiteFigure,
    build_figure_row,
    list_figures,
)


def build_compared_figures(report: Report, found: Comparison) -> Sequence[FigureRow]:
    """Return every measured figure beside the baseline's.

    A figure of all scenarios and one of the compared scenarios have a row each.
    """
    return (
        *(row for figure in list_figures(report) for row in _compare_figure(figure, found, report)),
        *_compare_typical_latency(found.typical_latency_ms, report),
        *_compare_tool_calls(found.tool_calls),
    )


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


def _compare_figure(figure: SuiteFigure, found: Comparison, report: Report) -> Iterator[FigureRow]:
    row = build_figure_row(figure)
    if figure.kind == "scenarios":
        yield _compare_passing(row, found)
    elif figure.kind == "pass_rate":
        whole = replace(row, before=_format_raw_rate(found))
        suite = _find_suite_rate(found)
        rate = found.pass_rate
        if suite is not None:
            certainty = suite.find_certainty(found.suite_level)
            rate = rate._replace(interval=suite.interval, certainty=certainty)
        yield from _build_changed_rows(figure, whole, rate, numbers.format_percent, points=True)
    elif figure.kind == "total_usd":
        yield _compare_total_cost(row, found)
    elif figure.kind in _FIGURES:
        moved, write = _FIGURES[figure.kind]
        if figure.kind == "cost_usd":
            row = replace(row, before=_format_raw_cost(row, found))
        limit = _describe_limit(report, figure.kind)
        yield from _build_changed_rows(figure, row, moved(found), write, limit=limit)
    elif figure.kind in _EVALUATION_MEASURES:
        yield _compare_evaluations(row, _EVALUATION_MEASURES[figure.kind], found, report)
    else:
        yield row


_EVALUATION_MEASURES: dict[FigureKind, SuiteMeasure] = {
    "evaluations": "evaluation_pass_rate",
    "evaluation_score": "evaluation_score",
}


def _compare_evaluations(
    row: FigureRow, measure: SuiteMeasure, found: Comparison, report: Report
) -> FigureRow:
    """Compare a figure of the evaluations, if all of them are in the baseline."""
    scenarios = sum(1 for s in report.summary.scenarios if s.mode == "evaluation")
    for change in found.suite:
        if change.measure == measure and change.scenarios == scenarios:
            before = format_suite_mean(change, change.before)
            return replace(row, before=before, change=format_suite_difference(change))
    return row


_FIGURES: dict[FigureKind, tuple[Callable[[Comparison], MetricChange], Callable[[float], str]]] = {
    "cost_usd": (lambda found: found.cost_usd, numbers.format_money),
    "tokens": (lambda found: found.tokens, format_count),
    "p95_latency_ms": (lambda found: found.p95_latency_ms, numbers.format_milliseconds),
}


def _find_suite_rate(found: Comparison) -> SuiteChange | None:
    """Return the tested change of the pass rate, if the figure is of the same scenarios."""
    return next(
        (
            change
            for change in found.suite
            if change.measure == "pass_rate" and change.scenarios == found.pass_rate.scenarios
        ),
        None,
    )


def _compare_passing(row: FigureRow, found: Comparison) -> FigureRow:
    before = [s.before.passing for s in found.scenarios if s.before is not None]
    after = [s.after.passing for s in found.scenarios if s.after is not None]
    change = numbers.format_difference(after.count(True) - before.count(True))
    return replace(row, before=numbers.format_part(before.count(True), len(before)), change=change)


def _format_raw_rate(found: Comparison) -> str:
    """Format the pass rate over all iterations of the baseline."""
    sides = [s.before for s in found.scenarios if s.before is not None]
    judged = sum(side.judged for side in sides)
    return numbers.format_percent(sum(side.passed for side in sides) / judged) if judged else ABSENT


def _format_raw_cost(row: FigureRow, found: Comparison) -> str:
    """Format the cost per episode of the baseline's latest run.

    Absent where the figure of this run is another one, because it leaves out judging.
    """
    before, now = found.latest_cost.per_episode_usd, found.head_cost.per_episode_usd
    if before is None or now is None or numbers.format_money(now) != row.value:
        return ABSENT
    return numbers.format_money(before)


def _compare_total_cost(row: FigureRow, found: Comparison) -> FigureRow:
    """Compare the total cost with the baseline's latest run."""
    before, now = found.latest_cost.total_usd, found.head_cost.total_usd
    if before is None or now is None:
        return row
    return replace(
        row, before=numbers.format_money(before), change=numbers.format_change(before, now, None)
    )


def _compare_typical_latency(moved: MetricChange, report: Report) -> Iterator[FigureRow]:
    if moved.before is not None and moved.after is not None:
        value = numbers.format_milliseconds(moved.after)
        figure = SuiteFigure("typical_latency_ms", LIMITED_FIGURES["typical_latency_ms"], value)
        yield from _build_changed_rows(
            figure,
            build_figure_row(figure),
            moved,
            numbers.format_milliseconds,
            limit=_describe_limit(report, figure.kind),
        )


def _compare_tool_calls(moved: MetricChange) -> Iterator[FigureRow]:
    if moved.before is not None and moved.after is not None and moved.before + moved.after:
        figure = SuiteFigure(
            "tool_calls", "tool calls per episode", numbers.format_amount(moved.after)
        )
        yield from _build_changed_rows(
            figure, build_figure_row(figure), moved, numbers.format_amount
        )


def _build_changed_rows(
    figure: SuiteFigure,
    row: FigureRow,
    moved: MetricChange,
    write: Callable[[float], str],
    *,
    points: bool = False,
    limit: str = "",
) -> Iterator[FigureRow]:
    """Yield the figure of all scenarios, and the one of the compared scenarios if it differs."""
    if moved.before is None or moved.after is None:
        yield row
        return
    if points:
        change = numbers.format_points(moved.after - moved.before, moved.interval)
    else:
        change = numbers.format_change(moved.before, moved.after, moved.interval)
        if moved.interval is None and moved.before and moved.after != moved.before:
            change = f"{change} (too few iterations)"
    change = f"{change}, {limit}" if limit else change
    before, now = write(moved.before), write(moved.after)
    certainty = moved.certainty if before != now else ""
    if figure.value == now and row.before in {ABSENT, before}:
        yield replace(row, before=before, change=change, certainty=certainty)
    else:
        yield replace(row, label=f"{row.label}, all")
        which = f"the {count_noun(moved.scenarios, 'scenario')} compared"
        yield FigureRow(f"{figure.name}, {which}", now, before, change, certainty)
