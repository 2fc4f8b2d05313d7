"""How the suite's figures moved, over the scenarios that both sides measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypedDict

from ci_agent_eval.analysis.comparison.model import Movement, Side
from ci_agent_eval.analysis.comparison.pool import FIGURES, Pool
from ci_agent_eval.analysis.comparison.resampling import (
    Pair,
    interval_of_change,
    p_value_of_increase,
)

PoolPair = tuple[Pool, Pool]
"""What a scenario's runs tell: those of the base, and this one."""


class Movements(TypedDict):
    """The figures of a comparison."""

    pass_rate: Movement
    cost_usd: Movement
    tokens: Movement
    tool_calls: Movement
    p95_latency_ms: Movement


def movements(
    sides: Sequence[tuple[Side, Side]],
    pools: Sequence[PoolPair],
    allowed: Mapping[str, float | None],
) -> Movements:
    """Return each figure's mean over the scenarios on both sides, and how sure its change is.

    `pools` are what the sides were made of; `allowed` says by which share a figure may rise.
    """
    return {
        "pass_rate": _of_pass_rate(sides),
        "cost_usd": _movement("cost_usd", sides, pools, allowed),
        "tokens": _movement("tokens", sides, pools, allowed),
        "tool_calls": _movement("tool_calls", sides, pools, allowed),
        "p95_latency_ms": _movement("p95_latency_ms", sides, pools, allowed),
    }


def _of_pass_rate(sides: Sequence[tuple[Side, Side]]) -> Movement:
    rates = [(before.pass_rate, after.pass_rate) for before, after in sides]
    known = [(old, new) for old, new in rates if old is not None and new is not None]
    return Movement(*_means(known), len(known), len(sides))


def _movement(
    name: str,
    sides: Sequence[tuple[Side, Side]],
    pools: Sequence[PoolPair],
    allowed: Mapping[str, float | None],
) -> Movement:
    figures = [(getattr(before, name), getattr(after, name)) for before, after in sides]
    known = [(old, new) for old, new in figures if old is not None and new is not None]
    statistic, limit = FIGURES[name].statistic, allowed.get(name)
    iterations = [(before.measured(name), after.measured(name)) for before, after in pools]
    pairs = [Pair(old, new) for old, new in iterations if old and new]
    return Movement(
        *_means(known),
        len(known),
        len(sides),
        interval_of_change(pairs, statistic),
        None if limit is None else p_value_of_increase(pairs, statistic, limit),
    )


def _means(known: Sequence[tuple[float, float]]) -> tuple[float | None, float | None]:
    """Return the mean of each side, to ten decimals, whatever the order."""
    if not known:
        return None, None
    before, after = (round(math.fsum(side) / len(known), 10) for side in zip(*known, strict=True))
    return before, after
