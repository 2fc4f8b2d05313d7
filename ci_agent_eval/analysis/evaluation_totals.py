"""Totals of a run's evaluations, and of the models that judged or simulated users. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ci_agent_eval.analysis.loaded_results import EpisodeRecord, OutcomeTally, tally_outcomes
from ci_agent_eval.contract.episode import SideUsage
from ci_agent_eval.contract.evaluation import compute_mean_score


class EvaluationTally(NamedTuple):
    """Outcomes and mean score of the conversations of evaluations."""

    tally: OutcomeTally = OutcomeTally()
    mean_score: float | None = None
    """Mean score of judged conversations, 0 to 1, as in `eval-results.json`; None: none judged."""
    assertions: int = 0
    """Assertions of the conversations that ran."""
    assertions_passed: int = 0
    raised: int = 0
    """Conversations that an exception or a broken teardown ended, whatever was asserted before."""

    @property
    def conversations(self) -> int:
        """Number of conversations that ran, including errors and excluding skips."""
        return self.tally.ran

    @property
    def passed(self) -> int:
        """Number of conversations without a failed assertion."""
        return self.tally.passed


def tally_evaluations(final: Iterable[EpisodeRecord]) -> EvaluationTally:
    """Add up the evaluations among episodes, given the decisive attempt of each iteration."""
    pairs = [(record, record.evaluation) for record in final if record.evaluation is not None]
    ran = [found for record, found in pairs if record.outcome != "skipped"]
    judged = [found.score for record, found in pairs if record.outcome in {"passed", "failed"}]
    return EvaluationTally(
        tally=tally_outcomes(record.outcome for record, _ in pairs),
        mean_score=compute_mean_score(judged),
        assertions=sum(found.assertions for found in ran),
        assertions_passed=sum(found.assertions_passed for found in ran),
        raised=sum(record.outcome == "error" or record.raised for record, _ in pairs),
    )


def add_tallies(tallies: Iterable[EvaluationTally]) -> EvaluationTally:
    """Add up tallies of evaluations."""
    listed = list(tallies)
    tally = sum((one.tally for one in listed), OutcomeTally())
    scores = math.fsum((one.mean_score or 0.0) * one.tally.judged for one in listed)
    return EvaluationTally(
        tally=tally,
        mean_score=round(scores / tally.judged, 6) if tally.judged else None,
        assertions=sum(one.assertions for one in listed),
        assertions_passed=sum(one.assertions_passed for one in listed),
        raised=sum(one.raised for one in listed),
    )


class SideTotals(NamedTuple):
    """Usage of judge or simulated-user models in every attempt; part of the suite's totals."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    """Cost of the calls that have a price."""
    unpriced: int = 0
    """Number of episodes with a call without a price."""
    untold: int = 0
    """Number of episodes with a call without token counts."""


def sum_side_usage(used: Iterable[SideUsage | None]) -> SideTotals:
    """Add up the usage of the episodes' judges, or of their simulated users."""
    known = [usage for usage in used if usage is not None]
    return SideTotals(
        calls=sum(usage.calls for usage in known),
        tokens=sum(usage.tokens.total for usage in known if usage.tokens is not None),
        cost_usd=math.fsum(usage.cost_usd for usage in known if usage.cost_usd is not None),
        unpriced=sum(1 for usage in known if usage.cost_usd is None),
        untold=sum(1 for usage in known if usage.tokens is None),
    )
