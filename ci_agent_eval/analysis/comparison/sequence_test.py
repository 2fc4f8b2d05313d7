"""The test of one scenario's tool calls: whether their distribution differs between two sides."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from ci_agent_eval.analysis.comparison.pool import ToolSequence
from ci_agent_eval.analysis.comparison.run_variation import MeanSquares
from ci_agent_eval.analysis.distributions import import_numpy, round_significant

PERMUTATIONS = 1999
MORE_PERMUTATIONS = 19_999
"""For a scenario that differs more than all permutations, if that is not enough."""

ASSUMED_CORRELATION = 0.05
"""Correlation of a run's iterations, as far as several runs of the base show none."""

ASSUMED_WEIGHT = 8
"""Degrees of freedom of the assumed correlation."""

_SEED = 20_240_102


@dataclass(frozen=True)
class SequenceCounts:
    """How often each sequence of tool calls occurred in each run of the base, and in the head."""

    before: tuple[Mapping[ToolSequence, int], ...]
    after: Mapping[ToolSequence, int]

    @cached_property
    def base(self) -> Counter[ToolSequence]:
        """The runs of the base together."""
        return sum((Counter(run) for run in self.before), Counter())

    @cached_property
    def pooled(self) -> Counter[ToolSequence]:
        """Both sides together."""
        return self.base + Counter(self.after)


def estimate_sequence_correlation(scenarios: Sequence[SequenceCounts]) -> float:
    """Estimate how alike the iterations of a run are, 0 to 1, pooled over the scenarios.

    The analysis of variance estimator as for pass rates, its squares summed over the values (R. J.
    Light, B. H. Margolin, Journal of the American Statistical Association 66 (1971), 534-544).
    """
    varied = [s for s in scenarios if len(s.before) > 1 and len(s.base) > 1]
    runs = [run for s in varied for run in s.before]
    extra, within = sum(len(s.before) - 1 for s in varied), sum(_count(r) - 1 for r in runs)
    if not extra or not within:
        return _assume_correlation(scenarios)
    squares = sum(_count(run) * _compute_diversity(run) for run in runs)
    total = sum(s.base.total() * _compute_diversity(s.base) for s in varied)
    size = sum(s.base.total() - _sum_squared_sizes(s) / s.base.total() for s in varied) / extra
    weights = [_compute_diversity(s.base) for s in varied]
    effective = math.fsum(weights) ** 2 / math.fsum(weight**2 for weight in weights)
    freedom = extra / len(varied) * effective
    found = MeanSquares((total - squares) / extra, squares / within, size, freedom)
    most = max(len(s.before) for s in varied)
    return found.raise_by(
        found.shrink(ASSUMED_CORRELATION, ASSUMED_WEIGHT), 1 / math.sqrt(most - 1)
    )


def _assume_correlation(scenarios: Sequence[SequenceCounts]) -> float:
    """Return the correlation where no two runs of the base show one.

    Less for few iterations, for which the test is careful enough: few p-values are possible.
    """
    most = max((_count(s.after) for s in scenarios), default=1)
    return ASSUMED_CORRELATION * min(most / 8, 1)


def compute_change_p_values(
    scenarios: Sequence[SequenceCounts], correlation: float, level: float
) -> list[float | None]:
    """Return the p-value that each scenario's distribution changed, adjusted for their number.

    None: no arrangement of its values could show a change. The others are adjusted by Benjamini
    and Hochberg's procedure for discrete tests (J. F. Heyse, "Recent Advances in Biostatistics"
    (2011), 43-58), which counts a test only as far as it can reach the p-value.
    """
    tests = {place: t for place, s in enumerate(scenarios) if (t := _build_test(s, correlation))}
    p_values = {place: test.compute_p_value() for place, test in tests.items()}
    adjusted = _adjust(tests, p_values)
    least = 1 / (PERMUTATIONS + 1)
    more = [place for place, p in p_values.items() if p == least and adjusted[place] > level]
    if more:
        p_values |= {place: tests[place].compute_p_value(MORE_PERMUTATIONS) for place in more}
        adjusted = _adjust(tests, p_values)
    return [adjusted.get(place) for place in range(len(scenarios))]


def _adjust(
    tests: Mapping[int, _PermutationTest], p_values: Mapping[int, float]
) -> dict[int, float]:
    found: dict[int, float] = {}
    least = 1.0
    ranked = sorted(p_values, key=p_values.__getitem__, reverse=True)
    for rank, place in zip(range(len(ranked), 0, -1), ranked, strict=True):
        sizes = math.fsum(test.compute_size(p_values[place]) for test in tests.values())
        least = min(least, sizes / rank)
        found[place] = round_significant(least)
    return found


def _build_test(scenario: SequenceCounts, correlation: float) -> _PermutationTest | None:
    """Return the test of a scenario; None: no arrangement of its sequences shows a change."""
    pooled = scenario.pooled
    if len(pooled) < 2 or len(pooled) == pooled.total():
        return None
    now, past = _count(scenario.after), scenario.base.total()
    head = (1 + (now - 1) * correlation) / now
    base = (1 + (_sum_squared_sizes(scenario) / past - 1) * correlation) / past
    inflation = (head + base) / (1 / now + 1 / past)
    sequences = sorted(pooled, key=lambda sequence: (-pooled[sequence], sequence))
    return _PermutationTest(
        tuple(pooled[sequence] for sequence in sequences),
        tuple(scenario.after.get(sequence, 0) for sequence in sequences),
        correlation=min((inflation - 1) / (now - 1), 1.0) if now > 1 else 0.0,
    )


