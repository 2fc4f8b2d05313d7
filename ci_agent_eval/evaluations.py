"""What the evaluations of a run came to, and what judging by models took. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from ci_agent_eval.contract.evaluation import mean_score
from ci_agent_eval.facts import EpisodeFacts, Tally, tally_of


@dataclass(frozen=True, slots=True)
class EvaluationTally:
    """Conversations of evaluations: how they ended, and what they scored."""

    tally: Tally = field(default_factory=Tally)
    mean_score: float | None = None
    """Of the conversations judged, 0 to 1, as `eval-results.json` has it; None of none."""
    assertions: int = 0
    """Of the conversations that ran."""
    assertions_passed: int = 0

    @property
    def conversations(self) -> int:
        """Those that ran; a skipped one says nothing, one that errored has not passed."""
        return self.tally.ran

    @property
    def passed(self) -> int:
        """Those of which no assertion failed."""
        return self.tally.passed


def evaluation_tally(final: Iterable[EpisodeFacts]) -> EvaluationTally:
    """Fold the evaluations among episodes, of each iteration the attempt that counts."""
    pairs = [(facts, facts.evaluated) for facts in final if facts.evaluated is not None]
    ran = [found for facts, found in pairs if facts.outcome != "skipped"]
    judged = [found.score for facts, found in pairs if facts.outcome in {"passed", "failed"}]
    return EvaluationTally(
        tally=sum((tally_of(facts.outcome) for facts, _ in pairs), Tally()),
        mean_score=mean_score(judged),
        assertions=sum(found.assertions for found in ran),
        assertions_passed=sum(found.assertions_passed for found in ran),
    )


def added(tallies: Iterable[EvaluationTally]) -> EvaluationTally:
    """Add up evaluations that were folded before."""
    listed = list(tallies)
    tally = sum((one.tally for one in listed), Tally())
    scores = math.fsum((one.mean_score or 0.0) * one.tally.judged for one in listed)
    return EvaluationTally(
        tally=tally,
        mean_score=round(scores / tally.judged, 6) if tally.judged else None,
        assertions=sum(one.assertions for one in listed),
        assertions_passed=sum(one.assertions_passed for one in listed),
    )


@dataclass(frozen=True, slots=True)
class JudgeTotals:
    """What judging took, in every attempt; part of the suite's totals of tokens and cost."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    """Of the calls that have a price."""
    unpriced: int = 0
    """Episodes whose judging has a call without a price."""


def judge_totals(attempts: Iterable[EpisodeFacts]) -> JudgeTotals:
    """Add up what judging took."""
    used = [facts.judge for facts in attempts if facts.judge is not None]
    return JudgeTotals(
        calls=sum(judge.calls for judge in used),
        tokens=sum(judge.tokens.total for judge in used),
        cost_usd=math.fsum(judge.cost_usd for judge in used if judge.cost_usd is not None),
        unpriced=sum(1 for judge in used if judge.cost_usd is None),
    )
