"""A few conversations of a run, kept while it is read: one of each kind to set beside another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from ci_agent_eval.analysis.comparison.model import ConversationSample
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode, Outcome
from ci_agent_eval.results.redacted import EpisodeKey, Names, Redact, redacted_json
from ci_agent_eval.results.spool import Place, Writer

MOST_WAYS = 3
"""Conversations of a scenario that are kept for each outcome, each of another way."""
LONGEST = 100_000
"""Characters of a conversation as JSON; a longer one is noted and not kept."""
MOST = 16_000_000
"""Characters of all that are kept; what comes later is noted and not kept."""

_Kind = tuple[str, str | None, Outcome]
_Way = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Taken:
    key: EpisodeKey
    place: Place
    episode: Episode
    turns: str | None


@dataclass(slots=True)
class Samples:
    """Takes the place of a spool: of all episodes it keeps the first few of each kind."""

    _taken: dict[_Kind, dict[_Way, _Taken]] = field(default_factory=dict)
    _kept: dict[Place, EpisodeKey] = field(default_factory=dict)
    _count: int = 0
    _size: int = 0

    def put(self, episode: Episode) -> Place:
        """Take an episode's conversation where it is the first of its way, or one before that."""
        self._count += 1
        place = Place(self._count, 0)
        if episode.outcome in ("passed", "failed") and episode.trajectory is not None:
            kind = (episode.scenario_id, episode.agent, episode.outcome)
            self._take(self._taken.setdefault(kind, {}), episode, place)
        return place

    def _take(self, known: dict[_Way, _Taken], episode: Episode, place: Place) -> None:
        way = _way(episode)
        if way in known and known[way].key < episode.key:
            return
        if way not in known and len(known) >= MOST_WAYS:
            last = max(known, key=lambda one: known[one].key)
            if known[last].key < episode.key:
                return
            del known[last]
        known[way] = _Taken(episode.key, place, episode, self._turns(episode))

    def _turns(self, episode: Episode) -> str | None:
        assert episode.trajectory is not None, "put() takes no other"  # noqa: S101 - see there
        text = json.dumps(json.loads(canonical_json(episode.trajectory)).get("turns", []))
        if len(text) > LONGEST or self._size + len(text) > MOST:
            return None
        self._size += len(text)
        return text

    def writers(self, count: int) -> Sequence[Writer]:  # noqa: ARG002 - as spools have it
        """Return nothing: which conversation is the first of its way, one process has to tell."""
        return ()

    def keep(self, key: EpisodeKey, place: Place) -> None:
        """Mark an episode as one that counts."""
        self._kept[place] = key

    def listed(self, redact: Redact | None) -> tuple[ConversationSample, ...]:
        """Return what was kept, without secrets, by scenario, agent, outcome and iteration."""
        names = Names.of(self._kept.values(), redact or str)
        taken = [one for ways in self._taken.values() for one in ways.values()]
        found = [_sample(one, names, redact) for one in taken if one.place in self._kept]
        return tuple(sorted(found, key=_order))


def _way(episode: Episode) -> _Way:
    trajectory = episode.trajectory
    return tuple(call.name for call in trajectory.tool_calls()) if trajectory else ()


def _sample(taken: _Taken, names: Names, redact: Redact | None) -> ConversationSample:
    episode, clean = taken.episode, redact or str
    return ConversationSample(
        scenario_id=names.scenarios[episode.scenario_id],
        agent=None if episode.agent is None else clean(episode.agent),
        outcome="passed" if episode.outcome == "passed" else "failed",
        iteration=episode.iteration,
        tools=tuple(map(clean, _way(episode))),
        turns=None if taken.turns is None else _clean(taken.turns, clean),
    )


def _clean(turns: str, redact: Redact) -> str:
    # Most hold no secret, and looking at the whole at once is cheap.
    if redact(turns) == turns:
        return turns
    return json.dumps(redacted_json(json.loads(turns), redact))


def _order(sample: ConversationSample) -> tuple[str, str, str, int, Sequence[str]]:
    agent = sample.agent or ""
    return sample.scenario_id, agent, sample.outcome, sample.iteration, sample.tools
