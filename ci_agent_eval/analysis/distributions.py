"""Distributions of the statistical tests by the logarithm of the gamma function, and p-values.

SciPy has them, too, but takes longer to import than a comparison; the tests check each against it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

_MAX_STEPS = 200
_MAX_TERMS = 10_000
_PRECISION = 1e-15
_TINY = 1e-300


def compute_beta_binomial_cdf(passed: int, total: int, alpha: float, beta: float) -> float:
    """Return the chance of at most `passed` of `total` for a rate drawn from Beta(alpha, beta).

    J. G. Skellam, Journal of the Royal Statistical Society B 10 (1948), 257-261.
    """
    if passed >= total:
        return 1.0
    constant = compute_log_beta(alpha, beta) - math.lgamma(total + 1)
    logs = (
        compute_log_beta(alpha + x, beta + total - x)
        - math.lgamma(x + 1)
        - math.lgamma(total - x + 1)
        for x in range(passed + 1)
    )
    return min(math.fsum(math.exp(log - constant) for log in logs), 1.0)


def compute_t_cdf(value: float, degrees: float) -> float:
    """Return the cumulative distribution function of Student's t; `degrees` above 0.

    NIST Digital Library of Mathematical Functions, 8.17.
    """
    square = value * value
    if square < degrees:  # of two forms the one that loses no digits
        tail = (1 - compute_regularized_beta(square / (degrees + square), 0.5, degrees / 2)) / 2
    else:
        tail = compute_regularized_beta(degrees / (degrees + square), degrees / 2, 0.5) / 2
    return tail if value <= 0 else 1 - tail


def compute_t_quantile(share: float, degrees: float) -> float:
    """Return the value below which `share` (above 0.5, below 1) of Student's t lies.

    By Newton's method from the normal quantile, which is lower: above 0 the distribution function
    is concave, so that each step stays below the value sought.
    """
    log_scale = -compute_log_beta(degrees / 2, 0.5) - math.log(degrees) / 2
    value = NormalDist().inv_cdf(share)
    for _ in range(_MAX_STEPS):
        log_density = log_scale - (degrees + 1) / 2 * math.log1p(value * value / degrees)
        step = (share - compute_t_cdf(value, degrees)) / math.exp(log_density)
        value += step
        if step <= value * 1e-13:
            break
    return value


class VariancePart(NamedTuple):
    """A variance with the degrees of freedom of its estimate."""

    variance: float
    degrees: float


def combine_parts(parts: Iterable[VariancePart]) -> VariancePart:
    """Add variances; the degrees of freedom are Satterthwaite's.

    F. E. Satterthwaite, Biometrics Bulletin 2 (1946), 110-114.
    """
    listed = list(parts)
    total = math.fsum(part.variance for part in listed)
    squares = math.fsum(part.variance**2 / part.degrees for part in listed)
    return VariancePart(total, total**2 / squares if squares else math.inf)


def compute_margin(part: VariancePart, level: float) -> float:
    """Return the distance of a one-sided confidence limit from the estimate."""
    if not part.variance:
        return 0.0
    return compute_t_quantile(1 - level, part.degrees) * math.sqrt(part.variance)


def compute_rise_p_value(rise: float, part: VariancePart) -> float:
    """Return the one-sided p-value of a rise above 0."""
    if not part.variance:
        return 0.0 if rise > 0 else 1.0
    return compute_t_cdf(-rise / math.sqrt(part.variance), part.degrees)


def compute_regularized_beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b); `x` is from 0 to 1."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - compute_log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return front * _compute_beta_fraction(x, a, b) / a
    return 1 - front * _compute_beta_fraction(1 - x, b, a) / b


def _compute_beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction DLMF 8.17.22, by the modified Lentz method."""
    numerator, denominator = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    found = denominator
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            denominator = 1 / _nonzero(1 + term * denominator)
            numerator = _nonzero(1 + term / numerator)
            change = denominator * numerator
            found *= change
        if abs(change - 1) < _PRECISION:
            break
    return found


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def compute_log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function B(a, b)."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def adjust_p_values(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values for their number by Benjamini and Hochberg's procedure.

    Y. Benjamini, Y. Hochberg, Journal of the Royal Statistical Society B 57 (1995), 289-300.
    If nothing changed at all, the chance of any p-value below a level is at most that level.
    """
    found = [1.0] * len(p_values)
    least = 1.0
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    for rank, place in zip(range(len(p_values), 0, -1), ranked, strict=True):
        least = min(least, p_values[place] * len(p_values) / rank)
        found[place] = round_significant(least)
    return tuple(found)


def compute_variance(values: Sequence[float]) -> float:
    """Return the sample's variance, of two values or more.

    `statistics.variance` is exact, by fractions, and takes fifty times as long.
    """
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def round_significant(value: float, digits: int = 10) -> float:
    """Round to significant digits."""
    return float(f"{value:.{digits}g}")


def import_numpy() -> Any:
    """Return the NumPy module."""
    import numpy as np  # noqa: PLC0415 - a tenth of a second, for comparisons only

    return np
