"""Confidence of a change in cost, tokens, tool calls or latency, by resampling iterations.

The scenarios of a suite are fixed; only the iterations of each scenario are random. So iterations
are resampled within each scenario and side, and scenarios stay paired. The result does not depend
on the order of scenarios or iterations, nor on names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from ci_agent_eval.analysis.comparison.arrays import import_numpy

RESAMPLES = 1000
SEED = 20_240_101
"""A fixed seed, so that results are reproducible."""

MAX_SINGLE_SHARE = 0.1
"""Maximum share of scenarios with one iteration on a side; above it there is no interval."""

MetricStatistic = Literal["mean", "p95"]
"""`mean` of one value for each iteration, or `p95` of all values of the iterations."""

IterationValues = tuple[tuple[float, ...], ...]
"""The measured values of each iteration."""


_Item = TypeVar("_Item")


class IterationPair(NamedTuple):
    """A scenario's iterations on both sides."""

    before: IterationValues
    after: IterationValues


def compute_change_interval(
    pairs: Sequence[IterationPair], statistic: MetricStatistic, level: float = 0.95
) -> tuple[float, float] | None:
    """Return the interval of the relative change of the mean over scenarios, by a bootstrap.

    Stratified and seeded, percentile method (B. Efron, R. Tibshirani, "An Introduction to the
    Bootstrap" (1993), chapter 13). Of n iterations n - 1 are drawn, which makes the spread
    equal to the sample's, not too small by a share of 1/n (J. N. K. Rao, C. F. J. Wu, Journal
    of the American Statistical Association 83 (1988), 231-241). None if a side has a single
    iteration in too many scenarios, or if the baseline's mean is 0 in a resample.
    """
    np = import_numpy()
    single = sum(1 for pair in pairs if min(map(len, pair)) == 1)
    if not pairs or single > MAX_SINGLE_SHARE * len(pairs):
        return None
    draws = _Draws()
    ordered = sorted(_sort_pair(pair) for pair in pairs)
    before = sum((draws.bootstrap(pair.before, statistic) for pair in ordered), np.zeros(1))
    after = sum((draws.bootstrap(pair.after, statistic) for pair in ordered), np.zeros(1))
    if (before <= 0).any():
        return None
    ends = np.quantile(after / before - 1, [(1 - level) / 2, (1 + level) / 2])
    return round(float(ends[0]), 4), round(float(ends[1]), 4)


def compute_increase_p_value(
    pairs: Sequence[IterationPair], statistic: MetricStatistic, allowed: float
) -> float | None:
    """Return the one-sided p-value that the mean over scenarios rose by more than allowed.

    If it rose by exactly the allowed share, scaled iterations are exchangeable between the sides:
    labels are permuted within each scenario (a permutation test, R. A.
    Fisher, "The Design of Experiments" (1935), section 21; with the observed labels among the
    permutations, B. Phipson, G. Smyth, Statistical Applications in Genetics and Molecular Biology 9
    (2010), article 39). Exact even for few iterations,
    for which the interval is too narrow. None: there is nothing to compare.
    """
    if not pairs:
        return None
    draws = _Draws()
    observed, size, permuted = 0.0, 0.0, import_numpy().zeros(RESAMPLES)
    for pair in sorted(_sort_pair(pair) for pair in pairs):
        scaled = tuple(tuple(v * (1 + allowed) for v in values) for values in pair.before)
        own, drawn = draws.permute(scaled, pair.after, statistic)
        observed, permuted, size = observed + own, permuted + drawn, size + abs(own)
    # Sums in another order differ in their last digits, so a margin is needed.
    as_far = int((permuted >= observed - 1e-9 * (size + abs(observed))).sum())
    return round((1 + as_far) / (1 + RESAMPLES), 10)


def _sort_pair(pair: IterationPair) -> IterationPair:
    return IterationPair(tuple(sorted(pair.before)), tuple(sorted(pair.after)))


