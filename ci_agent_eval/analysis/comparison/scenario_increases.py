"""Scenarios whose cost, tokens or latency changed for certain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from ci_agent_eval.analysis.comparison.log_means import (
    Measurements,
    MetricSides,
    ScenarioLogs,
    estimate_day,
    estimate_run_shift,
    is_deterministic,
    shrink_variances,
)
from ci_agent_eval.analysis.comparison.metric_changes import MIN_SCENARIOS
from ci_agent_eval.analysis.comparison.model import (
    AllowedIncreases,
    ScenarioComparison,
    ScenarioDecrease,
    ScenarioIncrease,
    ScenarioMetric,
)
from ci_agent_eval.analysis.comparison.pool import ScenarioKey
from ci_agent_eval.analysis.comparison.statistics import (
    adjust_p_values,
    compute_variance,
    round_significant,
)
from ci_agent_eval.analysis.distributions import (
    VariancePart,
    combine_parts,
    compute_rise_p_value,
)

NOTABLE_INCREASE = 0.25
"""Without a limit a scenario is named if it rose for certain by this share more than the suite;
one that fell, if the base is higher by this share."""


@dataclass(frozen=True, slots=True)
class IncreaseTest:
    """The test whether a metric of a scenario rose by more than is allowed."""

    key: ScenarioKey
    found: ScenarioIncrease
    """Its p-value is adjusted for the number of scenarios unless it gates."""

    @property
    def gates(self) -> bool:
        """Whether there is a limit."""
        return self.found.allowed is not None


def list_increase_tests(
    measurements: Measurements, increases: AllowedIncreases
) -> list[IncreaseTest]:
    """Test each metric of each scenario that measured it on both sides."""
    return [
        *_test_metric("cost_usd", measurements["cost_usd"], increases.scenario_cost),
        *_test_metric("tokens", _list_unpriced(measurements), None),
        *_test_metric(
            "typical_latency_ms", measurements["p95_latency_ms"], increases.scenario_latency
        ),
    ]


def _list_unpriced(measurements: Measurements) -> Mapping[ScenarioKey, MetricSides]:
    """Return the tokens of scenarios with unknown cost; a known cost covers its tokens."""
    priced = measurements["cost_usd"]
    return {key: sides for key, sides in measurements["tokens"].items() if key not in priced}


def add_decreases(
    scenarios: Iterable[ScenarioComparison], measurements: Measurements, level: float
) -> Iterator[ScenarioComparison]:
    """Yield the scenarios with their significant decreases."""
    measured: tuple[tuple[ScenarioMetric, Mapping[ScenarioKey, MetricSides]], ...] = (
        ("cost_usd", measurements["cost_usd"]),
        ("tokens", _list_unpriced(measurements)),
        ("typical_latency_ms", measurements["p95_latency_ms"]),
    )
    found: dict[ScenarioKey, list[ScenarioDecrease]] = {}
    for metric, sides in measured:
        for key, decrease in _test_decreases(metric, sides):
            if decrease.p_value < level:
                found.setdefault(key, []).append(decrease)
    for scenario in scenarios:
        fell = found.get((scenario.scenario_id, scenario.agent or ""))
        yield replace(scenario, decreases=tuple(fell)) if fell else scenario


def _test_decreases(
    metric: ScenarioMetric, measured: Mapping[ScenarioKey, MetricSides]
) -> Iterator[tuple[ScenarioKey, ScenarioDecrease]]:
    """Test whether the metric of each scenario fell notably, beyond the suite's own fall."""
    logs = {key: found for key, sides in measured.items() if (found := sides.logs)}
    if not logs:
        return
    shift = min(median(found.rise for found in logs.values()), 0.0)
    limit = math.log1p(NOTABLE_INCREASE) - shift
    parts = _find_variances(list(logs.values()))
    p_values = adjust_p_values(
        [
            compute_rise_p_value(-found.rise - limit, part)
            for found, part in zip(logs.values(), parts, strict=True)
        ]
    )
    for (key, found), p_value in zip(logs.items(), p_values, strict=True):
        base = fmean(found.base)
        means = round(math.exp(base), 10), round(math.exp(base + found.rise), 10)
        yield key, ScenarioDecrease(metric, *means, round_significant(p_value))


