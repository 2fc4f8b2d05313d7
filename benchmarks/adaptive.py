"""Adaptive iterations beside a fixed number: episodes, false alarms and power.

The plugin's own scheduler decides which iterations run, and the product's tests what is red.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import SimpleNamespace
from typing import Any

from measure import format_share
from red_suites import is_red

from ci_agent_eval.analysis.adaptive_iterations import decide_required_rate
from ci_agent_eval.analysis.comparison.run_variation import (
    PassCounts,
    ScenarioCounts,
    estimate_base_correlation,
)
from ci_agent_eval.analysis.comparison.scenario_test import predict_rate
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.iteration_range import parse_iterations
from ci_agent_eval.contract.results import AdaptivePlan, PredictedScenario
from ci_agent_eval.pytest_plugin.adaptive_iterations import AdaptiveIterations
from ci_agent_eval.pytest_plugin.collection.iterations import PARAMETER, Iteration

SUITES = 250
SCENARIOS = 50
BASE_RUNS, FIXED = 10, 20
LEVEL = 0.025
LIMITS = parse_iterations("auto")
VARIATIONS = (("none", 0.0), ("scenario ±5", 0.5), ("scenario ±11", 1.0))
"""Name, and standard deviation of each scenario's shift in a run, in logits."""
CHANGES = (
    ("nothing", 0.0, 0),
    ("−20 points in one scenario", 0.2, 1),
    ("−40 points in one scenario", 0.4, 1),
    ("−20 points in five scenarios", 0.2, 5),
    ("−40 points in five scenarios", 0.4, 5),
    ("−10 points everywhere", 0.1, SCENARIOS),
)
REQUIRED = ((0.95, (0.98, 0.95, 0.8, 0.65)), (0.9, (1.0, 0.9, 0.7)))
"""Required rates, and true rates of each."""


@dataclass(frozen=True)
class Found:
    """What both designs found in one simulated suite."""

    fixed: bool
    adaptive: bool
    episodes: int


def shift_rate(rate: float, logits: float) -> float:
    """Return a rate shifted by some logits."""
    if rate in {0.0, 1.0} or not logits:
        return rate
    return 1 / (1 + math.exp(-math.log(rate / (1 - rate)) - logits))


