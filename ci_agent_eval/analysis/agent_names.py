"""Whose an episode is that ended before it named its agent. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ci_agent_eval.analysis.loaded_results import EpisodeRecord


def assign_agents(episodes: Iterable[EpisodeRecord]) -> Iterable[EpisodeRecord]:
    """Give an episode that did not get as far as naming its agent the only one it can be of.

    That is the agent of other attempts at the same test, or else of the scenario. One that
    passed without an agent stays by itself: it must not lend its pass to an agent.
    """
    listed = list(episodes)
    named: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for facts in listed:
        if facts.agent:
            named[facts.scenario_id, facts.nodeid].add(facts.agent)
            named[facts.scenario_id, None].add(facts.agent)
    return [_assign_agent(facts, named) for facts in listed] if named else listed


def _assign_agent(
    facts: EpisodeRecord, named: Mapping[tuple[str, str | None], set[str]]
) -> EpisodeRecord:
    if facts.agent or facts.outcome == "passed":
        return facts
    for nodeid in (facts.nodeid, None):
        candidates = named.get((facts.scenario_id, nodeid), ())
        if len(candidates) == 1:
            return replace(facts, agent=next(iter(candidates)))
    return facts
