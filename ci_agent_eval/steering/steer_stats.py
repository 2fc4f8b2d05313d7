"""What steering changed, from the ledger of test runs: counts, and durations that were measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Literal

from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.steering.store import RecordedCall

HoldOutcome = Literal["redirected", "insisted", "neither"]


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Test runs after a hold, with the durations that agents reported."""

    runs: int
    measured: int
    median_seconds: float | None
    """None if nothing was measured; likewise the total."""
    total_seconds: float | None


@dataclass(frozen=True, slots=True)
class SteeringStats:
    """Counts of held calls by what followed in their session, and measured times."""

    held: int
    sessions: int
    since: str | None
    """Date of the first call, in UTC."""
    redirected: int
    """Held calls after which targeted runs followed, and no full run."""
    insisted: int
    """Held calls after which a full run was sent again, and ran."""
    neither: int
    full_runs: RunTimes
    targeted_runs: RunTimes


def summarize_calls(calls: Sequence[RecordedCall]) -> SteeringStats:
    """Count held calls by their outcome, and measure the runs that followed."""
    sessions: dict[str, list[RecordedCall]] = {}
    for call in calls:
        sessions.setdefault(call.session, []).append(call)
    outcomes = [outcome for group in sessions.values() for outcome in _list_outcomes(group)]
    return SteeringStats(
        held=len(outcomes),
        sessions=len(sessions),
        since=datetime.fromtimestamp(calls[0].started, UTC).date().isoformat() if calls else None,
        redirected=outcomes.count("redirected"),
        insisted=outcomes.count("insisted"),
        neither=outcomes.count("neither"),
        full_runs=_measure_runs(call for call in calls if call.kind == "insisted"),
        targeted_runs=_measure_runs(call for call in calls if call.kind == "targeted"),
    )


def _list_outcomes(calls: Sequence[RecordedCall]) -> Iterable[HoldOutcome]:
    """Yield what followed each held call of a session, before the next held call."""
    following: set[str] = set()
    for call in reversed(calls):
        if call.kind != "held":
            following.add(call.kind)
            continue
        if "insisted" in following:
            yield "insisted"
        else:
            yield "redirected" if following else "neither"
        following = set()


def _measure_runs(calls: Iterable[RecordedCall]) -> RunTimes:
    durations = [call.seconds for call in calls]
    measured = [seconds for seconds in durations if seconds is not None]
    if not measured:
        return RunTimes(len(durations), 0, None, None)
    return RunTimes(len(durations), len(measured), median(measured), sum(measured))


def render_stats_json(stats: SteeringStats) -> str:
    """Return the figures as one JSON object."""
    return json.dumps(asdict(stats), indent=2) + "\n"


def render_stats_text(stats: SteeringStats) -> str:
    """Return the figures as text."""
    if not stats.held:
        return "no full run was held back yet\n"
    held = f"{pluralize(stats.held, 'full run')} in {pluralize(stats.sessions, 'session')}"
    lines = (
        f"held back:     {held} since {stats.since}",
        f"redirected:    {stats.redirected} (targeted runs followed, and no full run)",
        f"insisted:      {stats.insisted} (a full run was sent again, and ran)",
        f"neither:       {stats.neither}",
        f"full runs:     {_describe_times(stats.full_runs)}",
        f"targeted runs: {_describe_times(stats.targeted_runs)}",
    )
    return "\n".join(lines) + "\n"


def _describe_times(times: RunTimes) -> str:
    if times.median_seconds is None:
        return f"{times.runs}, not measured" if times.runs else "none"
    return (
        f"{times.runs}, {times.measured} of them measured: "
        f"median {times.median_seconds:.1f} s, total {times.total_seconds:.1f} s"
    )
