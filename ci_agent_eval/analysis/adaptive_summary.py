"""Summarize the adaptive iterations of a scenario. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.loaded_results import EpisodeRecord, OutcomeTally, tally_outcomes
from ci_agent_eval.contract.results import AdaptiveStop, Session, StopCause

AdaptiveStops = Mapping[tuple[str, str], AdaptiveStop]
"""Why the iterations of each scenario ended, by scenario id and agent."""


@dataclass(frozen=True, slots=True)
class AdaptiveSummary:
    """The adaptive iterations of a scenario."""

    minimum: int
    """Iterations that always run."""
    maximum: int
    rated: OutcomeTally
    """Outcomes of the minimum, which alone count for rates: how many more there are depends on
    their outcomes."""
    stop: StopCause | None = None
    """Why there are no more; None: the run did not record it."""
    required: float | None = None
    """Required pass rate by which the run decided; None: none applied."""


def collect_stops(sessions: Iterable[Session]) -> AdaptiveStops:
    """Return the recorded stops of all sessions: of each shard its own scenarios."""
    return {
        (stop.scenario_id, stop.agent or ""): stop
        for session in sessions
        for stop in session.adaptive_stops
    }


def summarize_adaptive(
    final: Sequence[EpisodeRecord], stop: AdaptiveStop | None
) -> AdaptiveSummary | None:
    """Summarize the decisive attempts of a scenario; None: their number is fixed."""
    adaptive = [record for record in final if record.minimum_iterations is not None]
    if not adaptive:
        return None
    tests = max(Counter(record.iteration for record in adaptive).values())
    return AdaptiveSummary(
        minimum=max(record.minimum_iterations or 0 for record in adaptive) * tests,
        maximum=max(record.iterations for record in adaptive) * tests,
        rated=tally_outcomes(r.outcome for r in final if r.is_rated),
        stop=None if stop is None else stop.cause,
        required=None if stop is None else stop.required,
    )
