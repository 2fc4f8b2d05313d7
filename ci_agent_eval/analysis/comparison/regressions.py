"""Decide which scenarios regressed, corrected for the number of scenarios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ci_agent_eval.analysis.comparison import statistics
from ci_agent_eval.analysis.comparison.model import (
    ComparePolicy,
    RegressionDecision,
    ScenarioComparison,
)
from ci_agent_eval.analysis.comparison.power import find_needed_baseline, find_needed_iterations

PassCounts = tuple[int, int, int, int]
"""Passed and judged in the baseline, passed and judged in the head."""


def decide_regressions(
    scenarios: Sequence[ScenarioComparison], policy: ComparePolicy
) -> list[ScenarioComparison]:
    """Return the scenarios with a regression decision each."""
    counts = {place: found for place, s in enumerate(scenarios) if (found := _find_counts(s))}
    p_values = statistics.adjust_p_values(
        [statistics.compute_drop_p_value(*c) for c in counts.values()]
    )
    level = policy.level / max(len(counts), 1)
    decided = list(scenarios)
    for (place, found), p_value in zip(counts.items(), p_values, strict=True):
        call = decide_regression(found, p_value, policy)
        needed, baseline = _find_needed(found, level) if call == "undecided" else (None, None)
        decided[place] = replace(
            scenarios[place],
            call=call,
            p_value=p_value,
            needed_iterations=needed,
            needed_baseline=baseline,
        )
        if call == "no_regression":
            decided[place] = replace(
                decided[place],
                thinned=_is_thinned(scenarios[place], found, policy.min_drop, level),
                flakier=_is_flakier(scenarios[place], level),
            )
    return decided


def _is_thinned(
    scenario: ScenarioComparison, counts: PassCounts, min_drop: float, level: float
) -> bool:
    """Return whether too few iterations were judged to detect a drop.

    That counts only if a drop was detectable in the baseline's latest run, or if the head has at
    most half as many iterations.
    """
    passed_before, judged_before, _, judged = counts
    before = 0 if scenario.before is None else scenario.before.latest_judged
    rate = max(passed_before / judged_before - min_drop, 0.0)

    def shows(iterations: int) -> bool:
        passed = math.floor(rate * iterations + 0.5)
        p_value = statistics.compute_drop_p_value(passed_before, judged_before, passed, iterations)
        return p_value < level

    return judged < before and not shows(judged) and (judged * 2 <= before or shows(before))


def _is_flakier(scenario: ScenarioComparison, level: float) -> bool:
    """Return whether the pass rate of first attempts (without retries) regressed."""
    before, after = scenario.before, scenario.after
    if before is None or after is None or not after.flaky:
        return False
    first = (before.passed - before.flaky, after.passed - after.flaky)
    p_value = statistics.compute_drop_p_value(first[0], before.judged, first[1], after.judged)
    return p_value < level


def _find_needed(counts: PassCounts, level: float) -> tuple[int | None, int | None]:
    """Return the iterations needed for a decision; if none suffice, the baseline size needed."""
    needed = find_needed_iterations(*counts, level)
    return needed, None if needed else find_needed_baseline(*counts, level)


def _find_counts(scenario: ScenarioComparison) -> PassCounts | None:
    """Return the counts to test; None: a side was not judged or is not comparable."""
    before, after = scenario.before, scenario.after
    if before is None or after is None or scenario.change == "not_comparable":
        return None
    if not before.judged or not after.judged:
        return None
    return before.passed, before.judged, after.passed, after.judged


def decide_regression(
    counts: PassCounts, p_value: float, policy: ComparePolicy
) -> RegressionDecision:
    """Decide whether a pass rate fell; `p_value` is adjusted for the number of scenarios."""
    passed_before, judged_before, passed_after, judged_after = counts
    if p_value < policy.level:
        return "regression"
    drop = passed_before / judged_before - passed_after / judged_after
    # Rounded, because 0.9 - 0.7 is less than 0.2 in floating point.
    is_drop = drop > 0 and round(drop, 9) >= policy.min_drop
    return "undecided" if is_drop and p_value < policy.doubt else "no_regression"
