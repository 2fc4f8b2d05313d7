"""The episode that a model call belongs to: a context variable, or the only running episode."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ci_agent_eval.model_traffic.recorder import TrafficRecorder

_current: ContextVar[TrafficRecorder | None] = ContextVar("model_traffic_recorder", default=None)
_is_suspended: ContextVar[bool] = ContextVar("model_traffic_suspended", default=False)
_is_uncounted: ContextVar[bool] = ContextVar("model_traffic_uncounted", default=False)

_lookups: list[Callable[[], TrafficRecorder | None]] = []

_lock = threading.Lock()
_running: list[TrafficRecorder] = []
_gateway_urls: set[str] = set()
_unattributed: list[UnattributedCall] = []


_unattributed_recorder: TrafficRecorder | None = None

MAX_UNATTRIBUTED = 1_000
"""Unattributed calls that are kept until they are taken; later ones add nothing new."""


@dataclass(frozen=True, slots=True)
class UnattributedCall:
    """A model call that belongs to no episode, or to one of several; it was not recorded."""

    method: str
    url: str
    """Address of the request, without its query."""
    running: tuple[TrafficRecorder, ...]
    """The recorders of the episodes that were running."""


def add_running(recorder: TrafficRecorder) -> None:
    """Add the recorder of an episode that begins, or of a run in an episode of this context."""
    recorder.outer = get_bound_recorder()
    with _lock:
        _running.append(recorder)


def remove_running(recorder: TrafficRecorder) -> None:
    """Finish the recorder of an episode that has ended, and remove it."""
    with _lock:
        _running.remove(recorder)
    recorder.finish()


def list_running() -> tuple[TrafficRecorder, ...]:
    """Return the recorders of the running episodes, the oldest first."""
    with _lock:
        return tuple(_running)


def find_innermost(recorder: TrafficRecorder) -> TrafficRecorder:
    """Return the recorder of the only run within an episode, or that of the episode."""
    with _lock:
        runs = [one for one in _running if one.outer is recorder is not one]
    return find_innermost(runs[0]) if len(runs) == 1 else recorder


def bind_recorder(recorder: TrafficRecorder | None) -> None:
    """Bind the current context to a recorder."""
    _current.set(recorder)


def add_lookup(lookup: Callable[[], TrafficRecorder | None]) -> None:
    """Add a function that finds the recorder of a context that is not bound to one."""
    if lookup not in _lookups:
        _lookups.append(lookup)


def get_bound_recorder() -> TrafficRecorder | None:
    """Return the recorder of this context, if it is known."""
    if (recorder := _current.get()) is not None:
        return recorder
    return next((found for lookup in _lookups if (found := lookup()) is not None), None)


def add_gateway_url(url: str) -> None:
    """Add the address of a gateway that begins to listen: `http://127.0.0.1:PORT`."""
    _gateway_urls.add(url)


def remove_gateway_url(url: str) -> None:
    """Remove the address of a gateway that has stopped."""
    _gateway_urls.discard(url)


def is_gateway_url(url: str) -> bool:
    """Return whether a request goes to a gateway, which records it: the hooks let it pass."""
    return any(url.startswith(f"{origin}/") for origin in tuple(_gateway_urls))


@contextmanager
def use_recorder(recorder: TrafficRecorder | None) -> Iterator[None]:
    """Attribute the model calls of the `with` block, and of its tasks, to a recorder."""
    token = _current.set(recorder)
    try:
        with record_uncounted(is_uncounted=False):
            yield
    finally:
        _current.reset(token)


@contextmanager
def record_uncounted(*, is_uncounted: bool = True) -> Iterator[None]:
    """Record and replay the model calls of the `with` block, but not as the agent's."""
    token = _is_uncounted.set(is_uncounted)
    try:
        yield
    finally:
        _is_uncounted.reset(token)


@contextmanager
def suspend_recording(is_suspended: bool = True) -> Iterator[None]:
    """Ignore model calls in the `with` block: the engine records its own requests."""
    token = _is_suspended.set(is_suspended)
    try:
        yield
    finally:
        _is_suspended.reset(token)


def is_suspended() -> bool:
    """Return whether model calls of this context are ignored."""
    return _is_suspended.get()


@dataclass(frozen=True, slots=True)
class Binding:
    """The attribution state of a context, for use in another thread."""

    recorder: TrafficRecorder | None
    is_suspended: bool
    is_uncounted: bool

    @contextmanager
    def use(self) -> Iterator[None]:
        """Bind the `with` block to the same."""
        with (
            use_recorder(self.recorder),
            record_uncounted(is_uncounted=self.is_uncounted),
            suspend_recording(self.is_suspended),
        ):
            yield


def get_binding() -> Binding | None:
    """Return the binding of this context; None if it has none."""
    binding = Binding(get_bound_recorder(), _is_suspended.get(), _is_uncounted.get())
    return None if binding == Binding(None, False, False) else binding


def find_recorder() -> TrafficRecorder | None:
    """Return the recorder of this context; without one, that of the only running episode.

    The second also holds for a thread or task that outlived the episode in which it began.
    None: the call is unattributed, because none or several episodes are running.
    """
    recorder = _find_episode_recorder()
    return recorder.uncounted if recorder is not None and _is_uncounted.get() else recorder


def _find_episode_recorder() -> TrafficRecorder | None:
    recorder = get_bound_recorder()
    if recorder is not None and recorder.takes_calls:
        return recorder
    with _lock:
        # The recorder of a run replaces that of its episode, which runs too.
        outer = {id(one.outer) for one in _running}
        innermost = [one for one in _running if id(one) not in outer]
        if len(innermost) != 1:
            return None
        innermost[0].is_shared = True
        return innermost[0]


def add_unattributed(method: str, url: str) -> None:
    """Keep a model call that no episode could be found for."""
    call = UnattributedCall(method, url.partition("?")[0], list_running())
    with _lock:
        if len(_unattributed) < MAX_UNATTRIBUTED:
            _unattributed.append(call)


def count_unattributed(recorder: TrafficRecorder) -> int:
    """Return the number of kept calls that this recorder's episode may have made."""
    with _lock:
        return sum(recorder in call.running for call in _unattributed)


def set_unattributed_recorder(recorder: TrafficRecorder | None) -> None:
    """Set the recorder that decides about unattributed calls; None: they pass unseen."""
    global _unattributed_recorder  # noqa: PLW0603 - the hooks are for the process
    _unattributed_recorder = recorder


def get_unattributed_recorder() -> TrafficRecorder | None:
    """Return the recorder that decides about unattributed calls."""
    return _unattributed_recorder


def take_unattributed() -> tuple[UnattributedCall, ...]:
    """Return the unattributed calls since the last time, and forget them."""
    with _lock:
        calls = tuple(_unattributed)
        _unattributed.clear()
        return calls
