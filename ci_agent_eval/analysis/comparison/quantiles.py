"""A quantile of the values of a suite, each scenario counted once, with its uncertainty."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property

from ci_agent_eval.analysis.comparison.pool import IterationValues
from ci_agent_eval.analysis.comparison.statistics import compute_variance
from ci_agent_eval.analysis.distributions import VariancePart, compute_margin

_ROUNDING = 1e-9
_FEW = 3
"""Expected values beyond the quantile below which their spread shows no uncertainty."""


class SuiteValues:
    """The values of one side: each scenario has weight 1, shared equally by its values."""

    def __init__(self, scenarios: Sequence[IterationValues]) -> None:
        self._scenarios = scenarios
        self._ordered = [sorted(v for one in found for v in one) for found in scenarios]
        self._pooled = sorted(value for values in self._ordered for value in values)
        self._estimates: dict[float, tuple[float, VariancePart]] = {}

    def find_quantile(self, share: float) -> float:
        """Return the smallest value that at least this share of the weight does not exceed."""
        place = bisect_left(self._pooled, share - _ROUNDING, key=self._compute_share)
        return self._pooled[min(place, len(self._pooled) - 1)]

    def find_distance(self, share: float, level: float, *, upper: bool) -> VariancePart | None:
        """Return the variance of a quantile's logarithm, as seen by its confidence limit.

        R. S. Woodruff, Journal of the American Statistical Association 47 (1952), 635-646, with
        iterations as clusters. None: too few values for a limit.
        """
        if self._is_constant:
            return VariancePart(0.0, math.inf)
        outside = share if upper else 1 - share
        if outside**self._effective_count > level:
            return None
        quantile, error = self._estimate_quantile(share)
        margin = compute_margin(error, level)
        limit = self.find_quantile(share + margin if upper else share - margin)
        if limit <= 0 or not margin:
            return VariancePart(0.0, math.inf) if limit > 0 else None
        steps = margin / math.sqrt(error.variance)
        return VariancePart((math.log(limit / quantile) / steps) ** 2, error.degrees)

    def _estimate_quantile(self, share: float) -> tuple[float, VariancePart]:
        """Return a quantile, and the variance of the share of the weight up to it."""
        if share not in self._estimates:
            quantile = self.find_quantile(share)
            self._estimates[share] = quantile, self._estimate_error(quantile, share)
        return self._estimates[share]

    @cached_property
    def _is_constant(self) -> bool:
        return any(len(found) > 1 for found in self._scenarios) and all(
            len(set(found)) == 1 for found in self._scenarios
        )

    @cached_property
    def _effective_count(self) -> float:
        """Effective sample size: the number of equally weighted values with this precision."""
        return len(self._ordered) ** 2 / math.fsum(1 / len(values) for values in self._ordered)

    def _compute_share(self, value: float) -> float:
        """Return the share of the weight of values that do not exceed this one."""
        parts = (bisect_right(values, value) / len(values) for values in self._ordered)
        return math.fsum(parts) / len(self._ordered)

    def _estimate_error(self, quantile: float, share: float) -> VariancePart:
        """Return the variance of the share of the weight up to the quantile."""
        squares = [_sum_squared_residuals(found, quantile) for found in self._scenarios]
        extra = [len(found) - 1 for found in self._scenarios]
        scenarios, degrees = len(self._scenarios), sum(extra)
        if degrees >= max(scenarios - 1, 1):
            pooled = math.fsum(squares) / degrees
            # A scenario with one iteration varies as the others do.
            own = math.fsum(
                (found / more if more else pooled) / (more + 1)
                for found, more in zip(squares, extra, strict=True)
            )
            error = VariancePart(own / scenarios**2, degrees)
        else:
            shares = [bisect_right(values, quantile) / len(values) for values in self._ordered]
            spread = compute_variance(shares) if scenarios > 1 else 0.0
            error = VariancePart(spread / scenarios, max(scenarios - 1, 1))
        if self._effective_count * min(share, 1 - share) < _FEW:
            least = share * (1 - share) / self._effective_count
            return VariancePart(max(error.variance, least), error.degrees)
        return error


def _sum_squared_residuals(iterations: IterationValues, quantile: float) -> float:
    """Return the squared residuals of the ratio of values up to the quantile to all values."""
    counts = [(sum(1 for v in values if v <= quantile), len(values)) for values in iterations]
    usual = sum(size for _, size in counts) / len(counts)
    share = sum(below for below, _ in counts) / (usual * len(counts))
    return math.fsum((below - share * size) ** 2 for below, size in counts) / usual**2
