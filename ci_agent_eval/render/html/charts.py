"""Distributions as charts: histograms, coordinates for an SVG, and the same in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.contract.measurement import compute_latency_statistic
from ci_agent_eval.render.numbers import count_noun, format_count, format_milliseconds, format_money

MOST_BINS = 30
FEWEST_VALUES = 2
"""One value has no distribution."""
SPREAD = 1e-9
"""Values whose relative difference is not larger are equal."""
SMALLEST = 1e-300
"""Smallest range that is divided into bins."""


@dataclass(frozen=True, slots=True)
class HistogramBin:
    """One bar: values from `low` up to, not including, `high`."""

    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """The bins from the lowest to the highest value, with median and 95th percentile."""

    bins: tuple[HistogramBin, ...]
    values: int
    low: float
    high: float
    median: float
    p95: float

    @property
    def tallest(self) -> int:
        """The count of the tallest bar."""
        return max(found.count for found in self.bins)

    def place_of(self, value: float) -> float:
        """Return the position of a value between the ends of the bins, 0 to 1."""
        start, end = self.bins[0].low, self.bins[-1].high
        return (value - start) / (end - start)


def build_histogram(values: Sequence[float]) -> Histogram | None:
    """Count values into bins; None where there are too few, or all are equal."""
    if len(values) < FEWEST_VALUES:
        return None
    low, high = min(values), max(values)
    if high - low <= max(high * SPREAD, SMALLEST):
        return None
    width = _round_up((high - low) / MOST_BINS)
    first = math.floor(low / width)
    counts = Counter(math.floor(value / width) for value in values)
    bins = (
        HistogramBin(number * width, (number + 1) * width, counts[number])
        for number in range(first, math.floor(high / width) + 1)
    )
    return Histogram(
        bins=tuple(bins),
        values=len(values),
        low=low,
        high=high,
        median=compute_latency_statistic(values, "p50") or 0.0,
        p95=compute_latency_statistic(values, "p95") or 0.0,
    )


def _round_up(width: float) -> float:
    """Return the next width of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= width * (1 - 1e-9))


WIDTH = 600
HEIGHT = 120
GAP = 2
"""Between two bars, in the units of the chart."""
LEAST = 2
"""Height of the bar of a single value beside a very tall one."""


Chart = dict[str, Any]
"""A distribution as the template reads it: words, bars with rectangles, and lines at values."""


def build_charts(episodes: Iterable[EpisodeRecord]) -> tuple[Chart, ...]:
    """Return the distributions of cost and latency, without skipped episodes.

    Equal values have a sentence without a picture.
    """
    ran = [facts for facts in episodes if facts.outcome != "skipped"]
    costs = [facts.cost_usd for facts in ran if facts.cost_usd is not None]
    latencies = [value for facts in ran for value in facts.latencies_ms]
    found = (
        _build_chart("cost", "Cost per episode", costs, format_money, "episode"),
        _build_chart("latency", "Latency per turn", latencies, format_milliseconds, "turn"),
    )
    return tuple(chart for chart in found if chart is not None)


def _build_chart(
    name: str, title: str, values: Sequence[float], write: Callable[[float], str], noun: str
) -> Chart | None:
    of = build_histogram(values)
    if of is None:
        if len(values) < FEWEST_VALUES:
            return None
        same = write(max(values))
        sentence = f"{count_noun(len(values), noun)}, {same} each"
        return _build_frame(name, title, sentence, same, same)
    median, p95 = write(of.median), write(of.p95)
    sentence = (
        f"{count_noun(of.values, noun)}, from {write(of.low)} to {write(of.high)}: "
        f"median {median}, 95th percentile {p95}"
    )
    marks = (("median", of.median, median), ("p95", of.p95, p95))
    return {
        **_build_frame(name, title, sentence, write(of.bins[0].low), write(of.bins[-1].high)),
        "bars": [_build_bar(number, found, of, write) for number, found in enumerate(of.bins)],
        "marks": [
            {"name": word, "x": round(of.place_of(value) * WIDTH, 2), "value": text}
            for word, value, text in marks
        ],
    }


def _build_frame(name: str, title: str, sentence: str, low: str, high: str) -> Chart:
    """Return a chart without a picture, which equal values have."""
    words = {"name": name, "title": title, "sentence": sentence, "low": low, "high": high}
    return {**words, "width": WIDTH, "height": HEIGHT, "bars": [], "marks": []}


def _build_bar(
    number: int, found: HistogramBin, of: Histogram, write: Callable[[float], str]
) -> Chart:
    width = WIDTH / len(of.bins)
    height = max(found.count / of.tallest * HEIGHT, LEAST) if found.count else 0
    return {
        "x": round(number * width + GAP / 2, 2),
        "y": round(HEIGHT - height, 2),
        "width": round(width - GAP, 2),
        "height": round(height, 2),
        "range": f"{write(found.low)} to {write(found.high)}",
        "count": format_count(found.count),
    }
