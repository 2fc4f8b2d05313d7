"""Decide which scenarios became worse, corrected for the number of scenarios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.analysis.comparison.log_means import Measurements
from ci_agent_eval.analysis.comparison.model import ComparePolicy, ScenarioComparison
from ci_agent_eval.analysis.comparison.pool import PoolPair, ScenarioKey
from ci_agent_eval.analysis.comparison.power import find_needed_baseline, find_needed_iterations
from ci_agent_eval.analysis.comparison.run_variation import (
    PassCounts,
    ScenarioCounts,
    estimate_run_correlation,
)
from ci_agent_eval.analysis.comparison.scenario_increases import (
    add_decreases,
    add_increases,
    list_increase_tests,
    replace_p_values,
)
from ci_agent_eval.analysis.comparison.scenario_test import (
    compute_drop_p_value,
    compute_drop_p_values,
)


@dataclass(frozen=True, slots=True)
class RegressionDecisions:
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
        decided[place] = replace(scenarios[place], p_value=p_value, call="no_regression")
        if p_value is not None and p_value < level:
            decided[place] = replace(decided[place], call="regression")
        elif doubt is not None and doubt < policy.doubt and _is_large_drop(found, policy):
            decided[place] = _mark_undecided(decided[place], found, correlation, share)
        else:
            decided[place] = replace(
                decided[place],
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
    undecided = replace(scenario, call="undecided")
    needed = find_needed_iterations(*compared, level)
    if needed is None:
        return replace(undecided, needed_baseline=find_needed_baseline(*compared, level))
    correlated = _allow_for_correlation(needed, correlation)
    return replace(undecided, needed_iterations=correlated, limited_by_runs=correlated is None)


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
