"""Confidence intervals of pass rates: the Wilson score interval. Pure.

E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference",
Journal of the American Statistical Association 22 (1927), 209-212; method 3 of R. G.
Newcombe, Statistics in Medicine 17 (1998), 857-872.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

CONFIDENCE_LEVEL = 0.95
"""Default confidence level of intervals."""


def compute_wilson_interval(
    passed: float, judged: int, level: float = CONFIDENCE_LEVEL
) -> tuple[float, float]:
    """Return the bounds of the confidence interval of a pass rate, 0 to 1.

    `passed` may be a sum of scores from 0 to 1, which vary less than passes and failures.

    With p = passed / judged, n = judged and z the normal quantile of (1 + level) / 2:
    (p + z²/2n ± z·sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n). The interval of 0 judged is (0, 1).
    Raises ValueError for impossible counts and for a level not between 0 and 1.
    """
    if not 0 <= passed <= judged:
        raise ValueError(f"{passed} of {judged} cannot have passed")
    if not judged:
        return 0.0, 1.0
    z, share = _compute_normal_quantile(level), passed / judged
    center = share + z * z / (2 * judged)
    spread = z * math.sqrt(share * (1 - share) / judged + z * z / (4 * judged * judged))
    whole = 1 + z * z / judged
    # Rounding errors must not exclude the share itself.
    low = min(max((center - spread) / whole, 0.0), share) if passed else 0.0
    high = max(min((center + spread) / whole, 1.0), share) if passed < judged else 1.0
    return low, high


@cache
def _compute_normal_quantile(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"a level is between 0 and 1, not {level:g}")
    return NormalDist().inv_cdf((1 + level) / 2)
