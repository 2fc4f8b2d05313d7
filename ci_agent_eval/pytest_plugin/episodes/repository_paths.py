"""Source locations: file relative to the repository root, and line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

import pytest

from ci_agent_eval.pytest_plugin.collection.detection import REPORTED_EPISODE

if TYPE_CHECKING:
    from ci_agent_eval.contract.episode import Assertion, Episode


@dataclass(frozen=True, slots=True)
class RepositoryPaths:
    """Converts files to paths relative to the root of the repository under test."""

    root: Path

    @classmethod
    def find(cls, rootdir: Path, environ: Mapping[str, str]) -> RepositoryPaths:
        """Find the repository that contains pytest's rootdir, or use the rootdir itself.

        A checkout without git's own folder is located by the environment of GitHub's runner.
        """
        for folder in (rootdir, *rootdir.parents):
            if (folder / ".git").exists():
                return cls(folder)
        workspace = Path(environ.get("GITHUB_WORKSPACE") or rootdir)
        return cls(workspace if rootdir.is_relative_to(workspace) else rootdir)

    def relative(self, path: str | Path) -> str | None:
        """Return the posix path below the root; None for a library's file or one elsewhere."""
        return _make_relative(self.root, str(path))

    def locate_item(self, item: pytest.Item) -> tuple[str | None, int | None]:
        """Return the file and the 1-based line of a test."""
        line = item.location[1]
        return self.relative(item.path), None if line is None else line + 1

    def locate_traceback(self, traceback: TracebackType | None) -> list[tuple[str, int]]:
        """Return the running lines below the root, the outermost first."""
        return [
            (file, line)
            for frame, line in walk_tb(traceback)
            if not is_own_frame(frame) and (file := self.relative(frame.f_code.co_filename))
        ]

    def locate_frame(self, innermost: FrameType) -> tuple[str, int] | None:
        """Return the closest line below the root that led to a frame, outside of this package."""
        frame = self.find_frame(innermost)
        file = None if frame is None else self.relative(frame.f_code.co_filename)
        return None if frame is None or file is None else (file, frame.f_lineno)

    def find_frame(self, innermost: FrameType) -> FrameType | None:
        """Return the closest frame below the root that led to a frame, outside of this package."""
        found = (
            frame
            for frame in _iter_frames(innermost)
            if not is_own_frame(frame) and self.relative(frame.f_code.co_filename)
        )
        return next(found, None)


@lru_cache(4096)
def _make_relative(root: Path, path: str) -> str | None:
    """Return the posix path below the root; cached, because the same few files recur."""
    try:
        relative = Path(path).relative_to(root)
    except ValueError:
        return None
    return None if "site-packages" in relative.parts else relative.as_posix()


def is_own_frame(frame: FrameType) -> bool:
    """Return whether the frame is this package's: by module name, as its path may be rewritten."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "ci_agent_eval"


def _iter_frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


_DRIVERS = frozenset({"_pytest", "asyncio", "pluggy"})
"""Packages that run tests."""


class CheckPlaces:
    """Locates checks, and keeps their frames for a debugger.

    A failed check fails the test after its return, when its frame would be gone.
    """

    def __init__(self, repo: RepositoryPaths, *, keep: bool = False) -> None:
        self._repo = repo
        self._keeps = keep
        self._frames: dict[tuple[str, int], FrameType] = {}

    def clear(self) -> None:
        """Forget the frames of the last episode."""
        self._frames.clear()

    def locate_caller(self) -> tuple[str, int] | None:
        """Return the closest calling line, as `locate_frame`."""
        return self.locate_frame(sys._getframe(1))  # noqa: SLF001 - inspect.stack reads whole files

    def locate_frame(self, innermost: FrameType) -> tuple[str, int] | None:
        """Return the closest line below the root that led to a frame, outside of this package."""
        place = self._repo.locate_frame(innermost)
        if self._keeps and place is not None:
            frame = self._repo.find_frame(innermost)
            self._frames |= {} if frame is None else {place: frame}
        return place

    def build_traceback(self, failed: Sequence[Assertion]) -> TracebackType | None:
        """Return a traceback to the first failed check whose frame is known."""
        for assertion in failed:
            frame = self._frames.get((assertion.file or "", assertion.line or 0))
            if frame is not None and assertion.line is not None:
                return TracebackType(None, frame, frame.f_lasti, assertion.line)
        return None


def prepare_debugger(node: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Show the conversation before the debugger's prompt, and let it stop in the user's code."""
    from ci_agent_eval.pytest_plugin.terminal import render_conversation  # noqa: PLC0415 - inert until used

    episode: Episode | None = node.stash.get(REPORTED_EPISODE, None)
    writer = node.config.get_terminal_writer()
    turns = () if episode is None or episode.trajectory is None else episode.trajectory.turns
    if turns:
        writer.line()
        writer.sep(">", "conversation")
        for line, markup in render_conversation(turns, writer.fullwidth):
            writer.line(line, **markup)
    _cut_own_frames(excinfo.tb)


def _cut_own_frames(traceback: TracebackType) -> None:
    """End a traceback at its last frame that is neither ours nor a driver's, if there is one."""
    last: TracebackType | None = None
    current: TracebackType | None = traceback
    while current is not None:
        package = str(current.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if not is_own_frame(current.tb_frame) and package not in _DRIVERS:
            last = current
        current = current.tb_next
    if last is not None:
        last.tb_next = None
