"""Totals of the results that were carried over from an earlier run. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ci_agent_eval.analysis.loaded_results import (
    CarriedResults,
    EpisodeRecord,
    OutcomeTally,
    tally_outcomes,
)


@dataclass(frozen=True, slots=True)
class CarriedTotals:
    """The results that were carried over, and what this run did not spend for them."""

    commit: str
    """The commit that the earlier run is about."""
    scenarios: int
    tally: OutcomeTally
    """Their episodes."""
    run: str | None = None
    """Id of the earlier workflow run, if it was one."""
    age_days: int | None = None
    """Whole days since the earlier run began; None: unknown."""
    cost_usd: float | None = None
    """Their cost there, as far as it is known; None: of none."""
    duration_ms: float | None = None
    """Their duration there, one after another, as far as it is known; None: of none."""


def sum_carried_results(
    carried: CarriedResults | None, episodes: Iterable[EpisodeRecord]
) -> CarriedTotals | None:
    """Add up the earlier results that count; None: there are none."""
    if carried is None:
        return None
    found = [one for one in episodes if one.scenario_id in carried.scenarios]
    sides = [side for one in found for side in (one.judge, one.simulated_user) if side is not None]
    return CarriedTotals(
        commit=carried.commit,
        scenarios=len(carried.scenarios),
        tally=tally_outcomes(one.outcome for one in found),
        run=carried.run,
        age_days=carried.age_days,
        cost_usd=_sum_known([*(one.cost_usd for one in found), *(one.cost_usd for one in sides)]),
        duration_ms=_sum_known([one.duration_ms for one in found]),
    )


def _sum_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None
