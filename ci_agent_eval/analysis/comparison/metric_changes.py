"""Changes of the suite's cost, latency and other metrics."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from statistics import fmean
from typing import NamedTuple, TypedDict

from ci_agent_eval.analysis.comparison.log_means import (
    Measurements,
    MetricSides,
    ScenarioLogs,
    estimate_day,
    is_deterministic,
    shrink_variances,
)
from ci_agent_eval.analysis.comparison.model import (
    LIKELY_LEVEL,
    Certainty,
    MetricChange,
    ScenarioMetrics,
)
from ci_agent_eval.analysis.comparison.pool import IterationValues
from ci_agent_eval.analysis.comparison.run_variation import DayVariation
from ci_agent_eval.analysis.distributions import (
    VariancePart,
    combine_parts,
    compute_margin,
    compute_variance,
)

MIN_SCENARIOS = 5
"""With fewer scenarios their differences show less than their iterations do."""


class MetricChanges(TypedDict):
    """The metric changes of a comparison."""

    pass_rate: MetricChange
    cost_usd: MetricChange
    tokens: MetricChange
    tool_calls: MetricChange
    turns: MetricChange
    p95_latency_ms: MetricChange
    typical_latency_ms: MetricChange


def compute_metric_changes(
    sides: Sequence[tuple[ScenarioMetrics, ScenarioMetrics]],
    measurements: Measurements,
    level: float,
) -> MetricChanges:
    """Return the change of each metric of the suite.

    `measurements` are the values behind `sides`; `level` is for a question about the suite.
    """
    costs, tokens, calls, turns, latencies = (
        MeasuredSuite(list(measurements[name].values()))
        for name in ("cost_usd", "tokens", "tool_calls", "turns", "p95_latency_ms")
    )

    def describe(suite: MeasuredSuite, estimate: SuiteRatio | None) -> MetricChange:
        return build_change(suite, estimate, len(sides), level)

    return {
        "pass_rate": _compare_pass_rates(sides),
        "cost_usd": describe(costs, compare_means(costs)),
        "tokens": describe(tokens, compare_means(tokens)),
        "tool_calls": describe(calls, compare_means(calls)),
        "turns": describe(turns, compare_means(turns)),
        "p95_latency_ms": describe(latencies, compare_quantiles(latencies, 0.95)),
        "typical_latency_ms": describe(latencies, compare_typical_values(latencies)),
    }


def _compare_pass_rates(sides: Sequence[tuple[ScenarioMetrics, ScenarioMetrics]]) -> MetricChange:
    rates = [(before.pass_rate, after.pass_rate) for before, after in sides]
    known = [(old, new) for old, new in rates if old is not None and new is not None]
    if not known:
        return MetricChange(compared=len(sides))
    before, after = (round(math.fsum(side) / len(known), 10) for side in zip(*known, strict=True))
    return MetricChange(before, after, len(known), len(sides))


class MeasuredSuite:
    """The values of a metric in the scenarios that measured it on both sides."""

    def __init__(self, scenarios: Sequence[MetricSides], day: DayVariation | None = None) -> None:
        self.scenarios = scenarios
        self._day = day
        """The day's shift to allow for; None: estimated from the runs of the base."""

    @cached_property
    def logs(self) -> Sequence[ScenarioLogs]:
        """The scenarios with values above 0 on both sides."""
        return [logs for sides in self.scenarios if (logs := sides.logs)]

    @cached_property
    def day(self) -> VariancePart:
        """The variance that a day's shift adds to the logarithm of a ratio."""
        return (self._day or estimate_day(self.logs)).shift


FindVariance = Callable[[float, bool], Sequence[VariancePart] | None]
"""Returns the parts of a variance for the limit at a level, upper or lower; None: no limit."""


class SuiteRatio(NamedTuple):
    """A figure of the suite on both sides, and the variance of their ratio's logarithm."""

    before: float
    after: float
    find_variance: FindVariance

    def compute_limit(self, level: float, *, upper: bool) -> float | None:
        """Return a one-sided confidence limit of the relative change.

        The method of variance estimates recovery (G. Y. Zou, A. Donner, Statistics in Medicine 27
        (2008), 1693-1702). None: too few values, or one side is 0.
        """
        parts = self.find_variance(level, upper)
        if parts is None or self.before <= 0 or self.after <= 0:
            return None
        margin = compute_margin(combine_parts(parts), level)
        rise = math.log(self.after / self.before)
        return math.expm1(rise + margin if upper else rise - margin)


def build_change(
    suite: MeasuredSuite, estimate: SuiteRatio | None, compared: int, level: float
) -> MetricChange:
    """Return the change of a metric; `compared` is the number of scenarios on both sides."""
    if estimate is None:
        return MetricChange(None, None, len(suite.scenarios), compared)
    low, high = (estimate.compute_limit(0.025, upper=upper) for upper in (False, True))
    least = estimate.compute_limit(level, upper=False)
    return MetricChange(
        round(estimate.before, 10),
        round(estimate.after, 10),
        len(suite.scenarios),
        compared,
        None if low is None or high is None else (round(low, 4), round(high, 4)),
        None if least is None else round(least, 4),
        find_certainty(estimate, level),
    )


