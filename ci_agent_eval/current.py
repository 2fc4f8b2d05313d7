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
    locate: Callable[[FrameType], tuple[str, int] | None] = lambda frame: None  # noqa: ARG005 - none is known
    """Finds the file (relative, posix) and line below the root that a frame is at, or came from."""
    early: list[Assertion] = field(default_factory=list)
    """What fixtures asserted before there was a recorder."""
    late: list[Assertion] = field(default_factory=list)
    """What was asserted after the episode had ended."""
    unawaited: list[Callable[[], str]] = field(default_factory=list)
    """Checks that are still to be awaited: each gives itself up, and says where it was made."""

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
    outside: int = 0
    """How many fixtures of wider scope are being set up or torn down, one within the other."""


def running_episode() -> RunningEpisode | None:
    """Return the episode that is running, or None outside of any."""
    return None if _Stage.outside else _Stage.episode


def is_evaluating() -> bool:
    """Say whether the episode that is running is an evaluation: what fails is kept, not raised."""
    episode = running_episode()
    return episode is not None and episode.mode == "evaluation"


def enter(episode: RunningEpisode) -> None:
    """Say that an episode's test begins."""
    _Stage.episode, _Stage.outside = episode, 0


def leave() -> None:
    """Say that the test has been torn down."""
    _Stage.episode = None


def step_out() -> None:
    """Say that what comes belongs to several tests: a fixture of theirs is at work."""
    _Stage.outside += 1


def step_in() -> None:
    """Say that what comes belongs to the running test again."""
    _Stage.outside = max(_Stage.outside - 1, 0)
