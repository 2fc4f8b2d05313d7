"""What comparing a suite finds: its smallest detectable drop, and how often it is red by chance.

`docs/power.md` explains the figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from ci_agent_eval.analysis.comparison.arrays import import_numpy
from ci_agent_eval.analysis.comparison.power import POWER
from ci_agent_eval.analysis.comparison.run_variation import (
    ASSUMED_DAY,
    PassCounts,
    ScenarioCounts,
    average_runs,
    estimate_run_correlation,
)
from ci_agent_eval.analysis.comparison.scenario_test import compute_drop_p_values
from ci_agent_eval.analysis.comparison.statistics import compute_variance
from ci_agent_eval.analysis.comparison.suite_change import (
    SuiteSample,
    compute_suite_change,
)
from ci_agent_eval.analysis.false_alarms import (
    ACCEPTABLE_CHANCE,
    SuitePlan,
    compute_false_alarm_chance,
    list_quiet_plans,
)

RESAMPLES = 400
"""Number of resampled suites without a change; half as many for each drop."""
_PLAN_SUITES = 200
"""Number of simulated suites for each drop of a plan."""
SEED = 20_261_123
"""A fixed seed, so that results are reproducible."""
DROPS = (0.05, 0.1, 0.2, 0.3, 0.4)
"""Drops of every scenario whose detection is simulated until one is found with `POWER`."""


@dataclass(frozen=True, slots=True)
class QuietPlan:
    """A plan that rarely fails although nothing changed."""

    plan: SuitePlan
    false_alarm_chance: float


@dataclass(frozen=True, slots=True)
class PlannedPower:
    """The false alarms of a plan, and what its comparison with `runs` of the base finds."""

    plan: SuitePlan
    runs: int
    false_alarm_chance: float
    quiet_plans: tuple[QuietPlan, ...]
    """Changes of the plan that would make false alarms rare; empty: they are."""
    smallest_drop: float | None
    """Smallest drop of all scenarios that is found, as a share; None: not even the largest is."""
    smallest_drop_with_days: float | None
    """The same with the assumed day-to-day variation."""


def plan_power(plan: SuitePlan, runs: int, level: float) -> PlannedPower:
    """Compute the figures of a plan; `level` is of scenarios and suite together."""
    return PlannedPower(
        plan=plan,
        runs=runs,
        false_alarm_chance=compute_false_alarm_chance(plan),
        quiet_plans=tuple(
            QuietPlan(change, compute_false_alarm_chance(change))
            for change in list_quiet_plans(plan)
        ),
        smallest_drop=find_smallest_drop(plan, runs, level / 2, 0.0),
        smallest_drop_with_days=find_smallest_drop(plan, runs, level / 2),
    )


def find_smallest_drop(
    plan: SuitePlan, runs: int, level: float, day: float = ASSUMED_DAY
) -> float | None:
    """Return the smallest drop of all scenarios that the suite's test finds with `POWER`.

    In whole points, by simulation: `runs` of the base and the head have the plan's iterations, and
    `day` is the true standard deviation of a day's shift. None: not even the largest drop is found,
    or there are too few scenarios.
    """
    low, high = 0, math.ceil(plan.pass_rate * 100)
    if not _is_found(plan, high / 100, runs, level, day):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        is_found = _is_found(plan, middle / 100, runs, level, day)
        low, high = (low, middle) if is_found else (middle, high)
    return high / 100


def _is_found(plan: SuitePlan, drop: float, runs: int, level: float, day: float) -> bool:
    random = import_numpy().random.default_rng(SEED)
    sizes = import_numpy().full((plan.scenarios, runs + 1), plan.iterations)
    found = 0
    for _ in range(_PLAN_SUITES):
        days = random.normal(0.0, day, runs + 1)
        rates = plan.pass_rate + days
        rates[runs] -= drop
        rates = import_numpy().clip(rates, 0.0, 1.0)
        passed = random.binomial(sizes, import_numpy().broadcast_to(rates, sizes.shape))
        shares = (passed / plan.iterations).tolist()
        change = compute_suite_change(
            "pass_rate",
            [SuiteSample(tuple(past), fmean(past), now) for *past, now in shares],
            gates=True,
        )
        found += change is not None and change.p_value < level
    return found >= POWER * _PLAN_SUITES


class RatedScenario(NamedTuple):
    """A required scenario in each run of the base."""

    runs: tuple[PassCounts, ...]
    """The same runs for each scenario of a suite, latest first."""
    required: float
    """Required share of its iterations, 0 to 1."""


@dataclass(frozen=True, slots=True)
class DropAlarms:
    """How many of the suites in which every scenario fell are red by the comparison."""

    drop: float
    red: int
    resamples: int


@dataclass(frozen=True, slots=True)
class SuiteAlarms:
    """How often suites are red; counts are of `resamples` suites, made from the base's runs."""

    scenarios: int
    runs: int
    pass_rate: float
    resamples: int
    by_required_rates: int
    """Unchanged suites that fail their own required pass rates."""
    by_comparison: int
    """Unchanged suites that are red by the comparison with the baseline."""
    by_either: int
    quiet_min_pass_rate: float
    """Highest required rate of each scenario that few unchanged suites miss, 0 to 1."""
    quiet_suite_min_pass_rate: float
    """The same for all iterations together."""
    own_runs_red: int
    """Runs of the base that are red by the comparison with the others; 0 with one run."""
    drops: tuple[DropAlarms, ...]
    """From the smallest up to the first that is found often enough."""


