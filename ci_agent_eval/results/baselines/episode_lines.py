"""Keep the canonical JSON of a run's episodes while it is read, to carry them over."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import CarriedOver, Episode
from ci_agent_eval.results.loaded_redaction import EpisodeKey, Redact
from ci_agent_eval.results.samples import SampleCollector
from ci_agent_eval.results.spool import SpoolPosition

_FAST = 1
"""zlib's level; conversations repeat themselves, so that even this one leaves about a tenth."""


@dataclass(slots=True)
class LineCollector:
    """An `EpisodeSink` that keeps the lines of episodes in memory, and collects samples, too."""

    samples: SampleCollector
    redact: Redact | None
    _lines: dict[SpoolPosition, bytes] = field(default_factory=dict)
    _kept: dict[EpisodeKey, SpoolPosition] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)
    """Scenarios with a secret in their text: their episodes cannot be written as they are."""

    def put(self, episode: Episode) -> SpoolPosition:
        """Keep an episode's line, unless it is carried over itself."""
        position = self.samples.put(episode)
        line = canonical_json(episode)
        if episode.carried_over is not None:
            return position
        if self.redact is not None and self.redact(line) != line:
            self._refused.add(episode.scenario_id)
        self._lines[position] = zlib.compress(line.encode(), _FAST)
        return position

    def keep(self, key: EpisodeKey, position: SpoolPosition) -> None:
        """Mark an episode that counts."""
        self.samples.keep(key, position)
        if position in self._lines:
            self._kept[key] = position

    def list_lines(self) -> Mapping[EpisodeKey, bytes]:
        """Return the compressed lines by key, of scenarios without a secret in their text."""
        return {
            key: self._lines[position]
            for key, position in sorted(self._kept.items())
            if key[0] not in self._refused
        }


def decompress_line(line: bytes) -> str:
    """Return an episode's canonical JSON."""
    return zlib.decompress(line).decode()


def list_carried_lines(
    lines: Mapping[EpisodeKey, bytes], scenarios: Collection[str], origin: CarriedOver
) -> Iterator[tuple[EpisodeKey, str]]:
    """Yield the key and the canonical JSON of the scenarios' episodes, as carried over."""
    for key, line in sorted(lines.items()):
        if key[0] in scenarios:
            episode = Episode.model_validate_json(decompress_line(line))
            yield key, canonical_json(episode.model_copy(update={"carried_over": origin}))
