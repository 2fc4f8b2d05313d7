"""`--pdb`: the conversation is shown, and the debugger stops where the episode failed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType, TracebackType

import pytest

from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.pytest_plugin.collection.detection import REPORTED_EPISODE
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths, is_own_frame
from ci_agent_eval.pytest_plugin.failure_blocks import render_conversation

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