class _Draws:
    """Draws of iterations, as weights: a row for each iteration, a column for each draw.

    Sides with the same number of iterations share their draws, which is much faster. Each side
    shuffles both its iterations and the draws: otherwise chance imbalances of the draws would be
    the same in all scenarios.
    """

    def __init__(self) -> None:
        self._random = import_numpy().random.default_rng(SEED)
        self._resamples: dict[int, Any] = {}
        self._deals: dict[tuple[int, int], Any] = {}

    def bootstrap(self, iterations: IterationValues, statistic: MetricStatistic) -> Any:
        """Return the statistic of each resample of a side."""
        count = len(iterations)
        if len(set(iterations)) == 1:
            (same,) = _compute_statistic(
                iterations[:1], import_numpy().ones((1, 1), dtype=int), statistic
            )
            return import_numpy().full(RESAMPLES, same)
        if count not in self._resamples:
            self._resamples[count] = self._resample(count)
        shuffled = tuple(self._shuffle(iterations))
        return self._reorder(_compute_statistic(shuffled, self._resamples[count], statistic))

    def permute(
        self, before: IterationValues, after: IterationValues, statistic: MetricStatistic
    ) -> tuple[float, Any]:
        """Return the head's statistic minus the baseline's: observed, and in each permutation."""
        np = import_numpy()
        sizes = len(before), len(after)
        if sizes not in self._deals:
            self._deals[sizes] = self._draw_permutations(*sizes)
        sides = sorted([(values, 0) for values in before] + [(values, 1) for values in after])
        pool = self._shuffle(sides)
        iterations = tuple(values for values, _ in pool)
        observed = np.array([[label] for _, label in pool], dtype=np.int32)
        labels = np.concatenate([observed, self._deals[sizes]], axis=1)
        now, past = (
            _compute_statistic(iterations, side, statistic) for side in (labels, 1 - labels)
        )
        return float(now[0] - past[0]), self._reorder((now - past)[1:])

    def _reorder(self, figures: Any) -> Any:
        return figures[self._random.permutation(RESAMPLES)]

    def _shuffle(self, items: Sequence[_Item]) -> list[_Item]:
        return [items[place] for place in self._random.permutation(len(items))]

    def _resample(self, count: int) -> Any:
        np = import_numpy()
        drawn = self._random.integers(0, count, size=(count - 1, RESAMPLES))
        places = (drawn * RESAMPLES + np.arange(RESAMPLES)).ravel()
        weights = np.bincount(places, minlength=count * RESAMPLES)
        return weights.reshape(count, RESAMPLES).astype(np.int32)

    def _draw_permutations(self, before: int, after: int) -> Any:
        np = import_numpy()
        order = self._random.random((RESAMPLES, before + after), dtype=np.float32)
        chosen = np.argpartition(order, after - 1, axis=1)[:, :after]
        labels = np.zeros((RESAMPLES, before + after), dtype=np.int32)
        np.put_along_axis(labels, chosen, 1, axis=1)
        return np.ascontiguousarray(labels.T)


def _compute_statistic(
    iterations: IterationValues, weights: Any, statistic: MetricStatistic
) -> Any:
    """Return the statistic for each column of weights."""
    np = import_numpy()
    if statistic == "mean":
        figures = np.array([value for (value,) in iterations], dtype=float)
        return figures @ weights / weights.sum(axis=0)
    pairs = [(v, place) for place, values in enumerate(iterations) for v in values]
    pairs.sort(reverse=True)
    values, owners = (np.array(column) for column in zip(*pairs, strict=True))
    sizes = np.array([len(values) for values in iterations], dtype=np.int32)
    return _compute_weighted_p95(values, owners, weights, sizes @ weights)


def _compute_weighted_p95(values: Any, owners: Any, weights: Any, measured: Any) -> Any:
    """Return the nearest-rank p95 of descending values, weighted by each column.

    As in `latency_statistic`: the first from the top with no more than 5 % above it.
    """
    np = import_numpy()
    above = measured - np.ceil(np.round(0.95 * measured, 9))
    # The largest values usually suffice, and are faster to search.
    for looked_at in (len(values) // 8 + 16, len(values)):
        counted = weights[owners[:looked_at]].cumsum(axis=0, dtype=np.int32)
        places = (counted <= above.astype(np.int32)).sum(axis=0)
        if (places < len(counted)).all():
            break
    return values[places]
