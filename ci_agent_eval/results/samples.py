"""Collect a few conversations of a run while it is read, to compare them in reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from ci_agent_eval.analysis.comparison.model import ConversationSample
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode, Outcome
from ci_agent_eval.results.loaded_redaction import EpisodeKey, Redact, RedactedNames, redact_json
from ci_agent_eval.results.spool import SpoolPosition

MAX_TOOL_PATHS = 3
"""Maximum number of conversations of a scenario and outcome, each with other tool calls."""
MAX_CONVERSATION = 100_000
"""Maximum characters of a conversation as JSON; of a longer one only the tools are kept."""
MAX_TOTAL = 16_000_000
"""Maximum characters of all conversations; of later ones only the tools are kept."""

_SampleGroup = tuple[str, str | None, Outcome]
_ToolPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    key: EpisodeKey
    position: SpoolPosition
    episode: Episode
    turns: str | None


@dataclass(slots=True)
class SampleCollector:
    """An `EpisodeSink` that keeps the first few episodes of each scenario, agent and outcome."""

    _candidates: dict[_SampleGroup, dict[_ToolPath, _Candidate]] = field(default_factory=dict)
    _kept: dict[SpoolPosition, EpisodeKey] = field(default_factory=dict)
    _count: int = 0
    _size: int = 0

    def put(self, episode: Episode) -> SpoolPosition:
        """Keep an episode's conversation if it is the first by key with its tool calls."""
        self._count += 1
        position = SpoolPosition(self._count, 0)
        if episode.outcome in ("passed", "failed") and episode.trajectory is not None:
            kind = (episode.scenario_id, episode.agent, episode.outcome)
            self._keep_candidate(self._candidates.setdefault(kind, {}), episode, position)
        return position

    def _keep_candidate(
        self, known: dict[_ToolPath, _Candidate], episode: Episode, position: SpoolPosition
    ) -> None:
        tool_path = _list_tool_path(episode)
        if tool_path in known and known[tool_path].key < episode.key:
            return
        if tool_path not in known and len(known) >= MAX_TOOL_PATHS:
            last = max(known, key=lambda one: known[one].key)
            if known[last].key < episode.key:
                return
            del known[last]
        known[tool_path] = _Candidate(episode.key, position, episode, self._format_turns(episode))

    def _format_turns(self, episode: Episode) -> str | None:
        assert episode.trajectory is not None, "put() requires one"  # noqa: S101 - see put()
        text = json.dumps(json.loads(canonical_json(episode.trajectory)).get("turns", []))
        if len(text) > MAX_CONVERSATION or self._size + len(text) > MAX_TOTAL:
            return None
        self._size += len(text)
        return text

    def keep(self, key: EpisodeKey, position: SpoolPosition) -> None:
        """Mark an episode that counts."""
        self._kept[position] = key

    def list_samples(self, redact: Redact | None) -> tuple[ConversationSample, ...]:
        """Return the redacted conversations by scenario, agent, outcome and iteration."""
        names = RedactedNames.build(self._kept.values(), redact or str)
        candidates = [one for by_path in self._candidates.values() for one in by_path.values()]
        found = [
            _build_sample(one, names, redact) for one in candidates if one.position in self._kept
        ]
        return tuple(sorted(found, key=_sample_sort_key))


def _list_tool_path(episode: Episode) -> _ToolPath:
    trajectory = episode.trajectory
    return tuple(call.name for call in trajectory.tool_calls()) if trajectory else ()


def _build_sample(
    candidate: _Candidate, names: RedactedNames, redact: Redact | None
) -> ConversationSample:
    episode, clean = candidate.episode, redact or str
    return ConversationSample(
        scenario_id=names.scenarios[episode.scenario_id],
        agent=None if episode.agent is None else clean(episode.agent),
        outcome="passed" if episode.outcome == "passed" else "failed",
        iteration=episode.iteration,
        tools=tuple(map(clean, _list_tool_path(episode))),
        turns=None if candidate.turns is None else _redact_turns(candidate.turns, clean),
    )


def _redact_turns(turns: str, redact: Redact) -> str:
    # Most contain no secret, and checking the whole text at once is cheap.
    if redact(turns) == turns:
        return turns
    return json.dumps(redact_json(json.loads(turns), redact))


def _sample_sort_key(sample: ConversationSample) -> tuple[str, str, str, int, Sequence[str]]:
    agent = sample.agent or ""
    return sample.scenario_id, agent, sample.outcome, sample.iteration, sample.tools
