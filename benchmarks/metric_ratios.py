"""Simulations of the changes of latency and cost, by the functions that decide in the product."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from measure import format_share

from ci_agent_eval.analysis.comparison.findings import is_certain_increase
from ci_agent_eval.analysis.comparison.log_means import MetricSides
from ci_agent_eval.analysis.comparison.metric_changes import (
    MeasuredSuite,
    SuiteRatio,
    compare_means,
    compare_quantiles,
    compare_typical_values,
)
from ci_agent_eval.analysis.comparison.model import AllowedIncreases, ComparePolicy, MetricChange
from ci_agent_eval.analysis.comparison.pool import IterationValues, RunValues
from ci_agent_eval.analysis.comparison.run_variation import DayVariation
from ci_agent_eval.analysis.comparison.scenario_increases import list_increase_tests
from ci_agent_eval.analysis.comparison.scenario_test import compute_drop_p_values

SUITES = 400
COST_SUITES = 1000
SCENARIOS = 50
ITERATIONS = 5
RUNS = (1, 3, 8)
NO_DAY = DayVariation(0.0, math.inf, 1)
LEVEL = ComparePolicy().level / 4
"""Half of the suite's half: the pass rate is the other question."""
MEASURES: dict[str, Callable[[MeasuredSuite], SuiteRatio | None]] = {
    "p95": lambda suite: compare_quantiles(suite, 0.95),
    "median": lambda suite: compare_quantiles(suite, 0.5),
    "geometric mean": compare_typical_values,
    "mean": compare_means,
}


@dataclass(frozen=True)
class Values:
    """How the latencies of a scenario are distributed."""

    name: str
    spread: float
    """Standard deviation of their logarithm."""
    outliers: float = 0.0
    """Share of values that are ten times as large."""

    def draw(self, draw: random.Random, usual: float) -> float:
        """Draw a value."""
        value = usual * draw.lognormvariate(0, self.spread)
        return value * 10 if self.outliers and draw.random() < self.outliers else value


VALUES = (
    Values("log-normal, sd 0.3", 0.3),
    Values("log-normal, sd 0.8", 0.8),
    Values("2 % tenfold outliers", 0.3, 0.02),
)


@dataclass(frozen=True)
class Suite:
    """A simulated suite."""

    values: Values
    runs: int
    day: float = 0.0
    """Standard deviation of a run's shift of the logarithms."""
    iterations: int = ITERATIONS
    scenarios: int = SCENARIOS
    slower: float = 1.0
    turns: int = 7

    def draw_sides(self, draw: random.Random) -> list[MetricSides]:
        """Draw the values of the base and the head."""
        usual = [draw.lognormvariate(0, 0.5) for _ in range(self.scenarios)]
        runs = [self._draw_run(draw, usual) for _ in range(self.runs)]
        head = self._draw_run(draw, [self.slower * one for one in usual])
        return [
            MetricSides(tuple(RunValues(n, run) for n, run in enumerate(before)), after)
            for *before, after in zip(*runs, head, strict=True)
        ]

    def _draw_run(self, draw: random.Random, usual: list[float]) -> list[IterationValues]:
        shift = math.exp(draw.gauss(0, self.day)) if self.day else 1.0
        return [
            tuple(
                tuple(
                    self.values.draw(draw, shift * one) for _ in range(draw.randint(1, self.turns))
                )
                for _ in range(self.iterations)
            )
            for one in usual
        ]

    def count(self, decide: Callable[[MeasuredSuite], bool], suites: int = SUITES) -> int:
        """Count the suites of which something holds."""
        draw = random.Random(f"{self}")
        return sum(decide(MeasuredSuite(self.draw_sides(draw))) for _ in range(suites))


def covers(estimate: SuiteRatio | None, slower: float) -> bool:
    """Return whether the 95 % interval holds the true change."""
    assert estimate is not None
    low, high = (estimate.compute_limit(0.025, upper=upper) for upper in (False, True))
    return low is not None and high is not None and low <= slower - 1 <= high


def is_red(estimate: SuiteRatio | None, allowed: float) -> bool:
    """Return whether an increase over the limit fails the gate."""
    assert estimate is not None
    least = estimate.compute_limit(LEVEL, upper=False)
    return is_certain_increase(MetricChange(estimate.before, estimate.after, least=least), allowed)


def coverage_rows() -> Iterator[str]:
    """Render a row for each distribution and number of runs, without and with the day's term."""
    for values in VALUES:
        for runs in RUNS:
            suite, draw = Suite(values, runs), random.Random(f"{values} {runs}")
            held = dict.fromkeys([(name, day) for name in MEASURES for day in (NO_DAY, None)], 0)
            for _ in range(SUITES):
                sides = suite.draw_sides(draw)
                for day in (NO_DAY, None):
                    measured = MeasuredSuite(sides, day)
                    for name, estimate in MEASURES.items():
                        held[name, day] += covers(estimate(measured), 1.0)
            shares = " | ".join(
                f"{format_share(held[name, NO_DAY], SUITES)}, {held[name, None] / SUITES:.1%}"
                for name in MEASURES
            )
            yield f"| {values.name} | {runs} | {shares} |"


