"""Merge result files into one `results.json` without keeping episodes in memory."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.results.loaded_redaction import EpisodeKey, Redact, RedactedNames, redact_json
from ci_agent_eval.storage.regular_file import replace_file

__all__ = [
    "EpisodeKey",
    "EpisodeSink",
    "EpisodeSpool",
    "SpoolPosition",
    "write_results",
]


class SpoolPosition(NamedTuple):
    """The position of a line in the spool."""

    offset: int
    length: int


class EpisodeSink(Protocol):
    """Stores episodes while they are read: all are put, then those that count are kept."""

    def put(self, episode: Episode) -> SpoolPosition:
        """Store an episode; return its position."""
        ...

    def keep(self, key: EpisodeKey, position: SpoolPosition) -> None:
        """Mark the episode at the position as the one that counts for the key."""
        ...


class EpisodeSpool:
    """Stores the canonical lines of episodes on disk, and yields the kept ones by key."""

    def __init__(self, redact: Redact | None = None) -> None:
        """Spool to a temporary file; `redact` removes secrets from every text."""
        self._redact = redact
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._end = 0
        self._kept: list[tuple[EpisodeKey, SpoolPosition]] = []
        self._ordered: list[tuple[EpisodeKey, SpoolPosition, EpisodeKey]] | None = None
        """Kept lines sorted by their redacted key; None: not sorted yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the disk space."""
        self._file.close()

    def put(self, episode: Episode) -> SpoolPosition:
        """Append the episode's line; it is written only if its position is kept."""
        line = self._build_line(episode).encode()
        position = SpoolPosition(self._end, len(line))
        self._file.write(line)
        self._end += len(line)
        return position

    def _build_line(self, episode: Episode) -> str:
        line = canonical_json(episode)
        # Most lines contain no secret, and checking the whole line at once is cheap.
        if self._redact is None or self._redact(line) == line:
            return line
        clean = redact_json(json.loads(line), self._redact)
        return canonical_json(Episode.model_validate(clean))

    def keep(self, key: EpisodeKey, position: SpoolPosition) -> None:
        """Mark the line at the position as the one that counts for the key."""
        self._kept.append((key, position))
        self._ordered = None

    def iterate_lines(self) -> Iterator[str]:
        """Yield the kept lines in the order of their redacted keys."""
        self._file.flush()
        if self._ordered is None:
            names = RedactedNames.build((key for key, _ in self._kept), self._redact or str)
            self._ordered = sorted(
                (names.rename_key(key), position, key) for key, position in self._kept
            )
        for key, position, full in self._ordered:
            line = os.pread(self._file.fileno(), position.length, position.offset).decode()
            yield line if key == full else _apply_names(line, key)


def _apply_names(line: str, key: EpisodeKey) -> str:
    """Return the line with the names of the key, which are distinct after redaction."""
    episode = Episode.model_validate_json(line)
    names = {"scenario_id": key[0], "nodeid": key[1] or episode.nodeid}
    return canonical_json(episode.model_copy(update=names))


def write_results(path: Path, suite: str, spool: EpisodeSpool, *, complete: bool = True) -> None:
    """Write `results.json` atomically. Raises OSError."""
    with replace_file(path) as file:
        file.writelines(render_results(suite, spool.iterate_lines(), complete=complete))
