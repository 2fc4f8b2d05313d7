"""Reliability of an agent over k tries: pass@k and pass^k. Pure.

Unbiased estimates from n iterations of which c passed:

pass@k = 1 - C(n-c, k) / C(n, k), M. Chen et al., "Evaluating Large Language Models Trained
on Code" (2021), equation 1, arXiv:2107.03374.
pass^k = C(c, k) / C(n, k), S. Yao et al., "tau-bench: A Benchmark for Tool-Agent-User
Interaction in Real-World Domains" (2024), section 4, arXiv:2406.12045.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

REPORTED_TRIES = (2, 3, 5, 10, 20, 50, 100)
"""Values of k that reports show, up to the number of iterations."""


@dataclass(frozen=True, slots=True)
class Reliability:
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
    return Fraction(math.comb(some, k), math.comb(judged, k))
