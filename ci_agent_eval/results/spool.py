"""Merging result files into one `results.json` without holding any episode in memory."""

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
    """Where the spool holds a line."""

    offset: int
    length: int
    file: int = 0
    """Number of the file, where several processes write."""


class EpisodeWriter(Protocol):
    """Where one process puts episodes."""

    def put(self, episode: Episode) -> SpoolPosition:
        """Take an episode; return what it is kept by."""
        ...

    def flush(self) -> None:
        """Let other processes see what was put."""
        ...


class EpisodeSink(Protocol):
    """Where episodes go while they are read: all of them are put, those that count are kept."""

    def put(self, episode: Episode) -> SpoolPosition:
        """Take an episode; return what it is kept by."""
        ...

    def writers(self, count: int) -> Sequence[EpisodeWriter]:
        """Return one for each of so many processes; nothing where they cannot put episodes."""
        ...

    def keep(self, key: EpisodeKey, place: SpoolPosition) -> None:
        """Mark the episode at the place as the one that counts for the key."""
        ...


class _SpoolFile:
    """The canonical lines of episodes in a temporary file, one after the other."""

    def __init__(self, number: int, redact: Redact | None) -> None:
        self._number = number
        self._redact = redact
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._end: int | None = None
        """None: another process may have written since."""

    def put(self, episode: Episode) -> SpoolPosition:
        line = self._line(episode).encode()
        if self._end is None:
            self._end = self._file.seek(0, os.SEEK_END)
        place = SpoolPosition(self._end, len(line), self._number)
        self._file.write(line)
        self._end += len(line)
        return place

    def _line(self, episode: Episode) -> str:
        line = canonical_json(episode)
        # Most lines hold no secret, and looking at the whole line at once is cheap.
        if self._redact is None or self._redact(line) == line:
            return line
        clean = redact_json(json.loads(line), self._redact)
        return canonical_json(Episode.model_validate(clean))

    def flush(self) -> None:
        self._file.flush()
        self._end = None

    def read(self, place: SpoolPosition) -> str:
        """Return a line that any process has written and flushed."""
        return os.pread(self._file.fileno(), place.length, place.offset).decode()

    def close(self) -> None:
        self._file.close()


class EpisodeSpool:
    """The canonical lines of episodes on disk; only those kept are written out, by key."""

    def __init__(self, redact: Redact | None = None) -> None:
        """Spool to temporary files; `redact` takes secrets out of every text."""
        self._redact = redact
        self._files = [_SpoolFile(0, redact)]
        self._kept: list[tuple[EpisodeKey, SpoolPosition]] = []
        self._ordered: list[tuple[EpisodeKey, SpoolPosition, EpisodeKey]] | None = None
        """What is kept in the order it is written, by the key it is written with; None: not yet."""

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
        """Give the disk space back."""
        for file in self._files:
            file.close()

    def put(self, episode: Episode) -> SpoolPosition:
        """Append the episode's line; it is written out only if its place is kept."""
        return self._files[0].put(episode)

    def writers(self, count: int) -> Sequence[EpisodeWriter]:
        """Return one for each of so many processes: each has a file of its own."""
        while len(self._files) < count:
            self._files.append(_SpoolFile(len(self._files), self._redact))
        for file in self._files:
            file.flush()  # a process that is forked now would have what is held back, too
        return self._files[:count]

    def keep(self, key: EpisodeKey, place: SpoolPosition) -> None:
        """Mark the line at the place as the one that counts for the key."""
        self._kept.append((key, place))
        self._ordered = None

    def lines(self) -> Iterator[str]:
        """Yield the kept lines in the order of their keys as they are written."""
        for file in self._files:
            file.flush()
        if self._ordered is None:
            names = RedactedNames.of((key for key, _ in self._kept), self._redact or str)
            self._ordered = sorted((names.rename_key(key), place, key) for key, place in self._kept)
        for key, place, full in self._ordered:
            line = self._files[place.file].read(place)
            yield line if key == full else _apply_names(line, key)


def _apply_names(line: str, key: EpisodeKey) -> str:
    """Return the line with the names of the key: without secrets, others may share its own."""
    episode = Episode.model_validate_json(line)
    names = {"scenario_id": key[0], "nodeid": key[1] or episode.nodeid}
    return canonical_json(episode.model_copy(update=names))


def write_results(path: Path, suite: str, spool: EpisodeSpool, *, complete: bool = True) -> None:
    """Write `results.json` whole or not at all. Raises OSError."""
    with replace_file(path) as file:
        file.writelines(render_results(suite, spool.lines(), complete=complete))
