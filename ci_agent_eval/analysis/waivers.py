"""Quarantine and acknowledgement: which scenarios they cover, and whether they still hold. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ci_agent_eval.contract.waivers import QuarantineEntry, Waiver


@dataclass(frozen=True, slots=True)
class WaiverStatus:
    """What was agreed about some scenarios, as it stands on the day of the report."""

    scenario: str
    """A scenario id, or a glob of them."""
    agent: str | None
    """An agent, or a glob of them; None: any."""
    reason: str
    until: dt.date
    """The last day on which it holds, in UTC."""
    expired: bool
    """Whether that day is over."""
    owner: str | None = None
    """Who looks after a quarantine."""

    def covers(self, scenario_id: str, agent: str | None) -> bool:
        """Say whether a scenario is meant."""
        is_its_agent = self.agent is None or _matches_pattern(agent or "", self.agent)
        return is_its_agent and _matches_pattern(scenario_id, self.scenario)


@dataclass(frozen=True, slots=True)
class ReportWaivers:
    """All that was agreed, as it stands on the day of the report."""

    quarantine: tuple[WaiverStatus, ...] = ()
    """These scenarios do not gate."""
    acknowledged: tuple[WaiverStatus, ...] = ()
    """What comparing finds of these scenarios does not gate."""


def evaluate_waivers(entries: Iterable[Waiver], today: dt.date) -> tuple[WaiverStatus, ...]:
    """Return what the entries of a file come to on a day."""
    return tuple(
        WaiverStatus(
            scenario=entry.scenario,
            agent=entry.agent,
            reason=entry.reason,
            until=entry.until,
            expired=today > entry.until,
            owner=entry.owner if isinstance(entry, QuarantineEntry) else None,
        )
        for entry in entries
    )


def find_waiver(
    agreed: Sequence[WaiverStatus], scenario_id: str, agent: str | None
) -> WaiverStatus | None:
    """Return the agreement about a scenario that holds longest; None where there is none."""
    found = [one for one in agreed if one.covers(scenario_id, agent)]
    return max(found, key=lambda one: one.until, default=None)


def _matches_pattern(name: str, pattern: str) -> bool:
    """Compare exactly first: the ids of parametrized tests hold brackets."""
    return name == pattern or fnmatchcase(name, pattern)
