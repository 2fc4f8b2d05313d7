"""False alarms and power of the comparison, by simulation of suites with the product's own tests.

1,500 unchanged suites (600 changed ones) of 30 scenarios with true pass rates of Beta(9.2, 0.8).
In each run the true rates shift: each scenario's with a standard deviation of 0.5 logits, those of
all together with 0.25, which are 3.5 and 1.8 points at a rate of 0.92.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.processes import Row
from ci_agent_eval.analysis.comparison.model import ComparePolicy
from ci_agent_eval.analysis.comparison.run_variation import (
    PassCounts,
    ScenarioCounts,
    estimate_run_correlation,
)
from ci_agent_eval.analysis.comparison.scenario_test import compute_drop_p_values
from ci_agent_eval.analysis.comparison.suite_change import SuiteSample, compute_suite_change

LEVEL = ComparePolicy().level
SCENARIOS, UNCHANGED_SUITES, CHANGED_SUITES = 30, 1500, 600
SCENARIO_SHIFT, RUN_SHIFT = 0.5, 0.25
SIZES = ((1, 5), (3, 5), (10, 5), (1, 20), (3, 20), (10, 20))
"""Runs of the base, and iterations of a scenario in each run."""
CHANGES = (
    ("unchanged", 0.0, 0),
    ("−10 points everywhere", 0.1, SCENARIOS),
    ("−40 points in five scenarios", 0.4, 5),
    ("one scenario never passes", 1.0, 1),
)


def measure() -> Iterator[Row]:
    """Measure the share of suites that are red, for each change and size."""
    for change, points, scenarios in CHANGES:
        suites = CHANGED_SUITES if scenarios else UNCHANGED_SUITES
        for runs, iterations in SIZES:
            draw = np.random.default_rng([runs, iterations, scenarios, round(100 * points)])
            red = sum(
                is_red(_draw_suite(draw, runs, iterations, points, scenarios))
                for _ in range(suites)
            )
            yield Row(
                f"red suites: {change}, base runs: {runs}, iterations: {iterations}",
                format_share(red, suites),
                "" if scenarios else f"level {LEVEL:.0%}; target at most 6%",
            )


def is_red(suite: Sequence[ScenarioCounts]) -> bool:
    """Return whether required scenarios are red; half of the level is for their mean."""
    p_values = compute_drop_p_values(suite, estimate_run_correlation(suite), LEVEL / 2)
    samples = [
        SuiteSample(tuple(run.rate for run in s.before), s.pooled.rate, s.after.rate) for s in suite
    ]
    whole = compute_suite_change("pass_rate", samples, gates=True, interleaved=False)
    p_values = [*p_values, whole.p_value if whole else None]
    return any(p_value is not None and p_value < LEVEL / 2 for p_value in p_values)


def _draw_suite(
    draw: np.random.Generator, runs: int, iterations: int, points: float, scenarios: int
) -> list[ScenarioCounts]:
    rates = draw.beta(9.2, 0.8, SCENARIOS)
    changed = rates.copy()
    changed[:scenarios] = np.maximum(rates[:scenarios] - points, 0.0)
    sides = np.array([rates] * runs + [changed])
    shifts = draw.normal(0, SCENARIO_SHIFT, sides.shape)
    odds = np.exp(shifts + draw.normal(0, RUN_SHIFT, (runs + 1, 1)))
    passed = draw.binomial(iterations, sides * odds / (1 - sides + sides * odds))
    return [
        ScenarioCounts(
            tuple(PassCounts(count, iterations) for count in before), PassCounts(after, iterations)
        )
        for *before, after in passed.T.tolist()
    ]


def format_share(count: int, total: int) -> str:
    """Format a simulated share with its standard error."""
    error = math.sqrt(max(count, 1) * max(total - count, 1) / total) / total
    return f"{count / total:.1%} ±{error:.1%}"
