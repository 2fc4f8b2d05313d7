"""Merging result files into one `results.json` without holding any episode in memory."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.regular_file import replacing
from ci_agent_eval.results.redacted import EpisodeKey, Names, Redact, redacted_json

__all__ = ["EpisodeKey", "Keeper", "Place", "Spool", "write_results"]


class Place(NamedTuple):
    """Where the spool holds a line."""

    offset: int
    length: int


class Keeper(Protocol):
    """Where episodes go while they are read: all of them are put, those that count are kept."""

    def put(self, episode: Episode) -> Place:
        """Take an episode; return what it is kept by."""
        ...

    def keep(self, key: EpisodeKey, place: Place) -> None:
        """Mark the episode at the place as the one that counts for the key."""
        ...


class Spool:
    """The canonical lines of episodes on disk; only those kept are written out, by key."""

    def __init__(self, redact: Redact | None = None) -> None:
        """Spool to a temporary file; `redact` takes secrets out of every text."""
        self._redact = redact
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._kept: list[tuple[EpisodeKey, Place]] = []
        self._end = 0

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
        self._file.close()

    def put(self, episode: Episode) -> Place:
        """Append the episode's line; it is written out only if its place is kept."""
        line = self._line(episode).encode()
        place = Place(self._end, len(line))
        self._file.write(line)
        self._end += len(line)
        return place

    def _line(self, episode: Episode) -> str:
        line = canonical_json(episode)
        # Most lines hold no secret, and looking at the whole line at once is cheap.
        if self._redact is None or self._redact(line) == line:
            return line
        clean = redacted_json(json.loads(line), self._redact)
        return canonical_json(Episode.model_validate(clean))

    def keep(self, key: EpisodeKey, place: Place) -> None:
        """Mark the line at the place as the one that counts for the key."""
        self._kept.append((key, place))

    def lines(self) -> Iterator[str]:
        """Yield the kept lines in the order of their keys as they are written."""
        names = Names.of((key for key, _ in self._kept), self._redact or str)
        for key, place, full in sorted((names.of_key(k), place, k) for k, place in self._kept):
            self._file.seek(place.offset)
            line = self._file.read(place.length).decode()
            yield line if key == full else _renamed(line, key)
        self._file.seek(self._end)


def _renamed(line: str, key: EpisodeKey) -> str:
    """Return the line with the names of the key: without secrets, others may share its own."""
    episode = Episode.model_validate_json(line)
    names = {"scenario_id": key[0], "nodeid": key[1] or episode.nodeid}
    return canonical_json(episode.model_copy(update=names))


def write_results(path: Path, suite: str, spool: Spool, *, complete: bool = True) -> None:
    """Write `results.json` whole or not at all. Raises OSError."""
    with replacing(path) as file:
        file.writelines(render_results(suite, spool.lines(), complete=complete))
