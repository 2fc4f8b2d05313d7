"""Read long files with one episode a line on all processors: lines are independent.

Only complete lines in the middle of a file are read in parallel. One process reads the start, which
shows the layout, the end, which shows whether the file is complete, and any unusual file.
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
    LIST_END,
    MAX_LINE_BYTES,
    EpisodeIdentity,
    LineBlock,
    ParsedEpisode,
    identify_episode,
    iterate_lines,
    parse_line,
    parse_list_line,
)
from ci_agent_eval.results.json_text import ReadProblem
from ci_agent_eval.results.parallel import MIN_ITEMS, count_processors, map_parallel
from ci_agent_eval.results.spool import EpisodeSink, EpisodeWriter, SpoolPosition

PIECE_BYTES = 512 * 1024
"""Bytes of a piece; a file of fewer than three pieces is not read in parallel."""
_TAIL_DIVISOR = 8
"""The last `piece / _TAIL_DIVISOR` bytes of a file are left to one process."""


class ParsedLine(NamedTuple):
    """An episode that another process has read."""

    head: EpisodeIdentity
    record: EpisodeRecord
    position: SpoolPosition | None


class _FilePiece(NamedTuple):
    offset: int
    size: int
    writer: int
    """Number of the process that reads it."""


@dataclass(frozen=True, slots=True)
class ParallelLineReader:
    """Reads a file in pieces; the `BlockReader` of `read_episodes`."""

    file: BinaryIO
    sink: EpisodeSink | None
    processes: int | None = None
    """Number of processes; None: as many as possible."""
    piece: int = PIECE_BYTES

    def __call__(self, suite: str | None, *, is_list: bool) -> LineBlock[ParsedLine]:
        """Read the block for several processes; empty if it is too small or unusual."""
        start = self.file.tell()
        bounds = self._find_bounds(start)
        processes = self.processes or (count_processors() if len(bounds) > MIN_ITEMS else 1)
        writers = self._get_writers(min(processes, len(bounds) - 1))
        if not writers:
            return self._give_up(start)
        pieces = [
            _FilePiece(low, high - low, number % len(writers))
            for number, (low, high) in enumerate(pairwise(bounds))
        ]
        read = partial(
            _read_piece,
            descriptor=self.file.fileno(),
            writers=writers,
            suite=suite,
            is_list=is_list,
        )
        parts = map_parallel(read, pieces, processes=processes)
        complete = [part for part in parts if part is not None]
        if len(complete) < len(parts):
            return self._give_up(start)
        self.file.seek(bounds[-1])
        return _join_blocks(complete)

    def _give_up(self, start: int) -> LineBlock[ParsedLine]:
        self.file.seek(start)
        return LineBlock((), 0)

    def _get_writers(self, processes: int) -> Sequence[EpisodeWriter | None]:
        """Return each process's writer of episodes; none if one process has to read."""
        if processes <= 1:
            return ()
        return [None] * processes if self.sink is None else self.sink.get_writers(processes)

    def _find_bounds(self, start: int) -> list[int]:
        """Return the offsets between pieces: after line ends, and well before the file's end."""
        size = os.fstat(self.file.fileno()).st_size
        if size - start < MIN_ITEMS * self.piece:
            return []
        bounds, end = [start], size - self.piece // _TAIL_DIVISOR
        for wanted in (*range(start + self.piece, end, self.piece), end):
            self.file.seek(wanted)
            if not self.file.readline(MAX_LINE_BYTES).endswith(b"\n"):
                return []
            if bounds[-1] < self.file.tell() < size:
                bounds.append(self.file.tell())
        return bounds


def _read_piece(
    piece: _FilePiece,
    *,
    descriptor: int,
    writers: Sequence[EpisodeWriter | None],
    suite: str | None,
    is_list: bool,
) -> LineBlock[ParsedLine] | None:
    """Read the lines of a piece, numbered from 0; None if one process has to read the file."""
    data = os.pread(descriptor, piece.size, piece.offset)
    if len(data) < piece.size:
        return None
    writer, found, number = writers[piece.writer], [], -1
    for number, line in iterate_lines(BytesIO(data), 0):
        if is_list and line is not None and line.strip() == LIST_END:
            return None
        for one in _parse_piece_line(line, number, suite, is_list=is_list):
            if isinstance(one, ParsedEpisode) and one.is_unnumbered:
                return None  # its position in the whole file is its iteration
            found.append(_build_line(one, writer) if isinstance(one, ParsedEpisode) else one)
    if writer is not None:
        writer.flush()
    return LineBlock(found, number + 1)


def _parse_piece_line(
    line: bytes | None, number: int, suite: str | None, *, is_list: bool
) -> Iterator[ParsedEpisode | ReadProblem]:
    if is_list:
        yield parse_list_line(line, number, suite)
    else:
        yield from parse_line(line, number)


def _build_line(parsed: ParsedEpisode, writer: EpisodeWriter | None) -> ParsedLine:
    position = None if writer is None else writer.put(parsed.episode)
    return ParsedLine(identify_episode(parsed), build_episode_record(parsed.episode), position)


def _join_blocks(parts: Sequence[LineBlock[ParsedLine]]) -> LineBlock[ParsedLine]:
    """Join the blocks, with line numbers of the file; the first block starts at line 2."""
    found: list[ParsedLine | ReadProblem] = []
    lines = 0
    for part in parts:
        found += (_shift_line(one, 2 + lines) for one in part.found)
        lines += part.lines
    return LineBlock(found, lines)


def _shift_line(one: ParsedLine | ReadProblem, by: int) -> ParsedLine | ReadProblem:
    return one._replace(line=one.line + by) if isinstance(one, ReadProblem) else one
