"""Exact statistical tests of a comparison: sums of integers, so the same on every machine.

Tests check each against SciPy, which is not used here because its import is slow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def compute_drop_p_value(
    passed_before: int, judged_before: int, passed_after: int, judged_after: int
) -> float:
    """Return the one-sided p-value of Fisher's exact test that the pass rate fell.

    R. A. Fisher, "Statistical Methods for Research Workers" (1934), section 21.02: the chance
    of at least the observed failures in the head if failures were distributed at random.
    """
    failed_before, failed_after = judged_before - passed_before, judged_after - passed_after
    failed = failed_before + failed_after
    least = max(0, failed - judged_after)
    ways = math.comb(judged_before, least) * math.comb(judged_after, failed - least)
    as_far = 0
    for before in range(least, failed_before + 1):
        as_far += ways
        # The next term of the hypergeometric distribution from this one.
        after = failed - before
        ways = ways * (judged_before - before) * after
        ways //= (before + 1) * (judged_after - after + 1)
    return round_significant(as_far / math.comb(judged_before + judged_after, failed))


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


def compute_losses_p_value(lost: int, won: int) -> float:
    """Return the one-sided exact McNemar (sign) test of scenarios lost against scenarios won.

    Q. McNemar, Psychometrika 12 (1947), 153-157, by the binomial distribution. 1 if nothing
    was lost or won.
    """
    changed = lost + won
    ways = sum(math.comb(changed, losses) for losses in range(lost, changed + 1))
    return round_significant(ways / 2**changed)


def round_significant(value: float, digits: int = 10) -> float:
    """Round to significant digits."""
    return float(f"{value:.{digits}g}")
