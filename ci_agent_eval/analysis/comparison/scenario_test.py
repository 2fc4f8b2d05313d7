"""The test of one scenario: the chance that a run of the unchanged base does as badly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_agent_eval.analysis.adaptive_iterations import (
    PredictedRate,
    compute_regression_evidence,
)
from ci_agent_eval.analysis.comparison.model import Baseline
from ci_agent_eval.analysis.comparison.pool import find_distinct_runs, pool_iterations
from ci_agent_eval.analysis.comparison.run_variation import (
    PassCounts,
    ScenarioCounts,
    estimate_base_correlation,
)
from ci_agent_eval.analysis.distributions import (
    adjust_p_values,
    compute_beta_binomial_cdf,
    round_significant,
)
from ci_agent_eval.analysis.loaded_results import group_by_scenario
from ci_agent_eval.contract.results import PredictedScenario


def predict_rate(before: Sequence[PassCounts], correlation: float) -> PredictedRate | None:
    """Predict the pass rate of a further run; None: no iteration of the base passed.

    The iterations of a run count less the more they are alike. Without correlation the chance
    of the head's passes is the p-value of Fisher's one-sided exact test.
    """
    weights = [1 / (1 + (run.judged - 1) * correlation) for run in before]
    passed = sum(weight * run.passed for weight, run in zip(weights, before, strict=True))
    judged = sum(weight * run.judged for weight, run in zip(weights, before, strict=True))
    if not passed:
        return None
    mean = passed / (judged + 1)
    spread = correlation + (1 - correlation) / (judged + 2)
    size = 1 / spread - 1
    return PredictedRate(mean * size, (1 - mean) * size)


def predict_scenarios(baseline: Baseline) -> Iterator[PredictedScenario]:
    """Yield the pass rate that each scenario of the baseline has in a further run."""
    runs = [
        group_by_scenario(baseline.runs[place].episodes)
        for place in find_distinct_runs(baseline.runs)
    ]
    before: dict[tuple[str, str], list[PassCounts]] = {}
    for name, agent in sorted({key for run in runs for key in run}):
        pool = pool_iterations((n, run.get((name, agent), [])) for n, run in enumerate(runs))
        if pool.runs:
            before[name, agent] = [sample.counts for sample in pool.runs]
    correlation = estimate_base_correlation(list(before.values()))
    for (name, agent), counts in before.items():
        if predicted := predict_rate(counts, correlation):
            alpha, beta = predicted
            yield PredictedScenario(scenario_id=name, agent=agent or None, alpha=alpha, beta=beta)


def compute_drop_p_values(
    scenarios: Sequence[ScenarioCounts],
    correlation: float,
    level: float,
    others: Sequence[float] = (),
) -> list[float | None]:
    """Return each scenario's p-value of a drop, adjusted for the number that could show one.

    The p-values of `others`, tests of other measures, follow and are adjusted with them. None:
    both sides together have so few failures that not even all of them in the head would be
    significant (R. E. Tarone, Biometrics 46 (1990), 515-522). The others are adjusted by Benjamini
    and Hochberg's procedure, as in P. B. Gilbert, Applied Statistics 54 (2005), 143-158.
    """
    least = [*map(_compute_least_p_value, scenarios), *(0.0 for _ in others)]
    tested = _find_testable(least, level)
    count = len(scenarios)
    found = adjust_p_values(
        [
            compute_drop_p_value(scenarios[i], correlation) if i < count else others[i - count]
            for i in tested
        ]
    )
    adjusted: list[float | None] = [None] * len(least)
    for place, p_value in zip(tested, found, strict=True):
        adjusted[place] = p_value
    return adjusted


def compute_drop_p_value(scenario: ScenarioCounts, correlation: float) -> float:
    """Return the p-value of one scenario, not adjusted.

    Of adaptive iterations it is the reciprocal of their e-value: adjusted together they are the
    e-BH procedure (R. Wang and A. Ramdas, JRSS B 84 (2022), 822-852).
    """
    predicted, head = predict_rate(scenario.before, correlation), scenario.evidence
    if predicted is None:
        return 1.0
    if scenario.sequential is None:
        return round_significant(compute_beta_binomial_cdf(*head, *predicted))
    found = compute_regression_evidence(head.passed, head.judged - head.passed, predicted)
    return round_significant(min(1.0, 1 / found)) if found else 1.0


def _compute_least_p_value(scenario: ScenarioCounts) -> float:
    """Return the p-value without correlation if all failures of both sides were in the head."""
    after, pooled = scenario.evidence, scenario.pooled
    failed = pooled.judged - pooled.passed + after.judged - after.passed
    head_failed = min(failed, after.judged)
    before = PassCounts(pooled.judged - failed + head_failed, pooled.judged)
    worst = PassCounts(after.judged - head_failed, after.judged)
    return compute_drop_p_value(ScenarioCounts((before,), worst), 0.0)


def _find_testable(least: Sequence[float], level: float) -> list[int]:
    """Return the places of the tests that could be significant, by Tarone's procedure."""
    for count in range(1, len(least) + 1):
        possible = [place for place, p_value in enumerate(least) if p_value <= level / count]
        if len(possible) <= count:
            return possible
    return list(range(len(least)))
