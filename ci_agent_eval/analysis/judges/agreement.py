"""The agreement of a judge with people, and a pass rate that is corrected for its errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

from ci_agent_eval.analysis.intervals import CONFIDENCE_LEVEL, compute_wilson_interval
from ci_agent_eval.analysis.judges.statistics_library import compute_kappa
from ci_agent_eval.analysis.judges.variance import RateEstimate


class LabelPair(NamedTuple):
    """A person's label and the judge's verdict about one transcript; True: it passes."""

    label: bool
    verdict: bool


@dataclass(frozen=True, slots=True)
class KappaEstimate:
    """Cohen's kappa, the agreement beyond chance, with its 95 % interval."""

    kappa: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class JudgeCalibration:
    """How well a judge's verdicts agree with human labels."""

    agreement: RateEstimate
    """Share of transcripts with the same verdict and label."""
    passing: RateEstimate | None
    """Share of the transcripts labelled as passing that the judge passes; None: none labelled."""
    failing: RateEstimate | None
    """Share of the transcripts labelled as failing that the judge fails; None: none labelled."""
    kappa: KappaEstimate | None
    """None: all labels, or all verdicts and labels, are the same, so that chance explains all."""


def calibrate_judge(pairs: Sequence[LabelPair]) -> JudgeCalibration:
    """Compare verdicts with labels. Raises ValueError without a pair."""
    if not pairs:
        raise ValueError("an agreement needs at least one label")
    same = [pair.label == pair.verdict for pair in pairs]
    passing = [pair.verdict for pair in pairs if pair.label]
    failing = [not pair.verdict for pair in pairs if not pair.label]
    return JudgeCalibration(
        agreement=_estimate_rate(same),
        passing=_estimate_rate(passing) if passing else None,
        failing=_estimate_rate(failing) if failing else None,
        kappa=_estimate_kappa(pairs) if passing and failing else None,
    )


def _estimate_rate(values: Sequence[bool]) -> RateEstimate:
    low, high = compute_wilson_interval(sum(values), len(values))
    return RateEstimate(sum(values) / len(values), low, high, len(values))


def _estimate_kappa(pairs: Sequence[LabelPair]) -> KappaEstimate:
    """Return kappa with the wider of two intervals.

    The asymptotic one has no width if all verdicts agree with the labels, however few they are.
    The other one is Wilson's for the agreement, converted with the agreement by chance p:
    kappa = (agreement - p) / (1 - p).
    """
    table = [
        [sum(pair == (label, verdict) for pair in pairs) for verdict in (True, False)]
        for label in (True, False)
    ]
    found, total = compute_kappa(table), len(pairs)
    chance = math.fsum(
        sum(row) * sum(column) for row, column in zip(table, zip(*table, strict=True), strict=True)
    ) / (total * total)
    agreed = compute_wilson_interval(table[0][0] + table[1][1], total)
    low, high = ((bound - chance) / (1 - chance) for bound in agreed)
    return KappaEstimate(
        found.kappa, max(min(found.low, low), -1.0), min(max(found.high, high), 1.0)
    )


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """The pass rate that people would see, estimated from a judge's verdicts."""

    rate: float
    low: float
    high: float


def correct_pass_rate(
    passed: int, judged: int, calibration: JudgeCalibration, level: float = CONFIDENCE_LEVEL
) -> CorrectedRate | None:
    """Correct a judge's pass rate for its errors; None if its labels do not allow it.

    W. J. Rogan, B. Gladen, American Journal of Epidemiology 107 (1978), 71-76; the interval,
    which includes that the errors are estimated from few labels, is that of Z. Lang and
    J. Reiczigel, Preventive Veterinary Medicine 113 (2014), 13-22. `passed` of `judged` count as
    independent; that of fixed scenarios varies less.
    """
    if calibration.passing is None or calibration.failing is None or not judged:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    total = judged + z * z
    observed = (passed + z * z / 2) / total
    sensitivity, n_passing = _shrink_rate(calibration.passing)
    specificity, n_failing = _shrink_rate(calibration.failing)
    power = sensitivity + specificity - 1
    if power <= 0:
        return None
    rate = min(max((observed + specificity - 1) / power, 0.0), 1.0)
    pass_part = sensitivity * (1 - sensitivity) / n_passing
    fail_part = specificity * (1 - specificity) / n_failing
    shift = 2 * z * z * (rate * pass_part - (1 - rate) * fail_part)
    variance = observed * (1 - observed) / total + rate**2 * pass_part + (1 - rate) ** 2 * fail_part
    margin = z * math.sqrt(variance) / power
    plain = calibration.passing.rate + calibration.failing.rate - 1
    estimate = (passed / judged + calibration.failing.rate - 1) / plain if plain > 0 else rate
    low, high = rate + shift - margin, rate + shift + margin
    return CorrectedRate(*(min(max(one, 0.0), 1.0) for one in (estimate, low, high)))


def _shrink_rate(found: RateEstimate) -> tuple[float, int]:
    """Add one success and one failure; return the rate and the number."""
    return (found.rate * found.count + 1) / (found.count + 2), found.count + 2
