"""Reliability of an agent over k tries: pass@k, pass^k and the interval of a pass rate. Pure.

Unbiased estimates from n iterations of which c passed:

pass@k = 1 - C(n-c, k) / C(n, k), M. Chen et al., "Evaluating Large Language Models Trained
on Code" (2021), equation 1, arXiv:2107.03374.
pass^k = C(c, k) / C(n, k), S. Yao et al., "tau-bench: A Benchmark for Tool-Agent-User
Interaction in Real-World Domains" (2024), section 4, arXiv:2406.12045.

Confidence intervals are Wilson score intervals: E. B. Wilson, "Probable Inference, the Law of
Succession, and Statistical Inference", Journal of the American Statistical Association 22 (1927),
209-212; method 3 of R. G. Newcombe, Statistics in Medicine 17 (1998), 857-872.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction

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
    from statistics import NormalDist  # noqa: PLC0415 - results of plain tests have no rates

    return NormalDist().inv_cdf((1 + level) / 2)


REPORTED_TRIES = (2, 3, 5, 10, 20, 50, 100)
"""Values of k that reports show, up to the number of iterations."""


class Reliability(NamedTuple):
    """Chances of passing in k tries of a scenario, estimated from its iterations."""

    k: int
    pass_at_k: float
    """Chance that at least one of k passes, to six decimals."""
    pass_hat_k: float
    """Chance that all of k pass, to six decimals."""


@lru_cache(4096)
def estimate_reliability(passed: int, judged: int) -> tuple[Reliability, ...]:
    """Return pass@k and pass^k for each reported k; none for fewer than two iterations."""
    return tuple(
        Reliability(
            k, round(pass_at_k(passed, judged, k), 6), round(pass_hat_k(passed, judged, k), 6)
        )
        for k in REPORTED_TRIES
        if k <= judged
    )


def pass_at_k(passed: int, judged: int, k: int) -> float:
    """Return the chance that at least one of k tries passes. Raises ValueError as `pass_hat_k`."""
    return float(1 - _compute_chance(judged - passed, judged, k))


def pass_hat_k(passed: int, judged: int, k: int) -> float:
    """Return the chance that all of k tries pass.

    Raises ValueError for impossible counts and for a k above the number of iterations.
    """
    return float(_compute_chance(passed, judged, k))


def _compute_chance(some: int, judged: int, k: int) -> Fraction:
    """Return the chance that k iterations drawn without replacement are all among `some`."""
    if not 0 <= some <= judged or not 1 <= k <= judged:
        raise ValueError(f"{some} of {judged} iterations tell nothing of {k}")
    from fractions import Fraction  # noqa: PLC0415 - as above

    return Fraction(math.comb(some, k), math.comb(judged, k))
