"""Histograms with bins of a round width."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ci_agent_eval.contract.measurement import compute_latency_statistic

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
