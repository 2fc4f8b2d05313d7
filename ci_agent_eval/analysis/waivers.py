"""Waivers (quarantine and acknowledgement): scope and expiry on the day of the report. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ci_agent_eval.contract.scenario_manifest import QuarantineEntry, Waiver


class WaiverStatus(NamedTuple):
    """A waiver with its status on the day of the report."""

    scenario: str
    """A scenario id, or a glob that matches ids."""
    agent: str | None
    """An agent, or a glob that matches agents; None: any."""
    reason: str
    until: dt.date
    """The last day on which it is in force, in UTC."""
    expired: bool
    """Whether that day has passed."""
    owner: str | None = None
    """Owner of a quarantine."""

    def covers(self, scenario_id: str, agent: str | None) -> bool:
        """Return whether the waiver covers a scenario of an agent."""
        is_its_agent = self.agent is None or _matches_pattern(agent or "", self.agent)
        return is_its_agent and _matches_pattern(scenario_id, self.scenario)


class ReportWaivers(NamedTuple):
    """All waivers, with their status on the day of the report."""

    quarantine: tuple[WaiverStatus, ...] = ()
    """These scenarios do not gate."""
    acknowledged: tuple[WaiverStatus, ...] = ()
    """Comparison findings of these scenarios do not gate."""


def evaluate_waivers(entries: Iterable[Waiver], today: dt.date) -> tuple[WaiverStatus, ...]:
    """Evaluate the entries of a waiver file on a day."""
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
    waivers: Sequence[WaiverStatus], scenario_id: str, agent: str | None
) -> WaiverStatus | None:
    """Return the waiver of a scenario that expires last; None: it has none."""
    found = [one for one in waivers if one.covers(scenario_id, agent)]
    return max(found, key=lambda one: one.until, default=None)


def _matches_pattern(name: str, pattern: str) -> bool:
    """Match exactly first: the ids of parametrized tests contain brackets."""
    return name == pattern or fnmatchcase(name, pattern)
