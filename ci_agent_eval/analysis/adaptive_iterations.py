"""Decide after each iteration of a scenario whether it needs more of them. Pure.

The evidence is an e-value: if the hypothesis holds, its mean is at most 1, whenever the iterations
are stopped. It can therefore be looked at after each iteration, and 20 is what a p-value of 0.05
is to a fixed number (A. Ramdas et al., "Game-theoretic statistics and safe anytime-valid
inference", Statistical Science 38 (2023), 576-601). Each is a mixture over all rates that
contradict the hypothesis.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ci_agent_eval.analysis.distributions import compute_log_beta, compute_regularized_beta
from ci_agent_eval.analysis.reliability import compute_wilson_interval
from ci_agent_eval.contract.iteration_range import IterationRange
from ci_agent_eval.contract.results import StopCause

BELOW_EVIDENCE = 20.0
"""Evidence that a scenario is below its required rate: a false-alarm rate of 5 %."""

REACHES_EVIDENCE = 10.0
"""Evidence that it is not `MARGIN` or more below its required rate."""

MARGIN = 0.15
"""Points below the required rate that a scenario must be shown to be above."""

FUTILE_EVIDENCE = 0.25
"""Evidence of a regression below which more iterations hardly ever find one."""

_MAX_LOG = 700.0
"""Largest logarithm of a number."""


class IterationCounts(NamedTuple):
    """The outcomes of a scenario's iterations so far."""

    passed: int = 0
    failed: int = 0
    unjudged: int = 0

    @property
    def judged(self) -> int:
        """Passed and failed ones."""
        return self.passed + self.failed


class PredictedRate(NamedTuple):
    """The pass rate that the baseline predicts of a further run, as a beta distribution."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """The expected rate."""
        return self.alpha / (self.alpha + self.beta)


class Demands(NamedTuple):
    """The evidence that a scenario's iterations must give."""

    required: float | None = None
    """Required pass rate; None: it is advisory."""
    predicted: PredictedRate | None = None
    """Prediction of the baseline; None: there is none."""
    regression_evidence: float = math.inf
    """Evidence at which a scenario alone is a regression: scenarios over significance level."""


def find_stop(
    counts: IterationCounts, demands: Demands, limits: IterationRange
) -> StopCause | None:
    """Return why a scenario needs no further iteration; None: it needs one.

    It depends on nothing but the scenario's own outcomes, so the order in which scenarios run, on
    whatever worker, changes no result.
    """
    if counts.unjudged >= max(limits.guaranteed, counts.judged + 1):
        return "not_judged"
    answers = [_compare_with_required(counts, demands), _compare_with_baseline(counts, demands)]
    for cause in ("below_required", "regression"):
        if cause in answers:
            return cause
    if None not in answers:
        return next((a for a in _BY_WEIGHT if a in answers), "undemanding")
    return "maximum" if counts.judged + counts.unjudged >= limits.total else None


_BY_WEIGHT: tuple[StopCause, ...] = ("inconclusive", "reaches_required", "no_regression")


def _compare_with_required(counts: IterationCounts, demands: Demands) -> StopCause | None:
    if not demands.required:
        return "undemanding"
    return decide_required_rate(counts.passed, counts.failed, demands.required)


def decide_required_rate(passed: int, failed: int, required: float) -> StopCause | None:
    """Return whether a scenario is below its required rate or reaches it; None: neither is sure."""
    if required <= 0:
        return "reaches_required"
    if compute_evidence_below(passed, failed, required) >= BELOW_EVIDENCE:
        return "below_required"
    if compute_evidence_above(passed, failed, _find_tolerated_rate(required)) >= REACHES_EVIDENCE:
        return "reaches_required"
    return None


def _find_tolerated_rate(required: float) -> float:
    return max(required - MARGIN, required / 2)


def _compare_with_baseline(counts: IterationCounts, demands: Demands) -> StopCause | None:
    predicted, threshold = demands.predicted, demands.regression_evidence
    if predicted is None:
        return "undemanding"
    evidence = compute_regression_evidence(counts.passed, counts.failed, predicted)
    if evidence >= threshold:
        return "regression"
    if evidence < FUTILE_EVIDENCE:
        return "no_regression"
    low, _ = compute_wilson_interval(counts.passed, counts.judged)
    return "inconclusive" if compute_evidence_limit(low, predicted) < threshold else None


def compute_evidence_below(passed: int, failed: int, rate: float) -> float:
    """Return the e-value against a pass rate of `rate` (above 0) or more."""
    if rate >= 1:
        return math.inf if failed else 1.0
    log_null = passed * math.log(rate) + failed * math.log1p(-rate)
    return _mix_below(passed, failed, rate, log_null)


def compute_evidence_above(passed: int, failed: int, rate: float) -> float:
    """Return the e-value against a pass rate of `rate` (below 1) or less."""
    return compute_evidence_below(failed, passed, 1 - rate)


def compute_regression_evidence(passed: int, failed: int, predicted: PredictedRate) -> float:
    """Return the e-value against a run of the base, whose rate is drawn from the prediction."""
    log_null = compute_log_beta(predicted.alpha + passed, predicted.beta + failed)
    log_null -= compute_log_beta(predicted.alpha, predicted.beta)
    return _mix_below(passed, failed, predicted.mean, log_null)


def _mix_below(passed: int, failed: int, rate: float, log_null: float) -> float:
    """Return the mean likelihood over all rates below `rate`, relative to the hypothesis."""
    share = compute_regularized_beta(rate, 1 + passed, 1 + failed)
    if share <= 0:
        return 0.0
    log_mixture = math.log(share) + compute_log_beta(1 + passed, 1 + failed) - math.log(rate)
    return math.exp(min(log_mixture - log_null, _MAX_LOG))


def compute_evidence_limit(rate: float, predicted: PredictedRate) -> float:
    """Return the evidence of a regression after endless iterations of a run with this pass rate.

    It is finite: a run of the base may have had that rate, too.
    """
    if rate >= predicted.mean:
        return 0.0
    rate = max(rate, 1e-9)
    log_density = (predicted.alpha - 1) * math.log(rate) + (predicted.beta - 1) * math.log1p(-rate)
    log_density -= compute_log_beta(predicted.alpha, predicted.beta)
    return math.exp(min(-log_density - math.log(predicted.mean), _MAX_LOG))
