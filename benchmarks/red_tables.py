"""How often a simulated suite is red by its pass rates, by the functions that decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from measure import format_share
from red_suites import is_red

from ci_agent_eval.analysis.comparison.model import ComparePolicy
from ci_agent_eval.analysis.comparison.run_variation import PassCounts, ScenarioCounts

SUITES = 1500
CHANGED_SUITES = 600
SCENARIOS = 30
LEVEL = ComparePolicy().level
SIZES = [(runs, iterations) for iterations in (5, 20) for runs in (1, 3, 10)]
"""Runs of the base, and iterations of a scenario in each run and in the head."""


class Variation(NamedTuple):
    """Standard deviations of a run's shift, in logits."""

    scenario: float
    day: float


VARIATIONS = (
    Variation(0.0, 0.0),
    Variation(0.5, 0.0),
    Variation(0.5, 0.25),
    Variation(0.5, 0.4),
    Variation(0.5, 0.73),
    Variation(1.0, 0.0),
)
FOUND_VARIATIONS = VARIATIONS[:4]


class Change(NamedTuple):
    """A drop of the true rates of the first scenarios."""

    name: str
    points: float
    scenarios: int


NOTHING = Change("nothing", 0.0, 0)
CHANGES = (
    Change("−10 points everywhere", 0.1, SCENARIOS),
    Change("−20 points everywhere", 0.2, SCENARIOS),
    Change("−40 points in five scenarios", 0.4, 5),
    Change("one scenario never passes", 1.0, 1),
)


def _measure(runs: int, iterations: int, variation: Variation, change: Change) -> str:
    """Return the share of suites that are red by the comparison."""
    suites = CHANGED_SUITES if change.scenarios else SUITES
    seed = [runs, iterations, *(round(100 * part) for part in variation), change.scenarios]
    draw = np.random.default_rng([*seed, round(100 * change.points)])
    drawn = (_draw_suite(draw, runs, iterations, variation, change) for _ in range(suites))
    return format_share(sum(is_red(suite, LEVEL) for suite in drawn), suites)


def _draw_suite(
    draw: np.random.Generator, runs: int, iterations: int, variation: Variation, change: Change
) -> list[ScenarioCounts]:
    rates = draw.beta(9.2, 0.8, SCENARIOS)
    changed = rates.copy()
    changed[: change.scenarios] = np.maximum(rates[: change.scenarios] - change.points, 0.0)
    sides = np.array([rates] * runs + [changed])
    shifts = draw.normal(0, variation.scenario, sides.shape)
    shifts += draw.normal(0, variation.day, (runs + 1, 1))
    odds = np.exp(shifts)
    passed = draw.binomial(iterations, sides * odds / (1 - sides + sides * odds))
    return [
        ScenarioCounts(
            tuple(PassCounts(n, iterations) for n in before), PassCounts(after, iterations)
        )
        for *before, after in passed.T.tolist()
    ]


def _render_rows(change: Change, variations: tuple[Variation, ...]) -> Iterator[str]:
    for runs, iterations in SIZES:
        shares = [_measure(runs, iterations, variation, change) for variation in variations]
        yield f"| {change.name} | {runs} | {iterations} | {' | '.join(shares)} |"


def _render_head(variations: tuple[Variation, ...]) -> list[str]:
    names = [f"{v.scenario:g} and {v.day:g}" for v in variations]
    return [
        f"| change | runs of the base | iterations | {' | '.join(names)} |",
        f"|---|---:|---:|{'---:|' * len(names)}",
    ]


def render_red_sections() -> list[str]:
    """Return the lines of the page about false alarms and power of the pass rates."""
    return [
        "## When nothing changed",
        "",
        f"{SUITES:,} suites of {SCENARIOS} scenarios with pass rates of Beta(9.2, 0.8), a mean of",
        "0.92. The share that is red by the comparison, with its standard error, by the functions",
        "that decide in the product. Each run's true rates are shifted. The columns are the",
        "standard deviations of the shift of each scenario and of the shift common to all, in",
        "logits: 0.25, 0.4 and 0.73 are 1.8, 2.9 and 5.4 points at a rate of 0.92, and ±2 points",
        f"are assumed. The level is {LEVEL:.0%}. With one run of the base a common shift cannot be",
        "told from a change.",
        "",
        *_render_head(VARIATIONS),
        *_render_rows(NOTHING, VARIATIONS),
        "",
        "## When something changed",
        "",
        f"{CHANGED_SUITES} such suites with a change: the share that is red.",
        "",
        *_render_head(FOUND_VARIATIONS),
        *(row for change in CHANGES for row in _render_rows(change, FOUND_VARIATIONS)),
        "",
    ]
