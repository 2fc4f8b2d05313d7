"""Decide which scenarios became worse or costlier, corrected for the number of scenarios."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from statistics import fmean, median
from typing import Any, NamedTuple

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
    MAX_ITERATIONS,
    AllowedIncreases,
    ComparePolicy,
    ScenarioComparison,
    ScenarioDecrease,
    ScenarioIncrease,
    ScenarioMetric,
)
from ci_agent_eval.analysis.comparison.pool import PoolPair
from ci_agent_eval.analysis.comparison.run_variation import (
    PassCounts,
    ScenarioCounts,
    estimate_run_correlation,
)
from ci_agent_eval.analysis.comparison.scenario_test import (
    compute_drop_p_value,
    compute_drop_p_values,
)
from ci_agent_eval.analysis.distributions import (
    VariancePart,
    adjust_p_values,
    combine_parts,
    compute_rise_p_value,
    compute_variance,
    import_numpy,
    round_significant,
)
from ci_agent_eval.analysis.loaded_results import ScenarioKey

NOTABLE_INCREASE = 0.25
"""Without a limit a scenario is named if it rose for certain by this share more than the suite;
one that fell, if the base is higher by this share."""


class IncreaseTest(NamedTuple):
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
        yield scenario._replace(decreases=tuple(fell)) if fell else scenario


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
        yield scenario._replace(increases=tuple(rose)) if rose else scenario


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
        test._replace(found=test.found._replace(p_value=p_value))
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


class RegressionDecisions(NamedTuple):
    """The scenarios with a decision each, and the correlation that the tests allowed for."""

    scenarios: tuple[ScenarioComparison, ...]
    run_correlation: float


def decide_regressions(
    scenarios: Sequence[ScenarioComparison],
    pools: Mapping[ScenarioKey, PoolPair],
    measurements: Measurements,
    policy: ComparePolicy,
) -> RegressionDecisions:
    """Decide for each scenario whether it became worse, at half of the policy's level.

    Its pass rate fell, or its cost or latency rose.
    """
    counts = {place: c for place, s in enumerate(scenarios) if (c := _find_counts(s, pools))}
    correlation = 0.0 if policy.interleaved else estimate_run_correlation(list(counts.values()))
    level = policy.level / 2
    tests = list_increase_tests(measurements, policy.increases)
    gating = [test for test in tests if test.gates]
    others = [test.found.p_value for test in gating]
    adjusted = compute_drop_p_values(list(counts.values()), correlation, level, others)
    sure = adjusted[: len(counts)]
    doubtful = compute_drop_p_values(list(counts.values()), correlation, policy.doubt)
    share = level / max(sum(1 for p_value in sure if p_value is not None), 1)
    decided = list(scenarios)
    for (place, found), p_value, doubt in zip(counts.items(), sure, doubtful, strict=True):
        decided[place] = scenarios[place]._replace(p_value=p_value, call="no_regression")
        if p_value is not None and p_value < level:
            decided[place] = decided[place]._replace(call="regression")
        elif doubt is not None and doubt < policy.doubt and _is_large_drop(found, policy):
            decided[place] = _mark_undecided(decided[place], found, correlation, share)
        else:
            decided[place] = decided[place]._replace(
                thinned=_is_thinned(scenarios[place], found, policy.min_drop, share),
                flakier=_is_flakier(scenarios[place], share),
            )
    known = replace_p_values(gating, (p_value or 0.0 for p_value in adjusted[len(counts) :]))
    increases = [*known, *(test for test in tests if not test.gates)]
    risen = add_increases(decided, increases, level)
    return RegressionDecisions(tuple(add_decreases(risen, measurements, level)), correlation)


def _find_counts(
    scenario: ScenarioComparison, pools: Mapping[ScenarioKey, PoolPair]
) -> ScenarioCounts | None:
    """Return the counts to test; None: a side was not judged or is not comparable."""
    pair = pools.get((scenario.scenario_id, scenario.agent or ""))
    if pair is None or scenario.change == "not_comparable":
        return None
    before, head = tuple(sample.counts for sample in pair[0].runs), pair[1].runs
    return ScenarioCounts(before, head[0].counts, head[0].sequential) if before and head else None


def _is_large_drop(counts: ScenarioCounts, policy: ComparePolicy) -> bool:
    drop = counts.pooled.rate - counts.evidence.rate
    # Rounded, because 0.9 - 0.7 is less than 0.2 in floating point.
    return drop > 0 and round(drop, 9) >= policy.min_drop


def _mark_undecided(
    scenario: ScenarioComparison, counts: ScenarioCounts, correlation: float, level: float
) -> ScenarioComparison:
    """Return an inconclusive drop with the iterations that would decide it."""
    compared = (*counts.pooled, *counts.evidence)
    undecided = scenario._replace(call="undecided")
    needed = find_needed_iterations(*compared, level)
    if needed is None:
        return undecided._replace(needed_baseline=find_needed_baseline(*compared, level))
    correlated = _allow_for_correlation(needed, correlation)
    return undecided._replace(needed_iterations=correlated, limited_by_runs=correlated is None)


def _allow_for_correlation(iterations: int, correlation: float) -> int | None:
    """Return the number of correlated iterations with the same precision; None: none has it."""
    room = 1 - iterations * correlation
    return math.ceil(iterations * (1 - correlation) / room) if room > 0 else None


def _compare_pooled(before: PassCounts, after: PassCounts) -> float:
    """Return the p-value of a drop without correlation: Fisher's exact test, one-sided."""
    return compute_drop_p_value(ScenarioCounts((before,), after), 0.0)


