"""Merge result files into one `results.json` without keeping episodes in memory."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
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
    "EpisodeWriter",
    "SpoolPosition",
    "write_results",
]


class SpoolPosition(NamedTuple):
    """The position of a line in the spool."""

    offset: int
    length: int
    file: int = 0
    """Number of the file, if several processes write."""


class EpisodeWriter(Protocol):
    """Stores the episodes of one process."""

    def put(self, episode: Episode) -> SpoolPosition:
        """Store an episode; return its position."""
        ...

    def flush(self) -> None:
        """Make the stored episodes visible to other processes."""
        ...


class EpisodeSink(Protocol):
    """Stores episodes while they are read: all are put, then those that count are kept."""

    def put(self, episode: Episode) -> SpoolPosition:
        """Store an episode; return its position."""
        ...

    def get_writers(self, count: int) -> Sequence[EpisodeWriter]:
        """Return a writer for each of `count` processes; none if they cannot store episodes."""
        ...

    def keep(self, key: EpisodeKey, position: SpoolPosition) -> None:
        """Mark the episode at the position as the one that counts for the key."""
        ...


class _SpoolFile:
    """A temporary file with the canonical lines of episodes."""

    def __init__(self, number: int, redact: Redact | None) -> None:
        self._number = number
        self._redact = redact
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._end: int | None = None
        """End of the file; None: unknown, because another process may have written."""

    def put(self, episode: Episode) -> SpoolPosition:
        line = self._build_line(episode).encode()
        if self._end is None:
            self._end = self._file.seek(0, os.SEEK_END)
        position = SpoolPosition(self._end, len(line), self._number)
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

    def flush(self) -> None:
        self._file.flush()
        self._end = None

    def read(self, position: SpoolPosition) -> str:
        """Return a line that a process has written and flushed."""
        return os.pread(self._file.fileno(), position.length, position.offset).decode()

    def close(self) -> None:
        self._file.close()


class EpisodeSpool:
    """Stores the canonical lines of episodes on disk, and yields the kept ones by key."""

    def __init__(self, redact: Redact | None = None) -> None:
        """Spool to temporary files; `redact` removes secrets from every text."""
        self._redact = redact
        self._files = [_SpoolFile(0, redact)]
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
        for file in self._files:
            file.close()

    def put(self, episode: Episode) -> SpoolPosition:
        """Append the episode's line; it is written only if its position is kept."""
        return self._files[0].put(episode)

    def get_writers(self, count: int) -> Sequence[EpisodeWriter]:
        """Return a writer for each of `count` processes, with a separate file each."""
        while len(self._files) < count:
            self._files.append(_SpoolFile(len(self._files), self._redact))
        for file in self._files:
            file.flush()  # else a forked process would write the buffered data again
        return self._files[:count]

    def keep(self, key: EpisodeKey, position: SpoolPosition) -> None:
        """Mark the line at the position as the one that counts for the key."""
        self._kept.append((key, position))
        self._ordered = None

    def iterate_lines(self) -> Iterator[str]:
        """Yield the kept lines in the order of their redacted keys."""
        for file in self._files:
            file.flush()
        if self._ordered is None:
            names = RedactedNames.build((key for key, _ in self._kept), self._redact or str)
            self._ordered = sorted(
                (names.rename_key(key), position, key) for key, position in self._kept
            )
        for key, position, full in self._ordered:
            line = self._files[position.file].read(position)
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
