"""What steering changed: counts of held calls, and of the test runs that followed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from ci_agent_eval.contract.wording import pluralize
from ci_agent_eval.steering.store import RecordedCall


@dataclass(frozen=True, slots=True)
class SteeringStats:
    """Counts of held calls by what followed in their session, and of test runs."""

    held: int
    sessions: int
    since: str | None
    """Date of the first call, in UTC."""
    redirected: int
    """Held calls after which targeted runs followed, and no full run."""
    insisted: int
    """Held calls after which a full run was sent again, and ran."""
    neither: int
    full_runs: int
    targeted_runs: int


def summarize_calls(calls: Sequence[RecordedCall]) -> SteeringStats:
    """Count held calls by their outcome, and the runs that followed."""
    sessions: dict[str, list[RecordedCall]] = {}
    for call in calls:
        sessions.setdefault(call.session, []).append(call)
    outcomes = Counter(outcome for group in sessions.values() for outcome in _list_outcomes(group))
    kinds = Counter(call.kind for call in calls)
    return SteeringStats(
        held=outcomes.total(),
        sessions=len(sessions),
        since=datetime.fromtimestamp(calls[0].started, UTC).date().isoformat() if calls else None,
        redirected=outcomes["redirected"],
        insisted=outcomes["insisted"],
        neither=outcomes["neither"],
        full_runs=kinds["insisted"],
        targeted_runs=kinds["targeted"],
    )


def _list_outcomes(calls: Sequence[RecordedCall]) -> Iterator[str]:
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


def render_stats_json(stats: SteeringStats) -> str:
    """Return the figures as one JSON object."""
    return json.dumps(asdict(stats), indent=2) + "\n"


def render_stats_text(stats: SteeringStats) -> str:
    """Return the figures as text."""
    if not stats.held:
        return "no full run was held back yet\n"
    held = f"{pluralize(stats.held, 'full run')} in {pluralize(stats.sessions, 'session')}"
    return (
        f"held back:     {held} since {stats.since}\n"
        f"redirected:    {stats.redirected} (targeted runs followed, and no full run)\n"
        f"insisted:      {stats.insisted} (a full run was sent again, and ran)\n"
        f"neither:       {stats.neither}\n"
        f"full runs:     {stats.full_runs}\n"
        f"targeted runs: {stats.targeted_runs}\n"
    )