def simulate_suite(draw: random.Random, spread: float, points: float, changed: int) -> Found:
    """Simulate the runs of the base and one head, whose iterations both designs share."""
    rates = [1 - draw.betavariate(1, 60) for _ in range(SCENARIOS // 2)]
    rates += [draw.betavariate(6, 1.2) for _ in range(SCENARIOS - SCENARIOS // 2)]
    worse = set(draw.sample(range(SCENARIOS), changed))

    def run(rate: float, iterations: int) -> list[bool]:
        shifted = shift_rate(rate, draw.gauss(0, spread))
        return [draw.random() < shifted for _ in range(iterations)]

    before = [tuple(_count(run(r, FIXED)) for _ in range(BASE_RUNS)) for r in rates]
    heads = [
        run(max(rate - points, 0.0) if n in worse else rate, LIMITS.total)
        for n, rate in enumerate(rates)
    ]
    lengths = schedule(before, heads)
    fixed = [ScenarioCounts(b, _count(h[:FIXED])) for b, h in zip(before, heads, strict=True)]
    adaptive = [
        ScenarioCounts(b, _count(h[: LIMITS.guaranteed]), _count(h[:n]))
        for b, h, n in zip(before, heads, lengths, strict=True)
    ]
    return Found(is_red(fixed, 2 * LEVEL), is_red(adaptive, 2 * LEVEL), sum(lengths))


def schedule(before: Sequence[tuple[PassCounts, ...]], heads: Sequence[list[bool]]) -> list[int]:
    """Return how many iterations of each scenario the plugin's scheduler runs."""
    correlation = estimate_base_correlation(before)
    predicted = [
        PredictedScenario(scenario_id=f"s{n}", alpha=rate.alpha, beta=rate.beta)
        for n, counts in enumerate(before)
        if (rate := predict_rate(counts, correlation))
    ]
    plan = AdaptivePlan(min_pass_rate=None, level=LEVEL, predicted=tuple(predicted))
    scheduler = AdaptiveIterations(plan, SCENARIOS)
    rounds = [[_Item(n, i) for n in range(len(heads))] for i in range(1, LIMITS.total + 1)]
    for item in (item for found in rounds for item in found):
        scheduler.add(item, LIMITS)
    lengths = [0] * len(heads)
    for item in (item for found in rounds for item in found):
        if not scheduler.is_unneeded(item):
            scheduler.begin(item)
            scheduler.end(item, item.build_episode(passed=heads[item.scenario][item.number - 1]))
            lengths[item.scenario] += 1
    return lengths


class _Item(SimpleNamespace):
    """The part of pytest's item that the scheduler reads."""

    def __init__(self, scenario: int, number: int) -> None:
        iteration = Iteration(number, LIMITS)
        super().__init__(
            scenario=scenario,
            number=number,
            nodeid=f"test_suite.py::test_{scenario}[{iteration.label}]",
            callspec=SimpleNamespace(params={PARAMETER: iteration}),
        )

    __hash__ = object.__hash__

    def build_episode(self, *, passed: bool) -> Episode:
        values: dict[str, Any] = {"scenario_id": f"s{self.scenario}", "evidence": "none"}
        return Episode(outcome="passed" if passed else "failed", **values)


def _count(outcomes: Sequence[bool]) -> PassCounts:
    return PassCounts(sum(outcomes), len(outcomes))


def _list_rows() -> Iterator[str]:
    for variation, spread in VARIATIONS:
        for change, points, changed in CHANGES:
            draw = random.Random(f"{variation} {change}")
            found = [simulate_suite(draw, spread, points, changed) for _ in range(SUITES)]
            fixed = format_share(sum(f.fixed for f in found), SUITES)
            adaptive = format_share(sum(f.adaptive for f in found), SUITES)
            episodes = fmean(f.episodes for f in found)
            share = episodes / (SCENARIOS * FIXED)
            name = f"{variation} | {change}"
            yield f"| {name} | {fixed} | {adaptive} | {episodes:.0f} | {share:.0%} |"


def _list_required_rows() -> Iterator[str]:
    for required, rates in REQUIRED:
        for rate in rates:
            draw = random.Random(f"{required} {rate}")
            ends = [_decide(draw, required, rate) for _ in range(2000)]
            sure = format_share(sum(n < LIMITS.total and failing for failing, n in ends), len(ends))
            red = format_share(sum(failing for failing, _ in ends), len(ends))
            number = fmean(n for _, n in ends)
            yield f"| {required:.0%} | {rate:.0%} | {sure} | {red} | {number:.0f} |"


def _decide(draw: random.Random, required: float, rate: float) -> tuple[bool, int]:
    passed = 0
    for number in range(1, LIMITS.total + 1):
        passed += draw.random() < rate
        decided = decide_required_rate(passed, number - passed, required)
        if number >= LIMITS.guaranteed and decided:
            return decided == "below_required", number
    return passed < required * LIMITS.total, LIMITS.total


def render_adaptive_section() -> Iterator[str]:
    """Render the lines of the page about adaptive iterations."""
    yield from (
        "## Adaptive iterations",
        "",
        f"{SUITES} suites of {SCENARIOS} scenarios as above, with {BASE_RUNS} runs of the base of",
        f'{FIXED} iterations and no required rate. `iterations="auto"` beside {FIXED} iterations',
        "of each scenario: the share that is red by the comparison, by a scenario or by the suite,",
        "and the mean number of episodes, through the plugin's scheduler. The test of the suite",
        "has only the first three iterations of each scenario. Changed scenarios are drawn anew",
        "for each suite.",
        "",
        "| variation | change | red, fixed | red, adaptive | episodes | of the fixed |",
        "|---|---|---:|---:|---:|---:|",
        *_list_rows(),
        "",
        "One scenario with a required rate and without a baseline, 2,000 times. At the maximum of",
        "60 its pass rate decides:",
        "",
        "| required | true rate | decided: below | red | iterations |",
        "|---:|---:|---:|---:|---:|",
        *_list_required_rows(),
        "",
    )


if __name__ == "__main__":
    print("\n".join(render_adaptive_section()))
