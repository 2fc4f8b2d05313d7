"""The tests behind a comparison, by SciPy where it has them; it is imported when first used.

What they return is rounded, so that neither a machine's arithmetic nor SciPy's version
changes a byte of a report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from ci_agent_eval.errors import InputError

RESAMPLES = 2000
SEED = 20_240_101
"""The bootstrap draws the same resamples every time."""

MOST_ITERATIONS = 10_000
"""Beyond it no number of iterations is named."""


def p_value_of_drop(
    passed_before: int, judged_before: int, passed_after: int, judged_after: int
) -> float:
    """Return the one-sided p-value of Fisher's exact test that the pass rate fell.

    R. A. Fisher, "Statistical Methods for Research Workers" (1934), section 21.02; here
    `scipy.stats.fisher_exact` of passes and failures after and before.
    """
    table = [
        [passed_after, judged_after - passed_after],
        [passed_before, judged_before - passed_before],
    ]
    return significant(float(_stats().fisher_exact(table, alternative="less").pvalue))


def adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p-values corrected for their number by Benjamini and Hochberg's procedure.

    Y. Benjamini, Y. Hochberg, Journal of the Royal Statistical Society B 57 (1995), 289-300;
    `scipy.stats.false_discovery_control`. Where nothing changed at all, the chance of any call
    below a level is at most that level.
    """
    if not p_values:
        return ()
    return tuple(significant(float(p)) for p in _stats().false_discovery_control(p_values))


def p_value_of_losses(lost: int, won: int) -> float:
    """Return the one-sided exact McNemar (sign) test of scenarios lost against scenarios won.

    Q. McNemar, Psychometrika 12 (1947), 153-157, by the binomial distribution:
    `scipy.stats.binomtest`. 1 where nothing was lost or won.
    """
    if not lost + won:
        return 1.0
    result = _stats().binomtest(lost, lost + won, 0.5, alternative="greater")
    return significant(float(result.pvalue))


def interval_of_change(
    before: Sequence[float], after: Sequence[float], level: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of the relative change of a mean, by a seeded paired bootstrap.

    One pair for each scenario; percentile method (B. Efron, R. Tibshirani, "An Introduction to
    the Bootstrap" (1993), chapter 13), `scipy.stats.bootstrap`. None for fewer than two pairs,
    and where the mean before is 0 in some resample.
    """
    if len(before) < 2 or min(before) <= 0:
        return None
    if len(set(zip(before, after, strict=True))) == 1:
        change = round(after[0] / before[0] - 1, 4)
        return change, change

    def change_of(later: Any, earlier: Any, axis: int) -> Any:
        return later.mean(axis=axis) / earlier.mean(axis=axis) - 1

    found = _stats().bootstrap(
        (list(after), list(before)),
        change_of,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=level,
        method="percentile",
        rng=SEED,
    )
    low, high = found.confidence_interval
    return round(float(low), 4), round(float(high), 4)


def iterations_to_tell(
    passed_before: int, judged_before: int, passed_after: int, judged_after: int, level: float
) -> int | None:
    """Return how many iterations, passing at the rate seen, would show the drop at a level.

    None: not even very many would, because the baseline has too few.
    """
    rate = passed_after / judged_after

    def tells(iterations: int) -> bool:
        passed = math.floor(rate * iterations + 0.5)
        return p_value_of_drop(passed_before, judged_before, passed, iterations) < level

    high = judged_after
    while not tells(high):
        high *= 2
        if high > MOST_ITERATIONS:
            return None
    low = max(high // 2, judged_after)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if tells(middle) else (middle + 1, high)
    return high


def significant(value: float, digits: int = 10) -> float:
    """Round to significant digits."""
    return float(f"{value:.{digits}g}")


def require_scipy() -> None:
    """Raise InputError where SciPy is missing; a suite need not run before this is known."""
    if find_spec("scipy") is None:
        raise InputError(
            "a comparison needs SciPy, which is not installed; "
            "run: pip install 'ci-agent-eval[compare]'"
        )


def _stats() -> Any:
    require_scipy()
    from scipy import stats  # noqa: PLC0415 - half a second, for comparisons only

    return stats