def add_increases(
    scenarios: Iterable[ScenarioComparison], tests: Iterable[IncreaseTest], level: float
) -> Iterator[ScenarioComparison]:
    """Yield the scenarios with their significant increases; all p-values are adjusted."""
    found: dict[ScenarioKey, list[ScenarioIncrease]] = {}
    for test in tests:
        if test.found.p_value < level:
            found.setdefault(test.key, []).append(test.found)
    for scenario in scenarios:
        rose = found.get((scenario.scenario_id, scenario.agent or ""))
        yield replace(scenario, increases=tuple(rose)) if rose else scenario


def _test_metric(
    metric: ScenarioMetric, measured: Mapping[ScenarioKey, MetricSides], allowed: float | None
) -> list[IncreaseTest]:
    logs = {key: found for key, sides in measured.items() if (found := sides.logs)}
    limit = _find_notable_rise(logs.values()) if allowed is None else math.log1p(allowed)
    tests = []
    for (key, found), part in zip(logs.items(), _find_variances(list(logs.values())), strict=True):
        base = fmean(found.base)
        p_value = compute_rise_p_value(found.rise - limit, part)
        means = round(math.exp(base), 10), round(math.exp(base + found.rise), 10)
        increase = ScenarioIncrease(metric, *means, round_significant(p_value), allowed)
        tests.append(IncreaseTest(key, increase))
    tests += [
        IncreaseTest(key, ScenarioIncrease(metric, 0.0, after, 0.0, allowed))
        for key, sides in measured.items()
        if (after := _find_rise_from_nothing(sides))
    ]
    return tests if allowed is not None else _adjust_tests(tests)


def _find_notable_rise(scenarios: Iterable[ScenarioLogs]) -> float:
    """Return the rise beyond which a scenario stands out from the suite."""
    rises = [logs.rise for logs in scenarios]
    return math.log1p(NOTABLE_INCREASE) + max(median(rises), 0.0) if rises else 0.0


def _find_rise_from_nothing(sides: MetricSides) -> float:
    """Return the mean of the head if all values of the base are 0."""
    if any(value for one in sides.base for value in one):
        return 0.0
    return fmean(value for one in sides.after for value in one)


def _adjust_tests(tests: Sequence[IncreaseTest]) -> list[IncreaseTest]:
    adjusted = adjust_p_values([test.found.p_value for test in tests])
    return replace_p_values(tests, adjusted)


def replace_p_values(
    tests: Iterable[IncreaseTest], p_values: Iterable[float]
) -> list[IncreaseTest]:
    """Return the tests with other p-values."""
    return [
        replace(test, found=replace(test.found, p_value=p_value))
        for test, p_value in zip(tests, p_values, strict=True)
    ]


def _find_variances(scenarios: Sequence[ScenarioLogs]) -> list[VariancePart]:
    """Return the variance of each scenario's rise; infinite if nothing shows it."""
    if not scenarios or is_deterministic(scenarios):
        return [VariancePart(0.0, math.inf)] * len(scenarios)
    day = estimate_day(scenarios)
    shift = max(day.variance, estimate_run_shift(scenarios))
    own = shrink_variances([(logs.base, logs.after) for logs in scenarios])
    if own is None:
        return [_compare_rises(scenarios, VariancePart(2 * day.variance, day.degrees))] * len(
            scenarios
        )
    return [
        combine_parts(
            [
                VariancePart(
                    part.variance * (1 / len(logs.base) + 1 / len(logs.after)), part.degrees
                ),
                VariancePart(shift * (1 + 1 / len(logs.before)), day.degrees),
            ]
        )
        for part, logs in zip(own, scenarios, strict=True)
    ]


def _compare_rises(scenarios: Sequence[ScenarioLogs], day: VariancePart) -> VariancePart:
    """Return the variance of a single iteration's rise, as the scenarios differ in theirs."""
    if len(scenarios) < MIN_SCENARIOS:
        return VariancePart(math.inf, 1)
    spread = compute_variance([logs.rise for logs in scenarios])
    return combine_parts([VariancePart(spread, len(scenarios) - 1), day])
