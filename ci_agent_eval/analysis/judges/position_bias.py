"""Position bias: whether a judge prefers a text because of its place in a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.intervals import compute_wilson_interval
from ci_agent_eval.analysis.judges.variance import RateEstimate
from ci_agent_eval.contract.judge_votes import VotePair


@dataclass(frozen=True, slots=True)
class PositionBias:
    """How often the order of two texts decided a judge's preference."""

    contradictions: RateEstimate
    """Share of the pairs whose two answers differ."""
    first: int
    """Contradictions that prefer the first position."""
    second: int
    """Contradictions that prefer the second position."""
    p_value: float
    """Chance of a preference this one-sided, or more, if the judge prefers no position."""

    @property
    def is_found(self) -> bool:
        """Whether the preference is significant at 5 %."""
        return self.p_value < 0.05


def measure_position_bias(pairs: Sequence[VotePair]) -> PositionBias | None:
    """Measure the position bias of a judge; None without a pair.

    A judge without a bias contradicts its own answer by chance, in favour of either position
    equally often, so the sign test applies to the contradictions: Q. McNemar, Psychometrika 12
    (1947), 153-157, in its exact form.
    """
    if not pairs:
        return None
    leanings = [first.score - second.score for first, second in pairs]
    forward, backward = sum(one > 0 for one in leanings), sum(one < 0 for one in leanings)
    changed = forward + backward
    low, high = compute_wilson_interval(changed, len(pairs))
    share = RateEstimate(changed / len(pairs), low, high, len(pairs))
    return PositionBias(share, forward, backward, compute_sign_test(forward, changed))


def compute_sign_test(successes: int, trials: int) -> float:
    """Return the two-sided p-value of a number of successes of chance one half."""
    fewer = min(successes, trials - successes)
    tail = sum(math.comb(trials, count) for count in range(fewer + 1))
    total: int = 2**trials
    return min(2 * tail / total, 1.0)