POWER: tuple[tuple[str, int, float, str], ...] = (
    ("p95", 8, 1.5, "at least 90%"),
    ("geometric mean", 1, 1.5, "at least 90%"),
    ("p95", 1, 1.5, ""),
    ("geometric mean", 8, 1.5, ""),
    ("p95", 1, 1.1, "at most 5%"),
    ("p95", 8, 1.1, "at most 5%"),
    ("geometric mean", 1, 1.1, "at most 5%"),
    ("geometric mean", 8, 1.1, "at most 5%"),
)


def power_rows() -> Iterator[str]:
    """Render a row for each measure and true change, against a limit of 10 %."""
    for name, runs, slower, aim in POWER:
        shares = [
            format_share(
                Suite(values, runs, slower=slower).count(
                    lambda suite, name=name: is_red(MEASURES[name](suite), 0.1)
                ),
                SUITES,
            )
            for values in VALUES
        ]
        yield f"| {name} | {runs} | ×{slower:g} | {' | '.join(shares)} | {aim} |"


COST_SIZES = ((1, 3, 1), (1, 5, 10), (2, 2, 1), (5, 5, 1), (20, 1, 1), (20, 5, 1))
"""Scenarios, iterations, and runs of the base."""


def cost_rows() -> Iterator[str]:
    """Render a row for each size of suite whose cost did not change; the limit is 0."""
    for scenarios, iterations, runs in COST_SIZES:
        shares = [
            format_share(
                Suite(
                    VALUES[0], runs, day, iterations=iterations, scenarios=scenarios, turns=1
                ).count(lambda suite: is_red(compare_means(suite), 0.0), COST_SUITES),
                COST_SUITES,
            )
            for day in (0.0, 0.05, 0.1)
        ]
        yield f"| {scenarios} | {iterations} | {runs} | {' | '.join(shares)} |"


SCENARIO_LIMIT = 0.5
DEAR_SCENARIOS = (1.0, 1.5, 2.0, 3.0, 5.0)
"""Factors of the cost of one scenario."""


def scenario_rows() -> Iterator[str]:
    """Render a row for each number of runs: how often one dearer scenario is red, and another."""
    for runs in RUNS:
        suite = Suite(VALUES[0], runs, turns=1)
        shares = []
        for factor in DEAR_SCENARIOS:
            draw, red, wrong = random.Random(f"{runs} {factor}"), 0, 0
            for _ in range(SUITES):
                found = find_dear_scenarios(suite.draw_sides(draw), factor)
                red += 0 in found
                wrong += bool(found - {0})
            shares.append(f"{format_share(red, SUITES)}, {wrong / SUITES:.1%}")
        yield f"| {runs} | {' | '.join(shares)} |"


def find_dear_scenarios(scenarios: list[MetricSides], factor: float) -> set[int]:
    """Return the scenarios over their limit if the first one costs a factor more."""
    first = scenarios[0]
    dear = tuple(tuple(value * factor for value in one) for one in first.after)
    costs = {
        (f"{place:03}", ""): sides
        for place, sides in enumerate([replace(first, after=dear), *scenarios[1:]])
    }
    measurements = {"cost_usd": costs, "p95_latency_ms": {}}
    tests = list_increase_tests(measurements, AllowedIncreases(scenario_cost=SCENARIO_LIMIT))
    gating = [test for test in tests if test.gates]
    adjusted = compute_drop_p_values([], 0.0, LEVEL * 2, [test.found.p_value for test in gating])
    return {
        int(test.key[0])
        for test, p_value in zip(gating, adjusted, strict=True)
        if p_value is not None and p_value < LEVEL * 2
    }


def render_metric_sections() -> list[str]:
    """Return the lines of the page about latency and cost."""
    names = [values.name for values in VALUES]
    return [
        "## Latency and cost when nothing changed",
        "",
        f"{SUITES} suites of {SCENARIOS} scenarios of {ITERATIONS} iterations of 1 to 7 turns. The",
        "share of the 95 % intervals that hold the truth: first without the term of a day's shift,",
        "with its standard error, then with the ±5 % assumed as far as the base shows none.",
        "",
        f"| values | runs of the base | {' | '.join(MEASURES)} |",
        f"|---|---:|{'---:|' * len(MEASURES)}",
        *coverage_rows(),
        "",
        f"`max_cost_increase = 0`: {COST_SUITES:,} suites whose scenarios cost what they did, each",
        "iteration a log-normal share more or less (a standard deviation of 0.3); the share with a",
        f"false alarm, for days that differ by 0, ±5 and ±10 %. The level is {LEVEL:.2%}.",
        "",
        "| scenarios | iterations | runs of the base | no day | day ±5 | day ±10 |",
        "|---:|---:|---:|---:|---:|---:|",
        *cost_rows(),
        "",
        "## When latency or cost rose",
        "",
        f"The share that is red with a limit of 10 %, at a level of {LEVEL:.2%}, which the suite's",
        "pass rate shares. The suites are those of the table above.",
        "",
        f"| measure | runs of the base | true change | {' | '.join(names)} | aim |",
        f"|---|---:|---:|{'---:|' * len(names)}---|",
        *power_rows(),
        "",
        f"`max_scenario_cost_increase = {SCENARIO_LIMIT:g}`: one of {SCENARIOS} scenarios of",
        f"{ITERATIONS} iterations costs more; the share of suites in which it is red, and in which",
        "another one is.",
        "",
        "| runs of the base | " + " | ".join(f"×{factor:g}" for factor in DEAR_SCENARIOS) + " |",
        f"|---:|{'---:|' * len(DEAR_SCENARIOS)}",
        *scenario_rows(),
        "",
    ]
