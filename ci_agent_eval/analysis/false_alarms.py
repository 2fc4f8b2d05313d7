"""How often a suite fails its required pass rates although nothing changed. Exact binomials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

ACCEPTABLE_CHANCE = 0.05
"""Acceptable chance that an unchanged suite fails."""


def compute_shortfall_chance(iterations: int, pass_rate: float, required: float) -> float:
    """Return the chance that less than the required share of independent iterations passes."""
    least = math.ceil(Fraction(str(required)) * iterations)
    if pass_rate in {0.0, 1.0}:
        return float(pass_rate * iterations < least)
    ways = (
        math.lgamma(iterations + 1)
        - math.lgamma(n + 1)
        - math.lgamma(iterations - n + 1)
        + n * math.log(pass_rate)
        + (iterations - n) * math.log1p(-pass_rate)
        for n in range(least)
    )
    return min(math.fsum(map(math.exp, ways)), 1.0)


def compute_any_chance(chances: Sequence[float]) -> float:
    """Return the chance that at least one of independent events happens."""
    return 1 - math.prod(1 - chance for chance in chances)
