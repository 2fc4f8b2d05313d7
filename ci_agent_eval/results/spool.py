"""Merge result files into one `results.json` without keeping episodes in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.storage.regular_file import replace_file

EpisodeKey = tuple[str, str, int, int]
"""`Episode.key`: scenario, node id, iteration, attempt."""


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

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._end = 0
        self._kept: list[tuple[EpisodeKey, SpoolPosition]] = []

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
        line = canonical_json(episode).encode()
        position = SpoolPosition(self._end, len(line))
        self._file.write(line)
        self._end += len(line)
        return position

    def keep(self, key: EpisodeKey, position: SpoolPosition) -> None:
        """Mark the line at the position as the one that counts for the key."""
        self._kept.append((key, position))

    def iterate_lines(self) -> Iterator[str]:
        """Yield the kept lines in the order of their keys."""
        self._file.flush()
        self._kept.sort()
        for _, position in self._kept:
            yield os.pread(self._file.fileno(), position.length, position.offset).decode()


def write_results(path: Path, suite: str, spool: EpisodeSpool, *, complete: bool = True) -> None:
    """Write `results.json` atomically. Raises OSError."""
    with replace_file(path) as file:
        file.writelines(render_results(suite, spool.iterate_lines(), complete=complete))