class SuiteDrops(NamedTuple):
    """The significant drops of required scenarios."""

    scenarios: tuple[int, ...]
    """Their places."""
    whole: bool
    """Whether the mean of all fell."""


def find_drops(
    suite: Sequence[ScenarioCounts], level: float, *, interleaved: bool = False
) -> SuiteDrops:
    """Return the drops that are red; half of the level is for the scenarios, half for all.

    Interleaved sides share the shift of a day.
    """
    correlation = 0.0 if interleaved else estimate_run_correlation(suite)
    p_values = compute_drop_p_values(suite, correlation, level / 2)
    samples = [
        SuiteSample(tuple(run.rate for run in s.before), s.pooled.rate, s.after.rate) for s in suite
    ]
    whole = compute_suite_change("pass_rate", samples, gates=True, interleaved=interleaved)
    fell = (n for n, p_value in enumerate(p_values) if p_value is not None and p_value < level / 2)
    return SuiteDrops(tuple(fell), whole is not None and whole.p_value < level / 2)


def is_red(suite: Sequence[ScenarioCounts], level: float) -> bool:
    """Return whether required scenarios are red by the comparison; `level` is of all together."""
    return any(find_drops(suite, level))


def simulate_alarms(
    scenarios: Sequence[RatedScenario],
    level: float,
    suite_min_pass_rate: float | None = None,
    resamples: int = RESAMPLES,
) -> SuiteAlarms:
    """Resample the base's runs: one as the head, the others as its base, iterations drawn anew.

    A scenario that never failed never fails. With one run both sides are drawn from it, and the
    variation between runs is not seen.
    """
    drawn = list(_draw_suites(scenarios, 0.0, resamples))
    failing = [_misses_rates(suite, scenarios, suite_min_pass_rate) for suite in drawn]
    red = [is_red(suite, level) for suite in drawn]
    runs = len(scenarios[0].runs)
    return SuiteAlarms(
        scenarios=len(scenarios),
        runs=runs,
        pass_rate=fmean(run.rate for s in scenarios for run in s.runs),
        resamples=resamples,
        by_required_rates=sum(failing),
        by_comparison=sum(red),
        by_either=sum(map(max, failing, red)),
        quiet_min_pass_rate=_find_quiet_rate([min(s.after.rate for s in suite) for suite in drawn]),
        quiet_suite_min_pass_rate=_find_quiet_rate([_compute_suite_rate(s) for s in drawn]),
        own_runs_red=sum(is_red(suite, level) for suite in _leave_one_out(scenarios)),
        drops=tuple(_simulate_drops(scenarios, level, resamples // 2)),
    )


def _simulate_drops(
    scenarios: Sequence[RatedScenario], level: float, resamples: int
) -> Iterator[DropAlarms]:
    for drop in DROPS:
        red = sum(is_red(suite, level) for suite in _draw_suites(scenarios, drop, resamples))
        yield DropAlarms(drop, red, resamples)
        if red >= POWER * resamples:
            return


def _find_quiet_rate(rates: Sequence[float]) -> float:
    """Return the highest rate, in whole percent, that few of the rates are below."""
    allowed = sorted(rates)[int(ACCEPTABLE_CHANCE * len(rates))]
    return math.floor(round(allowed * 100, 9)) / 100


def _compute_suite_rate(suite: Sequence[ScenarioCounts]) -> float:
    return sum(s.after.passed for s in suite) / sum(s.after.judged for s in suite)


def _misses_rates(
    suite: Sequence[ScenarioCounts], scenarios: Sequence[RatedScenario], of_suite: float | None
) -> bool:
    if of_suite is not None:
        return round(_compute_suite_rate(suite) - of_suite, 9) < 0
    pairs = zip(suite, scenarios, strict=True)
    return any(round(s.after.rate - rated.required, 9) < 0 for s, rated in pairs)


def _leave_one_out(scenarios: Sequence[RatedScenario]) -> Iterator[list[ScenarioCounts]]:
    """Yield each run of the base as the head of the others."""
    runs = len(scenarios[0].runs)
    for head in range(runs) if runs > 1 else ():
        yield [
            ScenarioCounts((*s.runs[:head], *s.runs[head + 1 :]), s.runs[head]) for s in scenarios
        ]


def _draw_suites(
    scenarios: Sequence[RatedScenario], drop: float, count: int
) -> Iterator[list[ScenarioCounts]]:
    """Yield resampled suites whose head's rates are lower by `drop`."""
    np = import_numpy()
    random = np.random.default_rng(SEED)
    judged = np.array([[run.judged for run in s.runs] for s in scenarios])
    rates = _estimate_rates(scenarios)
    heads = random.permutation(np.arange(count) % len(scenarios[0].runs))
    for head in heads:
        before = np.delete(rates, head, axis=1), np.delete(judged, head, axis=1)
        base = before if before[0].size else (rates, judged)
        after = np.maximum(rates[:, head] - drop, 0.0), judged[:, head]
        sides = random.binomial(base[1], base[0]), random.binomial(after[1], after[0])
        yield [
            ScenarioCounts(
                tuple(map(PassCounts, past.tolist(), sizes.tolist())),
                PassCounts(int(now), int(size)),
            )
            for past, sizes, now, size in zip(sides[0], base[1], sides[1], after[1], strict=True)
        ]


def _estimate_rates(scenarios: Sequence[RatedScenario]) -> Any:
    """Return the rate of each scenario and run, without the noise of the run's iterations.

    Deviations from a scenario's mean are split into the day's shift and the scenario's own; each
    is shrunk to the variance that the iterations do not explain.
    """
    np = import_numpy()
    rates = np.array([[run.rate for run in s.runs] for s in scenarios])
    if rates.shape[1] < 2:
        return rates
    usual = rates.mean(axis=1, keepdims=True)
    day = (rates - usual).mean(axis=0, keepdims=True)
    noise = usual * (1 - usual) / np.array([[run.judged for run in s.runs] for s in scenarios])
    own = rates - usual - day
    means = average_runs(rates.tolist())
    day_share = max(means.variance - means.own_variance, 0.0) / (
        compute_variance(means.means) or 1.0
    )
    seen = float((own**2).sum()) / (rates.shape[1] - 1)
    own_share = max(seen - float(noise.sum()) / rates.shape[1], 0.0) / (seen or 1.0)
    return np.clip(usual + day * math.sqrt(day_share) + own * math.sqrt(own_share), 0.0, 1.0)
