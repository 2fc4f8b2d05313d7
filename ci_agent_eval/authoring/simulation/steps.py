"""Work that may have to wait, written once for plain and for async tests.

A generator yields what has to be awaited and is sent what came of it. In a plain test
nothing runs on an event loop but these: a plain app may then start a loop of its own.
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
"""Runs an awaitable to its end, outside of any event loop."""


def await_if_needed(value: Any) -> Steps[Any]:
    """Return the value, or what comes of it where it has to be awaited."""
    return (yield value) if inspect.isawaitable(value) else value


def run_steps(steps: Steps[T], run: RunAwaitable) -> T:
    """Go through the steps in plain code; `run` runs what has to be awaited."""
    try:
        wanted = next(steps)
        while True:
            try:
                answer = run(wanted)
            except BaseException as error:  # noqa: BLE001 - the steps' own to handle
                wanted = steps.throw(error)
            else:
                wanted = steps.send(answer)
    except StopIteration as stop:
        return cast("T", stop.value)


async def await_steps(steps: Steps[T]) -> T:
    """Go through the steps on the event loop that is running."""
    try:
        wanted = next(steps)
        while True:
            try:
                answer = await wanted
            except BaseException as error:  # noqa: BLE001 - the steps' own to handle
                wanted = steps.throw(error)
            else:
                wanted = steps.send(answer)
    except StopIteration as stop:
        return cast("T", stop.value)


def run_or_defer_steps(what: str, steps: Steps[T], run: RunAwaitable) -> T:
    """Go through the steps now; on a running event loop return an awaitable that does.

    Typed as what comes of the steps, which therefore has to be awaitable too.
    """
    if _is_loop_running():
        return cast("T", DeferredSteps(what, steps))
    return run_steps(steps, run)


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class NotAwaitedError(InputError, AttributeError):
    """Something was asked of a result that an async test has not awaited yet."""


class DeferredSteps:
    """What an async test gets: it has to be awaited, and says so to whoever forgets."""

    def __init__(self, what: str, steps: Steps[Any]) -> None:
        self._what = what
        self._work = await_steps(steps)
        self._episode = get_active_episode()
        if self._episode is not None:
            self._episode.unawaited.append(self.give_up)

    def give_up(self) -> str:
        """Close what was to be awaited, and say what to do."""
        self._work.close()
        return f"{self._what}(...) was not awaited; write `await {self._what}(...)`"

    def __await__(self) -> Generator[Any, Any, Any]:
        if self._episode is not None and self.give_up in self._episode.unawaited:
            self._episode.unawaited.remove(self.give_up)
        return self._work.__await__()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._not_awaited()

    def __getitem__(self, _: object) -> NoReturn:
        raise self._not_awaited()

    def _not_awaited(self) -> NotAwaitedError:
        return NotAwaitedError(
            f"{self._what} has not run yet: this is async code; write `await {self._what}(...)`"
        )


def run_in_new_loop(awaitable: Awaitable[T]) -> T:
    """Run an awaitable on an event loop of its own."""

    async def work() -> T:
        return await awaitable

    return asyncio.run(work())
