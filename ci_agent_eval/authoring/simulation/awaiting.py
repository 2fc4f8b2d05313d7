"""Coroutines that sync and async tests share.

An async test awaits them. In a sync test `run_sync` runs them without an event loop: only the
awaitables of apps, users and checks run on one, so that a sync app can start a loop itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar, cast

from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.recording.active_episode import get_active_episode, require_await

LOOP_FIXTURE = "_agent_eval_run"
"""The plugin's fixture that runs an awaitable on the event loop of async tests."""


def get_active_recorder() -> EpisodeRecorder | None:
    """Return the running episode's recorder, or None outside of an episode."""
    running = get_active_episode()
    return None if running is None or running.ended else running.recorder


def run_awaitable(awaitable: Awaitable[Any]) -> Any:
    """Run an awaitable in sync code: on the episodes' event loop, or on a new one."""
    running = get_active_episode()
    if running is None or running.fixture is None:
        return _run_in_new_loop(awaitable)
    return running.fixture(LOOP_FIXTURE)(awaitable)


def _run_in_new_loop(awaitable: Awaitable[Any]) -> Any:
    async def run() -> Any:
        return await awaitable

    return asyncio.run(run())


def get_engine_fixture(owner: str) -> Any:
    """Return the fixture `aitest_run`. Raises InputError outside of an episode."""
    running = get_active_episode()
    if running is None or running.fixture is None:
        raise InputError(
            f"{owner} needs a running episode: mark the test with @pytest.mark.episode, or let "
            "it ask for the fixture `simulation`"
        )
    return running.fixture("aitest_run")


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
        return cast("T", require_await(name, coroutine))
    return run_sync(coroutine)


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
