"""Assign an agent to episodes that ended before they named it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ci_agent_eval.analysis.loaded_results import EpisodeRecord


def assign_agents(episodes: Iterable[EpisodeRecord]) -> Iterable[EpisodeRecord]:
    """Assign an agent to each episode without one, if there is only one candidate.

    The candidate is the agent of other attempts at the same test, or else of the scenario.
    An episode that passed without an agent stays unassigned: its pass must not count for one.
    """
    listed = list(episodes)
    named: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for record in listed:
        if record.agent:
            named[record.scenario_id, record.nodeid].add(record.agent)
            named[record.scenario_id, None].add(record.agent)
    return [_assign_agent(record, named) for record in listed] if named else listed


def _assign_agent(
    record: EpisodeRecord, named: Mapping[tuple[str, str | None], set[str]]
) -> EpisodeRecord:
    if record.agent or record.outcome == "passed":
        return record
    for nodeid in (record.nodeid, None):
        candidates = named.get((record.scenario_id, nodeid), ())
        if len(candidates) == 1:
            return replace(record, agent=next(iter(candidates)))
    return record