@dataclass(frozen=True)
class _PermutationTest:
    """A chi-square test by permutations of the episodes between the sides.

    The statistic is the sum of squared counts of the head by pooled counts: with the totals given,
    chi-square is a linear function of it.
    """

    pooled: tuple[int, ...]
    """Counts of both sides together by sequence, descending."""
    after: tuple[int, ...]
    """Counts of the head."""
    correlation: float
    """Correlation of the head's iterations that varies its counts as much as that of both sides
    varies their difference."""

    def compute_p_value(self, permutations: int = PERMUTATIONS) -> float:
        """Return the share of permutations that differ as much, with the observed one."""
        squares = sum(n * n / pooled for n, pooled in zip(self.after, self.pooled, strict=True))
        return self._rank([squares], permutations)[0]

    def compute_size(self, p_value: float) -> float:
        """Return the chance of a p-value as low."""
        if p_value < 1 / (PERMUTATIONS + 1):
            return p_value
        return self._attainable[bisect_right(self._attainable, p_value) - 1]

    @cached_property
    def _attainable(self) -> list[float]:
        """The p-values of all permutations, ascending."""
        drawn = self._draw_statistics(PERMUTATIONS)
        found = self._rank(import_numpy().unique(drawn), PERMUTATIONS)
        return [1 / (PERMUTATIONS + 1), *sorted(found)]

    def _rank(self, statistics: Sequence[float], permutations: int) -> list[float]:
        np = import_numpy()
        drawn = self._draw_statistics(permutations)
        below = np.searchsorted(drawn, np.asarray(statistics) - 1e-6)
        found: list[float] = ((1 + permutations - below) / (permutations + 1)).tolist()
        return found

    def _draw_statistics(self, permutations: int) -> Any:
        """Return the sorted statistics of random heads."""
        return _draw_statistics(self.pooled, sum(self.after), self.correlation, permutations)


@lru_cache(256)
def _draw_statistics(
    pooled: tuple[int, ...], after: int, correlation: float, permutations: int
) -> Any:
    np = import_numpy()
    total, kinds = sum(pooled), len(pooled)
    # Heads share their draws of places, so sequences take other places in each scenario.
    order = np.random.default_rng([_SEED, after, *pooled]).permutation(total)
    values = np.repeat(np.arange(kinds), pooled)[order][_draw_places(total, after, permutations)]
    rows = np.arange(permutations)[:, None] * kinds
    weights = _draw_weights(after, correlation, permutations).ravel()
    counts = np.bincount((rows + values).ravel(), weights, permutations * kinds)
    heads = _limit_counts(counts.reshape(permutations, kinds).astype(np.int64), pooled, order)
    return np.sort(np.round((heads**2) @ (1 / np.array(pooled)), 6))


def _limit_counts(heads: Any, pooled: tuple[int, ...], seed: Any) -> Any:
    """Replace what exceeds the pooled counts, as repeated iterations may, by other sequences."""
    np = import_numpy()
    within = np.minimum(heads, pooled)
    missing = (heads - within).sum(axis=1)
    (rows,) = missing.nonzero()
    room, needed = (np.array(pooled) - within)[rows], missing[rows]
    draw = np.random.default_rng(seed)
    for kind in range(len(pooled)):
        drawn = draw.hypergeometric(room[:, kind], room[:, kind + 1 :].sum(axis=1), needed)
        within[rows, kind] += drawn
        needed = needed - drawn
    return within


@lru_cache(16)
def _draw_places(total: int, after: int, permutations: int) -> Any:
    """Return the places of a random head in each permutation."""
    np = import_numpy()
    keys = np.random.default_rng(_SEED).random((permutations, total), dtype=np.float32)
    return np.argpartition(keys, after - 1, axis=1)[:, :after]


@lru_cache(16)
def _draw_weights(after: int, correlation: float, permutations: int) -> Any:
    """Return how many iterations of a random head have the sequence at each of its places.

    Each iteration repeats an earlier one, as in a Polya urn, by which correlated ones are drawn
    (N. L. Johnson, S. Kotz, "Urn Models and Their Application" (1977), chapter 4); without
    correlation none does.
    """
    np = import_numpy()
    draw = np.random.default_rng(_SEED)
    sources = np.tile(np.arange(after), (permutations, 1))
    for at in range(1, after):
        chance = at * correlation / (1 + (at - 1) * correlation)
        repeats = draw.random(permutations) < chance
        earlier = draw.integers(0, at, permutations)
        copied = sources[np.arange(permutations), earlier]
        sources[:, at] = np.where(repeats, copied, at)
    rows = np.arange(permutations)[:, None] * after
    weights = np.bincount((rows + sources).ravel(), minlength=permutations * after)
    return weights.reshape(permutations, after)


def _count(run: Mapping[ToolSequence, int]) -> int:
    """Return the number of values of a run."""
    return sum(run.values())


def _sum_squared_sizes(scenario: SequenceCounts) -> int:
    return sum(_count(run) ** 2 for run in scenario.before)


def _compute_diversity(counts: Mapping[ToolSequence, int]) -> float:
    """Return the chance that two values, drawn with replacement, differ."""
    total = _count(counts)
    return 1 - sum(n * n for n in counts.values()) / (total * total)