def find_certainty(estimate: SuiteRatio, level: float) -> Certainty:
    """Return how certain it is that the figure changed in the observed direction."""
    if estimate.before == 0 and estimate.after > 0:
        return "certain"  # a metric that was 0 in all of the baseline needs no test
    rose = estimate.after > estimate.before
    for certainty, share in _LEVELS:
        limit = estimate.compute_limit(level if share is None else share, upper=not rose)
        if limit is not None and (limit > 0 if rose else limit < 0):
            return certainty
    return "inconclusive"


_LEVELS: tuple[tuple[Certainty, float | None], ...] = (
    ("certain", None),
    ("likely", LIKELY_LEVEL),
)
"""The level of each word; None: the level of a question about the suite."""


def compare_quantiles(suite: MeasuredSuite, share: float) -> SuiteRatio | None:
    """Compare a quantile of all values, each scenario counted once; None: nothing measured."""
    if not suite.scenarios:
        return None
    before = SuiteValues([sides.base for sides in suite.scenarios])
    after = SuiteValues([sides.after for sides in suite.scenarios])

    def find_variance(level: float, upper: bool) -> Sequence[VariancePart] | None:
        parts = (
            after.find_distance(share, level, upper=upper),
            before.find_distance(share, level, upper=not upper),
        )
        known = [part for part in parts if part is not None]
        return None if len(known) < len(parts) else [*known, suite.day]

    return SuiteRatio(before.find_quantile(share), after.find_quantile(share), find_variance)


def compare_typical_values(suite: MeasuredSuite) -> SuiteRatio | None:
    """Compare the geometric mean over the scenarios; None: nothing measured.

    Scenarios whose values are all 0 on a side are left out.
    """
    if not suite.scenarios:
        return None
    if not suite.logs:
        return compare_means(suite)  # one side is 0, and so is its geometric mean
    base = fmean(fmean(logs.base) for logs in suite.logs)
    rise = fmean(logs.rise for logs in suite.logs)
    own = _estimate_typical_variance(suite.logs)
    parts = None if own is None else [own, suite.day]
    return SuiteRatio(math.exp(base), math.exp(base + rise), lambda _level, _upper: parts)


def _estimate_typical_variance(scenarios: Sequence[ScenarioLogs]) -> VariancePart | None:
    """Return the variance of the mean difference, clustered by scenario where there are enough."""
    if is_deterministic(scenarios):
        return VariancePart(0.0, math.inf)
    count = len(scenarios)
    if count >= MIN_SCENARIOS:
        return VariancePart(compute_variance([logs.rise for logs in scenarios]) / count, count - 1)
    found = shrink_variances([(logs.base, logs.after) for logs in scenarios])
    if found is None:
        return None
    return combine_parts(
        VariancePart(
            part.variance * (1 / len(logs.base) + 1 / len(logs.after)) / count**2, part.degrees
        )
        for part, logs in zip(found, scenarios, strict=True)
    )


def compare_means(suite: MeasuredSuite) -> SuiteRatio | None:
    """Compare the mean over the scenarios, one value for each iteration; None: nothing measured.

    The variance is of the iterations within their scenarios, by the delta method: a scenario that
    costs nine times as much is not a chance, however many others do not.
    """
    if not suite.scenarios:
        return None
    sides = _list_sides(suite)
    means = [tuple(math.fsum(values) / len(values) for values in pair) for pair in sides]
    before, after = (math.fsum(side) / len(means) for side in zip(*means, strict=True))
    own = _estimate_mean_variance(sides, means, (before, after)) if before and after else None
    parts = None if own is None else [own, suite.day]
    return SuiteRatio(before, after, lambda _level, _upper: parts)


Pair = tuple[Sequence[float], Sequence[float]]


def _list_sides(suite: MeasuredSuite) -> list[Pair]:
    """Return the values of each scenario in the base and in the head."""
    return [
        ([v for one in sides.base for v in one], [v for one in sides.after for v in one])
        for sides in suite.scenarios
    ]


def _estimate_mean_variance(
    sides: Sequence[Pair], means: Sequence[tuple[float, ...]], totals: tuple[float, float]
) -> VariancePart | None:
    """Return the variance of the logarithm of the ratio of both means."""
    count = len(sides)
    relative = [
        [
            [value / mean for value in values]
            for values, mean in zip(pair, found, strict=True)
            if mean
        ]
        for pair, found in zip(sides, means, strict=True)
    ]
    repeats = sum(len(values) - 1 for pair in relative for values in pair)
    shrunk = shrink_variances(relative)
    if shrunk is not None and repeats >= count - 1:
        weights = (
            math.fsum(
                (mean / total / count) ** 2 / len(values)
                for values, mean, total in zip(pair, found, totals, strict=True)
            )
            for pair, found in zip(sides, means, strict=True)
        )
        return combine_parts(
            VariancePart(weight * part.variance, part.degrees)
            for weight, part in zip(weights, shrunk, strict=True)
        )
    if count < MIN_SCENARIOS:
        return None
    shares = [after / totals[1] - before / totals[0] for before, after in means]
    return VariancePart(compute_variance(shares) / count, count - 1)


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
