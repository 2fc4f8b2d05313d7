"""How the suite's figures moved, over the scenarios that both sides measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

from ci_agent_eval.comparison.model import Movement, ScenarioComparison, Side
from ci_agent_eval.comparison.sides import mean
from ci_agent_eval.comparison.statistics import interval_of_change

Figure = Callable[[Side], float | None]


class Movements(TypedDict):
    """The figures of a comparison."""

    pass_rate: Movement
    cost_usd: Movement
    tokens: Movement
    tool_calls: Movement
    p95_latency_ms: Movement


def movements(scenarios: Sequence[ScenarioComparison]) -> Movements:
    """Return each figure's mean over the scenarios on both sides, and how sure its change is."""
    pairs = [
        (s.before, s.after)
        for s in sorted(scenarios, key=lambda s: (s.scenario_id, s.agent or ""))
        if s.before is not None and s.after is not None and s.change != "not_comparable"
    ]
    return {
        "pass_rate": _movement(pairs, lambda side: side.pass_rate, with_interval=False),
        "cost_usd": _movement(pairs, lambda side: side.cost_usd),
        "tokens": _movement(pairs, lambda side: side.tokens),
        "tool_calls": _movement(pairs, lambda side: side.tool_calls),
        "p95_latency_ms": _movement(pairs, lambda side: side.p95_latency_ms),
    }


def _movement(
    pairs: Sequence[tuple[Side, Side]], figure: Figure, *, with_interval: bool = True
) -> Movement:
    known = [
        (old, new)
        for before, after in pairs
        if (old := figure(before)) is not None and (new := figure(after)) is not None
    ]
    before, after = [old for old, _ in known], [new for _, new in known]
    interval = interval_of_change(before, after) if with_interval else None
    return Movement(mean(before), mean(after), len(known), len(pairs), interval)
