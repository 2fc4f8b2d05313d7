"""Find how many iterations detect a drop in pass rate."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ci_agent_eval.analysis.comparison.arrays import import_numpy
from ci_agent_eval.analysis.comparison.model import MAX_ITERATIONS

POWER = 0.8
"""Required chance of detecting the drop."""

_ROUNDING_MARGIN = 1 - 1e-9
"""Factor that keeps rounding errors from making equal values compare as below."""


def find_needed_iterations(
    passed_before: int, judged_before: int, passed_after: int, judged_after: int, level: float
) -> int | None:
    """Return how many iterations detect a drop to the observed rate, four times in five.

    Return the smallest number from which on every larger one does, too, up to `MAX_ITERATIONS`:
    the power of an exact test goes up and down (A. Agresti, "Categorical Data Analysis" (2002),
    section 6.5.6). None: not even the largest does, because the baseline has too few.
    """
    np = import_numpy()
    failed_before, rate = judged_before - passed_before, passed_after / judged_after
    most = _find_most_passes(failed_before, judged_before, level * _ROUNDING_MARGIN)
    weak = np.flatnonzero(_compute_power(most, rate) < POWER * _ROUNDING_MARGIN)
    needed = 1 if not weak.size else int(weak[-1]) + 2
    # The observed iterations did not detect the drop, so more are needed.
    return max(needed, judged_after + 1) if needed <= MAX_ITERATIONS else None


def find_needed_baseline(
    passed_before: int, judged_before: int, passed_after: int, judged_after: int, level: float
) -> int | None:
    """Return about how many baseline iterations make a drop detectable at all.

    The size is doubled with the observed pass rate. None: more than `MAX_ITERATIONS`.
    """
    for times in (1 << power for power in range(1, MAX_ITERATIONS.bit_length())):
        size: int = judged_before * times
        if size > MAX_ITERATIONS:
            return None
        if find_needed_iterations(passed_before * times, size, passed_after, judged_after, level):
            return size
    return None


def _find_most_passes(failed_before: int, judged_before: int, level: float) -> Any:
    """Return for 1, 2, ... iterations the most passes for which Fisher's test detects a drop.

    -1 if even 0 passes are no drop. Bisected for all numbers of iterations at once.
    """
    np = import_numpy()
    iterations = np.arange(1, MAX_ITERATIONS + 1)
    low, high = np.full(MAX_ITERATIONS, -1), iterations.copy()
    while (low < high).any():
        middle = (low + high + 1) // 2
        detects = _compute_p_values(failed_before, judged_before, middle, iterations) < level
        low, high = np.where(detects, middle, low), np.where(detects, high, middle - 1)
    return low


def _compute_p_values(failed_before: int, judged_before: int, passed: Any, iterations: Any) -> Any:
    """Return Fisher's p-value for each number of passes, as `compute_drop_p_value`."""
    np = import_numpy()
    before = np.arange(failed_before + 1)[:, None]
    failed = failed_before + iterations - passed
    after = failed - before
    possible = (after >= 0) & (after <= iterations)
    ways = _compute_log_comb(judged_before, before) + _compute_log_comb(
        iterations, np.where(possible, after, 0)
    )
    terms = np.exp(ways - _compute_log_comb(judged_before + iterations, failed))
    return np.where(possible, terms, 0).sum(axis=0)


def _compute_power(most: Any, rate: float) -> Any:
    """Return the chance that at most `most` of 1, 2, ... iterations pass."""
    np = import_numpy()
    if rate in {0, 1}:
        return (most >= (0 if rate == 0 else np.arange(1, MAX_ITERATIONS + 1))).astype(float)
    iterations = np.arange(1, MAX_ITERATIONS + 1)[:, None]
    passed = np.arange(most.max() + 1)[None, :]
    counts = passed <= most[:, None]
    ways = _compute_log_comb(iterations, np.where(counts, passed, 0))
    chance = ways + passed * np.log(rate) + (iterations - passed) * np.log1p(-rate)
    return np.where(counts, np.exp(np.minimum(chance, 0)), 0).sum(axis=1)


def _compute_log_comb(whole: Any, part: Any) -> Any:
    np = import_numpy()
    table = _compute_log_factorials(1 << int(np.max(whole)).bit_length())
    return table[whole] - table[part] - table[whole - part]


@lru_cache(8)
def _compute_log_factorials(size: int) -> Any:
    np = import_numpy()
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, size + 1)))])
