"""How often a suite fails its required pass rates although nothing changed. Exact binomials."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

ACCEPTABLE_CHANCE = 0.05
"""Acceptable chance that an unchanged suite fails."""

MAX_ITERATIONS = 60
"""Largest number of iterations that is suggested."""

_USUAL_RATES = (0.8, 0.5)
"""Required rates of a scenario for which iterations are suggested."""


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """A suite of required scenarios that all pass equally often."""

    scenarios: int
    iterations: int
    pass_rate: float
    """The true pass rate of each scenario, 0 to 1."""
    min_pass_rate: float = 1.0
    """Required of each scenario, 0 to 1."""
    suite_min_pass_rate: float | None = None
    """Required of all iterations together, in place of each scenario's rate; None: not used."""

    @property
    def episodes(self) -> int:
        """Number of episodes of a run."""
        return self.scenarios * self.iterations


def compute_shortfall_chance(iterations: int, pass_rate: float, required: float) -> float:
    """Return the chance that less than the required share of independent iterations passes."""
    least = math.ceil(Fraction(str(required)) * iterations)
    return compute_binomial_cdf(least - 1, iterations, pass_rate)


def compute_binomial_cdf(passes: int, iterations: int, pass_rate: float) -> float:
    """Return the chance of at most this many passes, as a share of 1."""
    if passes < 0 or passes >= iterations:
        return float(passes >= iterations)
    if pass_rate in {0.0, 1.0}:
        return 1.0 - pass_rate
    terms = (_compute_log_chance(n, iterations, pass_rate) for n in range(passes + 1))
    return min(math.fsum(map(math.exp, terms)), 1.0)


def _compute_log_chance(passes: int, iterations: int, pass_rate: float) -> float:
    ways = (
        math.lgamma(iterations + 1) - math.lgamma(passes + 1) - math.lgamma(iterations - passes + 1)
    )
    return ways + passes * math.log(pass_rate) + (iterations - passes) * math.log1p(-pass_rate)


def compute_false_alarm_chance(plan: SuitePlan) -> float:
    """Return the chance that the unchanged suite fails its required pass rates."""
    if plan.suite_min_pass_rate is not None:
        return compute_shortfall_chance(plan.episodes, plan.pass_rate, plan.suite_min_pass_rate)
    alone = compute_shortfall_chance(plan.iterations, plan.pass_rate, plan.min_pass_rate)
    return compute_any_chance([alone] * plan.scenarios)


def compute_any_chance(chances: list[float]) -> float:
    """Return the chance that at least one of independent events happens."""
    if 1.0 in chances:
        return 1.0
    return -math.expm1(math.fsum(math.log1p(-chance) for chance in chances))


def list_quiet_plans(plan: SuitePlan) -> Iterator[SuitePlan]:
    """Yield changes of a plan that make false alarms acceptably rare; none if they are.

    More iterations at the plan's required rate, and at usual rates below it; the highest required
    rate of each scenario at the plan's iterations; the highest required rate of the suite.
    """
    if is_quiet(plan):
        return
    alone = replace(plan, suite_min_pass_rate=None)
    found = [_find_longer_plan(alone), _find_milder_rate(alone)]
    if found[0] is None:
        milder = (rate for rate in _USUAL_RATES if rate < plan.min_pass_rate)
        found += [_find_longer_plan(replace(alone, min_pass_rate=rate)) for rate in milder]
    rates = (replace(plan, suite_min_pass_rate=percent / 100) for percent in range(99, 0, -1))
    found.append(next(filter(is_quiet, rates), None))
    yield from (change for change in found if change is not None)


def _find_longer_plan(plan: SuitePlan) -> SuitePlan | None:
    """Return the plan with the fewest iterations above its own that would do; None: none would."""
    longer = (replace(plan, iterations=n) for n in range(plan.iterations + 1, MAX_ITERATIONS + 1))
    return next(filter(is_quiet, longer), None)


def _find_milder_rate(plan: SuitePlan) -> SuitePlan | None:
    """Return the plan with the highest required rate that makes false alarms rare; None: none."""
    passes = range(plan.iterations - 1, 0, -1)
    milder = (
        replace(plan, min_pass_rate=math.floor(100 * n / plan.iterations) / 100) for n in passes
    )
    return next(filter(is_quiet, milder), None)


def is_quiet(plan: SuitePlan) -> bool:
    """Return whether false alarms are acceptably rare."""
    return compute_false_alarm_chance(plan) <= ACCEPTABLE_CHANCE
