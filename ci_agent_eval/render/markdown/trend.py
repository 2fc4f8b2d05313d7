"""The trend of the baseline's last runs: charts that GitHub draws, and a table.

The charts are Mermaid's (https://mermaid.js.org/syntax/xyChart.html), which has no way to
leave a gap, to quote a quote, or to write a number with an exponent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ci_agent_eval.analysis.comparison.model import TrendPoint
from ci_agent_eval.render.escape import code_span
from ci_agent_eval.render.markdown.blocks import TableColumn, render_table
from ci_agent_eval.render.numbers import count_noun, format_cell, format_money, format_percent

FEWEST = 2
"""Fewest runs of a trend; a single one is among the figures."""
THIS_RUN = "this run"
_COLOUR = '%%{init: {"themeVariables": {"xyChart": {"plotColorPalette": "#2f6fd0"}}}}%%'
"""The colour of the line; the default is hardly visible on white."""
_LABEL_LIMIT = 18
_LABEL_LENGTH = 120
_PLACES = 10
_NO_LABEL = re.compile(r"[^0-9A-Za-z./_-]", re.ASCII)


def render_trend_block(points: Sequence[TrendPoint]) -> str:
    """Return pass rate and cost of the baseline's last runs and of this one; empty: too few."""
    runs = len(points) - 1
    if runs < FEWEST:
        return ""
    title = f"Trend of the last {count_noun(runs, 'run')} of the baseline:"
    return f"{title}\n\n{render_trend(points)}"


def render_trend(points: Sequence[TrendPoint]) -> str:
    """Return charts and table of runs, the oldest first, this run last."""
    blocks = [
        _render_chart(
            "Pass rate", "%", points, lambda point: _scale_value(point.pass_rate, 100), 100.0
        ),
        _render_chart("Cost per episode", "US dollars", points, lambda point: point.cost_usd, None),
        _render_table(points),
    ]
    return "\n\n".join(block for block in blocks if block)


def _scale_value(value: float | None, factor: float) -> float | None:
    return None if value is None else round(value * factor, 4)


def _render_chart(
    title: str,
    unit: str,
    points: Sequence[TrendPoint],
    figure: Callable[[TrendPoint], float | None],
    top: float | None,
) -> str:
    """Return a chart of the runs that have the figure; empty with fewer than two."""
    labels = _build_labels(points)
    measured = [
        (label, value)
        for label, value in zip(labels, map(figure, points), strict=True)
        if value is not None
    ]
    values = [value for _, value in measured]
    if len(values) < FEWEST or not (top or any(values)):
        return ""
    axis = ", ".join(f'"{label}"' for label, _ in measured)
    lines = (
        _COLOUR,
        "xychart-beta",
        "    accDescr: The same figures stand in the table below.",
        f'    title "{title}, {unit}"',
        f"    x-axis [{axis}]",
        f'    y-axis "{unit}" 0 --> {_format_plain(top or max(values) * 1.2)}',
        f"    line [{', '.join(map(_format_plain, values))}]",
    )
    return "\n".join(("```mermaid", *lines, "```"))


def _format_plain(value: float) -> str:
    """Format a number without exponent; below 10^-10 it is zero."""
    return f"{value:.{_PLACES}f}".rstrip("0").rstrip(".") or "0"


def _build_labels(points: Sequence[TrendPoint]) -> list[str]:
    """Return a short label for each run, all different: the axis merges equal ones."""
    labels = [_NO_LABEL.sub("", point.label)[:_LABEL_LIMIT] for point in points[:-1]]
    labels = [label or f"run {number}" for number, label in enumerate(labels, start=1)]
    return [*_make_unique(labels), THIS_RUN]


def _make_unique(labels: Sequence[str]) -> Iterator[str]:
    seen: set[str] = set()
    for label in labels:
        name, number = label, 1
        while name in seen:
            number += 1
            name = f"{label} ({number})"
        seen.add(name)
        yield name


def _render_table(points: Sequence[TrendPoint]) -> str:
    columns = (
        TableColumn("run"),
        TableColumn("pass rate", figures=True),
        TableColumn("cost per episode", figures=True),
    )
    names = [
        code_span(point.label or label, limit=_LABEL_LENGTH, cell=True)
        for point, label in zip(points[:-1], _build_labels(points), strict=False)
    ]
    rows = zip([*names, THIS_RUN], points, strict=True)
    return render_table(columns, [(name, *_format_figures(point)) for name, point in rows])


def _format_figures(point: TrendPoint) -> tuple[str, str]:
    return (
        format_cell(point.pass_rate, format_percent).text,
        format_cell(point.cost_usd, format_money).text,
    )
