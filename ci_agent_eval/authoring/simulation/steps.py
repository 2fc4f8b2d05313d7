"""Steps: code with awaits, written once for sync and async tests.

A generator yields awaitables and is sent their results. In a sync test only the awaitables run
on an event loop, so that a sync app can start an event loop itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.active_episode import get_active_episode

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

T = TypeVar("T")
Steps: TypeAlias = Generator[Awaitable[Any], Any, T]
RunAwaitable: TypeAlias = Callable[[Awaitable[Any]], Any]
"""Runs an awaitable to completion, outside of any event loop."""


def await_if_needed(value: Any) -> Steps[Any]:
    """Return the value, or its result if it is awaitable."""
    return (yield value) if inspect.isawaitable(value) else value


def run_steps(steps: Steps[T], run: RunAwaitable) -> T:
    """Run the steps in sync code; `run` runs their awaitables."""
    try:
        awaitable = next(steps)
        while True:
            try:
                result = run(awaitable)
            except BaseException as error:  # noqa: BLE001 - the steps handle it
                awaitable = steps.throw(error)
            else:
                awaitable = steps.send(result)
    except StopIteration as stop:
        return cast("T", stop.value)


async def await_steps(steps: Steps[T]) -> T:
    """Run the steps on the running event loop."""
    try:
        awaitable = next(steps)
        while True:
            try:
                result = await awaitable
            except BaseException as error:  # noqa: BLE001 - the steps handle it
                awaitable = steps.throw(error)
            else:
                awaitable = steps.send(result)
    except StopIteration as stop:
        return cast("T", stop.value)


def run_or_defer_steps(name: str, steps: Steps[T], run: RunAwaitable) -> T:
    """Run the steps now; on a running event loop return an awaitable that does.

    Typed as the result of the steps, which therefore must be awaitable too.
    """
    if _is_loop_running():
        return cast("T", DeferredSteps(name, steps))
    return run_steps(steps, run)


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class NotAwaitedError(InputError, AttributeError):
    """Raised if an async test uses a result that it has not awaited."""


class DeferredSteps:
    """Steps that an async test must await; other uses raise NotAwaitedError."""

    def __init__(self, name: str, steps: Steps[Any]) -> None:
        self._name = name
        self._coroutine = await_steps(steps)
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


def run_in_new_loop(awaitable: Awaitable[T]) -> T:
    """Run an awaitable on a new event loop."""

    async def run() -> T:
        return await awaitable

    return asyncio.run(run())
