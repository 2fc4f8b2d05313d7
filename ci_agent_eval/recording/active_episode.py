"""The episode that is running in this process: whom an assertion tells what it found.

A plain `assert` and `check(...)` are called with nothing in hand that leads to their episode.
Of episodes that run side by side each has a context (`contextvars`) that says which one it is.
Elsewhere it is that of the one test that pytest has at hand: the plugin says which.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ci_agent_eval.contract.episode import Assertion, Mode
from ci_agent_eval.recording import EpisodeRecorder


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
    early_assertions: list[Assertion] = field(default_factory=list)
    """What fixtures asserted before there was a recorder."""
    late_assertions: list[Assertion] = field(default_factory=list)
    """What was asserted after the episode had ended."""
    unawaited: list[Callable[[], str]] = field(default_factory=list)
    """Checks that are still to be awaited: each gives itself up, and says where it was made."""
    outside: int = 0
    """How many fixtures of wider scope are at work in a context of its own, see `step_out`."""
    counts_once: bool = False
    """Its test is run for many examples: all that it asserts is one assertion."""
    is_called: bool = False
    """Its test has been called: an assert of a fixture before that says nothing of the agent."""
    asserted: bool = False
    """An assert of its test passed, or something that counts as one."""

    def keep(self, assertion: Assertion) -> None:
        """Record an assertion, whichever phase the test is in."""
        self.asserted = True
        if self.counts_once:
            return
        if self.ended:
            self.late_assertions.append(assertion)
        elif self.recorder is None:
            self.early_assertions.append(assertion)
        else:
            self.recorder.keep(assertion)


_context_episode: ContextVar[RunningEpisode | None] = ContextVar(
    "ci_agent_eval_episode", default=None
)


class _ProcessState:
    """Holds the one episode whose turn it is."""

    episode: RunningEpisode | None = None
    outside: int = 0
    """How many fixtures of wider scope are being set up or torn down, one within the other."""
    accompanied: bool = False
    """Others run beside it: a thread that has no context may be anyone's."""


def get_active_episode() -> RunningEpisode | None:
    """Return the episode that is running here, or None outside of any."""
    own = _context_episode.get()
    if own is not None:
        return None if own.outside else own
    if _ProcessState.outside or (_ProcessState.accompanied and not _is_main_thread()):
        return None
    return _ProcessState.episode


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def is_evaluating() -> bool:
    """Say whether the episode that is running is an evaluation: what fails is kept, not raised."""
    episode = get_active_episode()
    return episode is not None and episode.mode == "evaluation"


def note_passed_assert() -> None:
    """Note that an assert passed, where a test of an episode is being called."""
    episode = get_active_episode()
    if episode is not None and episode.is_called:
        episode.asserted = True


def activate_episode(episode: RunningEpisode) -> None:
    """Say that an episode's test begins."""
    _ProcessState.episode, _ProcessState.outside = episode, 0


def deactivate_episode() -> None:
    """Say that the test has been torn down."""
    _ProcessState.episode = None


def bind_context(episode: RunningEpisode) -> None:
    """Say that this context is an episode's, which runs beside others."""
    _context_episode.set(episode)


@contextmanager
def activate_temporarily(episode: RunningEpisode | None) -> Iterator[None]:
    """Say that what comes is done for an episode before its turn."""
    before = _ProcessState.episode, _ProcessState.outside
    _ProcessState.episode, _ProcessState.outside = episode, 0
    try:
        yield
    finally:
        _ProcessState.episode, _ProcessState.outside = before


def set_concurrent(others: bool) -> None:
    """Say whether other episodes run beside the one whose turn it is."""
    _ProcessState.accompanied = others


def enter_shared_fixture() -> None:
    """Say that what comes belongs to several tests: a fixture of theirs is at work."""
    holder = _context_episode.get() or _ProcessState
    holder.outside += 1


def leave_shared_fixture() -> None:
    """Say that what comes belongs to the running test again."""
    holder = _context_episode.get() or _ProcessState
    holder.outside = max(holder.outside - 1, 0)
