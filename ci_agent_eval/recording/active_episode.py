"""The active episode, which records the assertions of the test.

A plain `assert` and `check(...)` get no argument that leads to their episode. Each of several
concurrent episodes has a context (`contextvars`) that holds it. Without concurrency the plugin
sets the episode of the test that pytest runs.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ci_agent_eval.contract.episode import Assertion, Mode
from ci_agent_eval.recording import EpisodeRecorder

if TYPE_CHECKING:
    from ci_agent_eval.steering.policy.model import Rules

T = TypeVar("T")


class EpisodeCassette(Protocol):
    """The cassette of an episode, as its recorder needs it."""

    misses: int
    """Number of requests without a recorded response."""
    refusals: list[str]
    """Error messages of the requests that were refused in replay."""


@dataclass
class RunningEpisode:
    """An episode from the start of its test's setup to the end of its teardown."""

    mode: Mode
    """Strict: a failed assertion raises. Evaluation: it is recorded, and the test goes on."""
    recorder: EpisodeRecorder | None = None
    """Set during the setup of the test's fixtures; kept after the episode has ended."""
    ended: bool = False
    """Whether the recorder is closed; further assertions are made in teardown."""
    fixture: Callable[[str], Any] | None = None
    """Returns a fixture of the test by name, such as `aitest_run`."""
    locate: Callable[[FrameType], tuple[str, int] | None] = lambda frame: None  # noqa: ARG005 - no location
    """Finds the file (relative, posix) and line below the root of a frame or of its callers."""
    load_steering_rules: Callable[[], Rules] | None = None
    """Returns the rules of the suite's `agent-eval-steering.yaml`; None: it has none.

    Raises InputError.
    """
    early_assertions: list[Assertion] = field(default_factory=list)
    """Assertions of fixtures, made before the recorder existed."""
    late_assertions: list[Assertion] = field(default_factory=list)
    """Assertions made after the episode had ended."""
    unawaited_checks: list[Callable[[], str | None]] = field(default_factory=list)
    """What is not yet awaited: each callable closes a coroutine and returns what to write.

    None: it has been awaited after all.
    """
    cassette: EpisodeCassette | None = None
    """Set when the episode opens its cassette."""
    shared_fixtures: int = 0
    """Fixtures of wider scope that run in its context, see `enter_shared_fixture`."""
    counts_once: bool = False
    """Whether the test runs for many examples; its assertions then count as one."""
    is_called: bool = False
    """Whether the test function has been called; earlier asserts of fixtures do not count."""
    asserted: bool = False
    """Whether an assert of the test passed, or an equivalent."""
    raised: BaseException | None = None
    """The exception with which the test function ended."""
    no_evidence: list[str] = field(default_factory=list)
    """Asserts that passed and prove nothing: the place of each, and why."""

    def record_assertion(self, assertion: Assertion) -> None:
        """Record an assertion in any phase of the test."""
        self.asserted = True
        if self.counts_once:
            return
        if self.ended:
            self.late_assertions.append(assertion)
        elif self.recorder is None:
            self.early_assertions.append(assertion)
        else:
            self.recorder.record_assertion(assertion)


_in_context: ContextVar[RunningEpisode | None] = ContextVar("ci_agent_eval_episode", default=None)


class _ProcessState:
    """The active episode of a process without concurrency."""

    episode: RunningEpisode | None = None
    shared_fixtures: int = 0
    """Nested setups and teardowns of fixtures of wider scope."""
    is_concurrent: bool = False
    """Whether other episodes run; a thread without a context may then belong to any of them."""
    owner: int | None = threading.main_thread().ident
    """The thread that runs pytest."""


def set_owner_thread() -> Callable[[], None]:
    """Make the current thread the one that runs pytest; return a function that undoes it.

    It need not be Python's main thread.
    """
    before, _ProcessState.owner = _ProcessState.owner, threading.get_ident()
    return lambda: setattr(_ProcessState, "owner", before)


def is_owner_thread() -> bool:
    """Return whether pytest runs in the current thread."""
    return threading.get_ident() == _ProcessState.owner


def get_active_episode() -> RunningEpisode | None:
    """Return the episode of this context, or None outside of all episodes."""
    in_context = _in_context.get()
    if in_context is not None:
        return None if in_context.shared_fixtures else in_context
    if _ProcessState.shared_fixtures or (_ProcessState.is_concurrent and not is_owner_thread()):
        return None
    return _ProcessState.episode


def is_evaluating() -> bool:
    """Return whether the active episode is an evaluation, which records failures."""
    episode = get_active_episode()
    return episode is not None and episode.mode == "evaluation"


def note_passed_assert() -> None:
    """Record that an assert of the active episode's test passed."""
    episode = get_active_episode()
    if episode is not None and episode.is_called:
        episode.asserted = True


def activate_episode(episode: RunningEpisode) -> None:
    """Make an episode the active one when its test begins."""
    _ProcessState.episode, _ProcessState.shared_fixtures = episode, 0


def deactivate_episode() -> None:
    """Reset the active episode after the teardown of its test."""
    _ProcessState.episode = None


def bind_context(episode: RunningEpisode) -> None:
    """Bind this context to one of several concurrent episodes."""
    _in_context.set(episode)


@contextmanager
def activate_temporarily(episode: RunningEpisode | None) -> Iterator[None]:
    """Activate an episode inside the `with` block, then restore the active one."""
    before = _ProcessState.episode, _ProcessState.shared_fixtures
    _ProcessState.episode, _ProcessState.shared_fixtures = episode, 0
    try:
        yield
    finally:
        _ProcessState.episode, _ProcessState.shared_fixtures = before


def set_concurrent(is_concurrent: bool) -> None:
    """Set whether several episodes run concurrently."""
    _ProcessState.is_concurrent = is_concurrent


def enter_shared_fixture() -> None:
    """Suspend the active episode while a fixture of several tests runs."""
    holder = _in_context.get() or _ProcessState
    holder.shared_fixtures += 1


def leave_shared_fixture() -> None:
    """Resume the active episode after a fixture of several tests."""
    holder = _in_context.get() or _ProcessState
    holder.shared_fixtures = max(holder.shared_fixtures - 1, 0)


def require_await(
    name: str, coroutine: Coroutine[Any, Any, T], place: str = "", *, awaits: object = None
) -> Coroutine[Any, Any, T]:
    """Return the coroutine; the active episode fails if it is never awaited.

    `place` is where it was made, and `awaits` another one that it would await.
    """

    def close_unawaited() -> str | None:
        if inspect.getcoroutinestate(coroutine) != inspect.CORO_CREATED:
            return None
        coroutine.close()
        if inspect.iscoroutine(awaits):
            awaits.close()
        return f"{name}(...) was not awaited{place}; write `await {name}(...)`"

    if (episode := get_active_episode()) is not None:
        episode.unawaited_checks.append(close_unawaited)
    return coroutine