def _is_thinned(
    scenario: ScenarioComparison, counts: ScenarioCounts, min_drop: float, level: float
) -> bool:
    """Return whether too few iterations were judged to detect a drop.

    That counts only if a drop was detectable in the baseline's latest run, or if the head has at
    most half as many iterations.
    """
    if counts.sequential is not None:
        return False
    judged = counts.after.judged
    before = 0 if scenario.before is None else scenario.before.latest_judged
    rate = max(counts.pooled.rate - min_drop, 0.0)

    def shows(iterations: int) -> bool:
        passed = math.floor(rate * iterations + 0.5)
        return _compare_pooled(counts.pooled, PassCounts(passed, iterations)) < level

    return judged < before and not shows(judged) and (judged * 2 <= before or shows(before))


def _is_flakier(scenario: ScenarioComparison, level: float) -> bool:
    """Return whether the pass rate of first attempts (without retries) regressed."""
    before, after = scenario.before, scenario.after
    if before is None or after is None or not after.flaky:
        return False
    first = (
        PassCounts(before.passed - before.flaky, before.judged),
        PassCounts(after.passed - after.flaky, after.judged),
    )
    return _compare_pooled(*first) < level


POWER = 0.8
"""Required chance of detecting the drop."""

_ROUNDING_MARGIN = 1 - 1e-9
"""Factor that keeps rounding errors from making equal values compare as below."""


def find_needed_iterations(
    passed_before: int, judged_before: int, passed_after: int, judged_after: int, level: float
) -> int | None:
    """Return how many iterations detect a drop to the observed rate, four times in five.

    Return the smallest number from which on every larger one does, too, up to `MAX_ITERATIONS`:
    the power of an exact test goes up and down (A. Agresti, "Categorical Data Analysis" (2002),
    section 6.5.6). None: not even the largest does, because the baseline has too few.
    """
    np = import_numpy()
    failed_before, rate = judged_before - passed_before, passed_after / judged_after
    most = _find_most_passes(failed_before, judged_before, level * _ROUNDING_MARGIN)
    weak = np.flatnonzero(_compute_power(most, rate) < POWER * _ROUNDING_MARGIN)
    needed = 1 if not weak.size else int(weak[-1]) + 2
    # The observed iterations did not detect the drop, so more are needed.
    return max(needed, judged_after + 1) if needed <= MAX_ITERATIONS else None


def find_needed_baseline(
    passed_before: int, judged_before: int, passed_after: int, judged_after: int, level: float
) -> int | None:
    """Return about how many baseline iterations make a drop detectable at all.

    The size is doubled with the observed pass rate. None: more than `MAX_ITERATIONS`.
    """
    for times in (1 << power for power in range(1, MAX_ITERATIONS.bit_length())):
        size: int = judged_before * times
        if size > MAX_ITERATIONS:
            return None
        if find_needed_iterations(passed_before * times, size, passed_after, judged_after, level):
            return size
    return None


def _find_most_passes(failed_before: int, judged_before: int, level: float) -> Any:
    """Return for 1, 2, ... iterations the most passes for which Fisher's test detects a drop.

    -1 if even 0 passes do not show a drop. Bisected for all numbers of iterations at once.
    """
    np = import_numpy()
    iterations = np.arange(1, MAX_ITERATIONS + 1)
    low, high = np.full(MAX_ITERATIONS, -1), iterations.copy()
    while (low < high).any():
        middle = (low + high + 1) // 2
        detects = _compute_p_values(failed_before, judged_before, middle, iterations) < level
        low, high = np.where(detects, middle, low), np.where(detects, high, middle - 1)
    return low


def _compute_p_values(failed_before: int, judged_before: int, passed: Any, iterations: Any) -> Any:
    """Return Fisher's p-value for each number of passes, as `compute_drop_p_value`."""
    np = import_numpy()
    before = np.arange(failed_before + 1)[:, None]
    failed = failed_before + iterations - passed
    after = failed - before
    possible = (after >= 0) & (after <= iterations)
    ways = _compute_log_comb(judged_before, before) + _compute_log_comb(
        iterations, np.where(possible, after, 0)
    )
    terms = np.exp(ways - _compute_log_comb(judged_before + iterations, failed))
    return np.where(possible, terms, 0).sum(axis=0)


def _compute_power(most: Any, rate: float) -> Any:
    """Return the chance that at most `most` of 1, 2, ... iterations pass."""
    np = import_numpy()
    if rate in {0, 1}:
        return (most >= (0 if rate == 0 else np.arange(1, MAX_ITERATIONS + 1))).astype(float)
    iterations = np.arange(1, MAX_ITERATIONS + 1)[:, None]
    passed = np.arange(most.max() + 1)[None, :]
    counts = passed <= most[:, None]
    ways = _compute_log_comb(iterations, np.where(counts, passed, 0))
    chance = ways + passed * np.log(rate) + (iterations - passed) * np.log1p(-rate)
    return np.where(counts, np.exp(np.minimum(chance, 0)), 0).sum(axis=1)


def _compute_log_comb(whole: Any, part: Any) -> Any:
    np = import_numpy()
    table = _compute_log_factorials(1 << int(np.max(whole)).bit_length())
    return table[whole] - table[part] - table[whole - part]


@lru_cache(8)
def _compute_log_factorials(size: int) -> Any:
    np = import_numpy()
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size + 1)))])
