"""Votes of judge models, and the pairs of votes of a pairwise comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ci_agent_eval.contract.episode import JudgeVote, VotePosition

PairResult = Literal["win", "loss", "tie", "contradiction"]
"""Result of asking about a pair in both orders; `contradiction`: it depends on the order."""


VotePair = tuple[JudgeVote, JudgeVote]
"""The votes of one judge with the agent's text first, and second."""


def pair_votes(votes: Sequence[JudgeVote]) -> tuple[VotePair, ...]:
    """Return the votes of each judge and repeat in both orders; others are left out."""
    found: dict[tuple[str, int, VotePosition | None], JudgeVote] = {}
    for vote in votes:
        found.setdefault((vote.judge, vote.repeat, vote.position), vote)
    pairs = (
        (vote, found.get((judge, repeat, "second")))
        for (judge, repeat, position), vote in found.items()
        if position == "first"
    )
    return tuple((first, second) for first, second in pairs if second is not None)


def resolve_pair(pair: VotePair) -> PairResult:
    """Return the result of a pair: a win, a loss or a tie if both orders agree on it."""
    first, second = pair
    if first.score != second.score:
        return "contradiction"
    if first.score in {0.0, 1.0}:
        return "win" if first.score else "loss"
    return "tie"
