"""Changes of the suite's metrics, over the scenarios that both sides measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypedDict

from ci_agent_eval.analysis.comparison.model import MetricChange, ScenarioMetrics
from ci_agent_eval.analysis.comparison.pool import METRICS, IterationPool
from ci_agent_eval.analysis.comparison.resampling import (
    IterationPair,
    compute_change_interval,
    compute_increase_p_value,
)

PoolPair = tuple[IterationPool, IterationPool]
"""A scenario's iterations in the baseline and in the head."""


class MetricChanges(TypedDict):
    """The metric changes of a comparison."""

    pass_rate: MetricChange
    cost_usd: MetricChange
    tokens: MetricChange
    tool_calls: MetricChange
    p95_latency_ms: MetricChange


def compute_metric_changes(
    sides: Sequence[tuple[ScenarioMetrics, ScenarioMetrics]],
    pools: Sequence[PoolPair],
    allowed: Mapping[str, float | None],
) -> MetricChanges:
    """Return the change of each metric's mean over scenarios, with its confidence.

    `pools` are the iterations behind `sides`; `allowed` maps metrics to maximum increases.
    """
    return {
        "pass_rate": _compare_pass_rates(sides),
        "cost_usd": _compare_metric("cost_usd", sides, pools, allowed),
        "tokens": _compare_metric("tokens", sides, pools, allowed),
        "tool_calls": _compare_metric("tool_calls", sides, pools, allowed),
        "p95_latency_ms": _compare_metric("p95_latency_ms", sides, pools, allowed),
    }


def _compare_pass_rates(sides: Sequence[tuple[ScenarioMetrics, ScenarioMetrics]]) -> MetricChange:
    rates = [(before.pass_rate, after.pass_rate) for before, after in sides]
    known = [(old, new) for old, new in rates if old is not None and new is not None]
    return MetricChange(*_compute_means(known), len(known), len(sides))


def _compare_metric(
    name: str,
    sides: Sequence[tuple[ScenarioMetrics, ScenarioMetrics]],
    pools: Sequence[PoolPair],
    allowed: Mapping[str, float | None],
) -> MetricChange:
    figures = [(getattr(before, name), getattr(after, name)) for before, after in sides]
    known = [(old, new) for old, new in figures if old is not None and new is not None]
    statistic, limit = METRICS[name].statistic, allowed.get(name)
    iterations = [
        (before.collect_values(name), after.collect_values(name)) for before, after in pools
    ]
    pairs = [IterationPair(old, new) for old, new in iterations if old and new]
    return MetricChange(
        *_compute_means(known),
        len(known),
        len(sides),
        compute_change_interval(pairs, statistic),
        None if limit is None else compute_increase_p_value(pairs, statistic, limit),
    )


def _compute_means(known: Sequence[tuple[float, float]]) -> tuple[float | None, float | None]:
    """Return the mean of each side to ten decimals, independent of the order."""
    if not known:
        return None, None
    before, after = (round(math.fsum(side) / len(known), 10) for side in zip(*known, strict=True))
    return before, after
