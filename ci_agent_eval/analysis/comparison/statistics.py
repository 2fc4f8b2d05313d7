"""Variance, adjustment of p-values for their number, rounding, and the import of NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


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
