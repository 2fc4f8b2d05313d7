"""The episode that is running in this process: whom an assertion tells what it found.

A plain `assert` and `check(...)` are called with nothing in hand that leads to their episode.
pytest runs one test at a time in a process, so the plugin says here which one it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ci_agent_eval.contract.episode import Assertion, Mode
from ci_agent_eval.recorder import EpisodeRecorder


@dataclass
class RunningEpisode:
    """An episode from the start of its test's setup to the end of its teardown."""

    mode: Mode
    """Strict: what fails raises. Evaluation: it is recorded, and the test goes on."""
    recorder: EpisodeRecorder | None = None
    """Set once the test's fixtures have come so far; kept after the episode has ended."""
    ended: bool = False
    """The recorder is closed: what is asserted now is asserted in teardown."""
    fixture: Callable[[str], Any] | None = None
    """Gives one of the test's fixtures by name, such as `aitest_run`."""
    locate: Callable[[FrameType], tuple[str, int] | None] = lambda frame: None  # noqa: ARG005, E731
    """Finds the file (relative, posix) and line below the root that a frame is at, or came from."""
    early: list[Assertion] = field(default_factory=list)
    """What fixtures asserted before there was a recorder."""
    late: list[Assertion] = field(default_factory=list)
    """What was asserted after the episode had ended."""

    def keep(self, assertion: Assertion) -> None:
        """Record an assertion, whichever phase the test is in."""
        if self.ended:
            self.late.append(assertion)
        elif self.recorder is None:
            self.early.append(assertion)
        else:
            self.recorder.keep(assertion)


class _Stage:
    """Holds the one episode that is running."""

    episode: RunningEpisode | None = None


def running_episode() -> RunningEpisode | None:
    """Return the episode that is running, or None outside of any."""
    return _Stage.episode


def enter(episode: RunningEpisode) -> None:
    """Say that an episode's test begins."""
    _Stage.episode = episode


def leave() -> None:
    """Say that the test has been torn down."""
    _Stage.episode = None
