"""Long files of one episode a line, read on all processors: no line depends on another.

Only whole lines in the middle of a file are read so. Its beginning tells the layout and its end
whether it is whole; those, and any file in which a line is not as it usually is, one process reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import pairwise
from typing import BinaryIO, NamedTuple

from ci_agent_eval.analysis.loaded_results import EpisodeRecord, build_episode_record
from ci_agent_eval.results.episodes import (
    LARGEST_PIECE,
    LIST_END,
    Head,
    Part,
    Problem,
    Record,
    head_of,
    line_of_list,
    numbered_lines,
    read_line,
)
from ci_agent_eval.results.parallel import FEWEST, mapped, processors
from ci_agent_eval.results.spool import Keeper, Place, Writer

PIECE = 512 * 1024
"""Bytes that are read at once; a file of fewer than three pieces is not worth a process."""
_AT_END = 8
"""Of a piece this part, at the end of a file, is left to one process."""


class Line(NamedTuple):
    """An episode as another process has read it."""

    head: Head
    facts: EpisodeRecord
    place: Place | None


class _Piece(NamedTuple):
    offset: int
    size: int
    writer: int
    """Number of the process that reads it."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Reads a file in pieces; fit to be `ahead` of `read_episodes`."""

    file: BinaryIO
    keeper: Keeper | None
    processes: int | None = None
    """None: as many as may work at once."""
    piece: int = PIECE

    def __call__(self, suite: str | None, *, is_list: bool) -> Part[Line]:
        """Read what one process need not read, unless it is too little or not as usual."""
        start = self.file.tell()
        bounds = self._bounds(start)
        processes = self.processes or (processors() if len(bounds) > FEWEST else 1)
        writers = self._writers(min(processes, len(bounds) - 1))
        if not writers:
            return self._given_up(start)
        pieces = [
            _Piece(low, high - low, number % len(writers))
            for number, (low, high) in enumerate(pairwise(bounds))
        ]
        read = partial(
            _read, descriptor=self.file.fileno(), writers=writers, suite=suite, is_list=is_list
        )
        parts = mapped(read, pieces, processes=processes)
        whole = [part for part in parts if part is not None]
        if len(whole) < len(parts):
            return self._given_up(start)
        self.file.seek(bounds[-1])
        return _joined(whole)

    def _given_up(self, start: int) -> Part[Line]:
        self.file.seek(start)
        return Part((), 0)

    def _writers(self, processes: int) -> Sequence[Writer | None]:
        """Return what each process keeps episodes in; nothing where one process has to read."""
        if processes <= 1:
            return ()
        return [None] * processes if self.keeper is None else self.keeper.writers(processes)

    def _bounds(self, start: int) -> list[int]:
        """Return where pieces begin and end: behind line ends, and well before the file's end."""
        size = os.fstat(self.file.fileno()).st_size
        if size - start < FEWEST * self.piece:
            return []
        bounds, end = [start], size - self.piece // _AT_END
        for wanted in (*range(start + self.piece, end, self.piece), end):
            self.file.seek(wanted)
            if not self.file.readline(LARGEST_PIECE).endswith(b"\n"):
                return []
            if bounds[-1] < self.file.tell() < size:
                bounds.append(self.file.tell())
        return bounds


def _read(
    piece: _Piece,
    *,
    descriptor: int,
    writers: Sequence[Writer | None],
    suite: str | None,
    is_list: bool,
) -> Part[Line] | None:
    """Read the lines of a piece, counted from 0; None where one process has to read the file."""
    data = os.pread(descriptor, piece.size, piece.offset)
    if len(data) < piece.size:
        return None
    writer, found, number = writers[piece.writer], [], -1
    for number, line in numbered_lines(BytesIO(data), 0):
        if is_list and line is not None and line.strip() == LIST_END:
            return None
        for one in _of_line(line, number, suite, is_list=is_list):
            if isinstance(one, Record) and one.unnumbered:
                return None  # its place among all of the file is its iteration
            found.append(_line(one, writer) if isinstance(one, Record) else one)
    if writer is not None:
        writer.flush()
    return Part(found, number + 1)


def _of_line(
    line: bytes | None, number: int, suite: str | None, *, is_list: bool
) -> Iterator[Record | Problem]:
    if is_list:
        yield line_of_list(line, number, suite)
    else:
        yield from read_line(line, number)


def _line(record: Record, writer: Writer | None) -> Line:
    place = None if writer is None else writer.put(record.episode)
    return Line(head_of(record), build_episode_record(record.episode), place)


def _joined(parts: Sequence[Part[Line]]) -> Part[Line]:
    """Put the pieces together, with the numbers that lines have in the file after its first."""
    found: list[Line | Problem] = []
    lines = 0
    for part in parts:
        found += (_further(one, 2 + lines) for one in part.found)
        lines += part.lines
    return Part(found, lines)


def _further(one: Line | Problem, by: int) -> Line | Problem:
    return one._replace(line=one.line + by) if isinstance(one, Problem) else one
