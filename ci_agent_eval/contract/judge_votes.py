"""Votes of judge models, and the pairs of votes of a pairwise comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from ci_agent_eval.contract.base import Count, FrozenModel, Rate

VotePosition = Literal["first", "second"]
PairResult = Literal["win", "loss", "tie", "contradiction"]
"""Result of asking about a pair in both orders; `contradiction`: it depends on the order."""


class JudgeVote(FrozenModel):
    """One answer of a judge model, on which an assertion is based."""

    judge: str = Field(description="model of the judge")
    passed: bool
    score: Rate
    reason: str | None = None
    repeat: Count = Field(default=1, description="1-based repeat of the same question")
    position: VotePosition | None = Field(
        default=None, description="place of the agent's text in a pairwise comparison"
    )


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
