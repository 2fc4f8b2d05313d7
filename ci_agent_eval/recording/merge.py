"""Merging of a finished episode into the one that is being recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ci_agent_eval.contract.episode import Assertion, Episode, TrafficSummary
from ci_agent_eval.contract.trajectory import TrajectoryAgent, Turn

Item = TypeVar("Item")


def find_new_parts(known: Sequence[Item], returned: Sequence[Item]) -> list[Item]:
    """Return the items that are not yet known; items are compared by identity."""
    return [part for part in returned if not any(part is own for own in known)]


def merge_condition(old: object, new: object) -> object:
    """Merge a condition of two runs of one episode."""
    if old is None or new is None or old == new:
        return old if new is None else new
    if isinstance(old, tuple) and isinstance(new, tuple):
        return tuple(sorted({*old, *new}))
    return ", ".join(sorted({*str(old).split(", "), str(new)}))


def build_outcome_assertion(episode: Episode) -> list[Assertion]:
    """Return an assertion for a failed episode that has no failed assertion, else nothing."""
    if episode.outcome != "failed" or episode.failed_assertions:
        return []
    reason = episode.reason or "the episode says that it failed, and not why"
    return [Assertion(name="outcome", passed=False, reason=reason)]


def add_agents(
    known: Sequence[TrajectoryAgent], added: Sequence[TrajectoryAgent], turns: Sequence[Turn]
) -> tuple[tuple[TrajectoryAgent, ...], Sequence[Turn]]:
    """Return the agents of all runs, and the turns of the added run with their ids in the episode.

    An agent at the same place of the tree with the same name is the same agent; the others of the
    added run get new places.
    """
    places = {agent.id: (agent.name, agent.relation) for agent in known}
    found = {agent.id: (agent.name, agent.relation) for agent in added}
    if all(places.get(place, found[place]) == found[place] for place in found):
        return (*known, *(agent for agent in added if agent.id not in places)), turns
    first = max(int(agent.id.partition(".")[0]) for agent in known)

    def move(place: str | None) -> str | None:
        number, dot, rest = (place or "").partition(".")
        return None if place is None else f"{int(number) + first}{dot}{rest}"

    moved = (a.model_copy(update={"id": move(a.id), "parent": move(a.parent)}) for a in added)
    return (*known, *moved), [turn.model_copy(update={"agent": move(turn.agent)}) for turn in turns]


def add_traffic(own: TrafficSummary | None, other: TrafficSummary | None) -> TrafficSummary | None:
    """Add the model traffic of two runs."""
    if own is None or other is None:
        return own or other
    sums = {
        name: getattr(own, name) + getattr(other, name)
        for name in ("requests", "refused", "failed", "replayed", "unattributed")
    }
    names = {
        name: tuple(sorted({*getattr(own, name), *getattr(other, name)}))
        for name in ("unpriced_models", "vendor_priced_models")
    }
    return TrafficSummary(**sums, **names, is_shared=own.is_shared or other.is_shared)
