"""Coroutines that sync and async tests share.

An async test awaits them. In a sync test `run_sync` runs them without an event loop: only the
awaitables of apps, users and checks run on one, so that a sync app can start a loop itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

from ci_agent_eval.authoring.simulation.episode_access import run_awaitable
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.active_episode import get_active_episode

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

T = TypeVar("T")
RunAwaitable: TypeAlias = Callable[[Awaitable[Any]], Any]
"""Runs an awaitable to completion, outside of any event loop."""

_RUN: ContextVar[RunAwaitable | None] = ContextVar("ci_agent_eval_run", default=None)
"""Runs awaitables of the sync test; None in an async one."""


async def await_if_needed(value: Any) -> Any:
    """Return the value, or its result if it is awaitable."""
    if not inspect.isawaitable(value):
        return value
    run = None if _is_loop_running() else _RUN.get()
    return await value if run is None else run(value)


def run_sync(coroutine: Coroutine[Any, Any, T], run: RunAwaitable = run_awaitable) -> T:
    """Run a coroutine in sync code; `run` runs what it awaits with `await_if_needed`."""
    token = _RUN.set(run)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return cast("T", stop.value)
    finally:
        _RUN.reset(token)
        coroutine.close()
    raise RuntimeError("a coroutine of a sync test was suspended; await with `await_if_needed`")


def run_or_defer(name: str, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine now; on a running event loop return an awaitable that does.

    Typed as the coroutine's result, which therefore must be awaitable too.
    """
    if _is_loop_running():
        return cast("T", Deferred(name, coroutine))
    return run_sync(coroutine)


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class NotAwaitedError(InputError, AttributeError):
    """Raised if an async test uses a result that it has not awaited."""


class Deferred:
    """A coroutine that an async test must await; other uses raise NotAwaitedError."""

    def __init__(self, name: str, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._name = name
        self._coroutine = coroutine
        self._episode = get_active_episode()
        if self._episode is not None:
            self._episode.unawaited_checks.append(self.close_unawaited)

    def close_unawaited(self) -> str:
        """Close the coroutine, and return the problem and its correction."""
        self._coroutine.close()
        return f"{self._name}(...) was not awaited; write `await {self._name}(...)`"

    def __await__(self) -> Generator[Any, Any, Any]:
        if self._episode is not None and self.close_unawaited in self._episode.unawaited_checks:
            self._episode.unawaited_checks.remove(self.close_unawaited)
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._build_error()

    def __getitem__(self, _: object) -> NoReturn:
        raise self._build_error()

    def _build_error(self) -> NotAwaitedError:
        return NotAwaitedError(
            f"{self._name} has not run yet: this is async code; write `await {self._name}(...)`"
        )
