"""How many iterations would show a drop."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ci_agent_eval.analysis.comparison.arrays import import_numpy

POWER = 0.8
"""The chance to show the drop that makes a number of iterations enough."""

MAX_ITERATIONS = 1000
"""Beyond it no number of iterations is named."""

_ROUNDING_MARGIN = 1 - 1e-9
"""What is equal but for rounding is not below."""


def find_needed_iterations(
    passed_before: int, judged_before: int, passed_after: int, judged_after: int, level: float
) -> int | None:
    """Return how many iterations show a drop to the rate seen at a level, four times in five.

    It is the smallest number from which on every larger one does, too, up to `MOST_ITERATIONS`:
    the power of an exact test goes up and down (A. Agresti, "Categorical Data Analysis" (2002),
    section 6.5.6). None: not even the largest does, because the baseline has too few.
    """
    np = import_numpy()
    failed_before, rate = judged_before - passed_before, passed_after / judged_after
    most = _find_most_passes(failed_before, judged_before, level * _ROUNDING_MARGIN)
    weak = np.flatnonzero(_compute_power(most, rate) < POWER * _ROUNDING_MARGIN)
    needed = 1 if not weak.size else int(weak[-1]) + 2
    # The test of what was seen did not show it, whatever another test would.
    return max(needed, judged_after + 1) if needed <= MAX_ITERATIONS else None


def find_needed_baseline(
    passed_before: int, judged_before: int, passed_after: int, judged_after: int, level: float
) -> int | None:
    """Return about how many iterations of the baseline let some number of iterations show a drop.

    Its pass rate stays as seen, its size is doubled. None: beyond `MOST_ITERATIONS` of them.
    """
    for times in (1 << power for power in range(1, MAX_ITERATIONS.bit_length())):
        size: int = judged_before * times
        if size > MAX_ITERATIONS:
            return None
        if find_needed_iterations(passed_before * times, size, passed_after, judged_after, level):
            return size
    return None


def _find_most_passes(failed_before: int, judged_before: int, level: float) -> Any:
    """Return for 1, 2, ... iterations how many may pass so that Fisher's test shows a drop.

    -1 where not even none may. Bisected for all of them at once.
    """
    np = import_numpy()
    iterations = np.arange(1, MAX_ITERATIONS + 1)
    low, high = np.full(MAX_ITERATIONS, -1), iterations.copy()
    while (low < high).any():
        middle = (low + high + 1) // 2
        tells = _compute_p_values(failed_before, judged_before, middle, iterations) < level
        low, high = np.where(tells, middle, low), np.where(tells, high, middle - 1)
    return low


def _compute_p_values(failed_before: int, judged_before: int, passed: Any, iterations: Any) -> Any:
    """Return Fisher's p-value of each number of passes after, as `p_value_of_drop` has it."""
    np = import_numpy()
    before = np.arange(failed_before + 1)[:, None]
    failed = failed_before + iterations - passed
    after = failed - before
    possible = (after >= 0) & (after <= iterations)
    ways = _log_comb(judged_before, before) + _log_comb(iterations, np.where(possible, after, 0))
    terms = np.exp(ways - _log_comb(judged_before + iterations, failed))
    return np.where(possible, terms, 0).sum(axis=0)


def _compute_power(most: Any, rate: float) -> Any:
    """Return the chance that no more pass than `most` says for 1, 2, ... iterations."""
    np = import_numpy()
    if rate in {0, 1}:
        return (most >= (0 if rate == 0 else np.arange(1, MAX_ITERATIONS + 1))).astype(float)
    iterations = np.arange(1, MAX_ITERATIONS + 1)[:, None]
    passed = np.arange(most.max() + 1)[None, :]
    counts = passed <= most[:, None]
    ways = _log_comb(iterations, np.where(counts, passed, 0))
    chance = ways + passed * np.log(rate) + (iterations - passed) * np.log1p(-rate)
    return np.where(counts, np.exp(np.minimum(chance, 0)), 0).sum(axis=1)


def _log_comb(whole: Any, part: Any) -> Any:
    np = import_numpy()
    table = _log_factorials(1 << int(np.max(whole)).bit_length())
    return table[whole] - table[part] - table[whole - part]


@lru_cache(8)
def _log_factorials(size: int) -> Any:
    np = import_numpy()
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size + 1)))])
