"""A running episode: its fixtures, task, output, and the context of all three."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

import pytest

from ci_agent_eval.contract.clock import read_clock
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE
from ci_agent_eval.pytest_plugin.concurrency import fixtures
from ci_agent_eval.pytest_plugin.concurrency.loop_members import call_test, run_end_callbacks
from ci_agent_eval.pytest_plugin.concurrency.output import OutputSink, set_sink, use_sink
from ci_agent_eval.pytest_plugin.episodes.endings import EpisodeItem, build_stop_error
from ci_agent_eval.recording.active_episode import activate_temporarily, bind_context

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

SETUP_OUTCOMES = (Exception, pytest.skip.Exception, pytest.fail.Exception)
"""Exceptions of a setup that belong to the item, like pytest's `TEST_OUTCOME`."""


@dataclass(slots=True)
class PhaseTimes:
    """When a phase began, in seconds since the epoch, and its duration in seconds."""

    start: float = field(default_factory=time.time)
    seconds: float | None = None
    _clock: float = field(default_factory=read_clock)

    def end(self) -> None:
        """Set the duration of the phase, which has ended."""
        self.seconds = read_clock() - self._clock

    def apply_to(self, call: pytest.CallInfo[Any]) -> None:
        """Make pytest report these times instead of the times of its turn."""
        if self.seconds is not None:
            call.start, call.duration = self.start, self.seconds
            call.stop = self.start + self.seconds


@dataclass(slots=True)
class EpisodeTask:
    """An episode from its start to the end of its turn."""

    item: pytest.Function
    sink: OutputSink = field(default_factory=OutputSink)
    context: Context = field(default_factory=copy_context)
    stack: fixtures.Stack | None = None
    """Its own stack of nodes, if it was started ahead of its turn."""
    asyncio_task: asyncio.Task[None] | None = None
    exit: BaseException | None = None
    """SystemExit raised by the test; a task would raise it in the loop, and so in another test."""
    _is_cancelled: bool = False
    """Whether its task was cancelled."""
    end_reason: str | None = None
    """Why the run cancelled its task, if it did."""
    times: dict[str, PhaseTimes] = field(default_factory=dict)
    shared_definitions: Any = None
    """The item's shared fixture definitions, while it has its own ones."""

    @property
    def _state(self) -> EpisodeItem:
        return self.item.stash[EPISODE]

    @property
    def is_running(self) -> bool:
        """Whether its task has started and not ended."""
        return self.asyncio_task is not None and not self.asyncio_task.done()

    def set_up(self, stack: fixtures.Stack) -> None:
        """Set the item up on its own stack, and keep an error of the setup there.

        Shared fixtures are set up in the context of the run, in which they are torn down; the
        item's own fixtures in the item's context.
        """
        shared = list(fixtures.list_shared_fixtures(self.item))
        self.shared_definitions, self.stack = fixtures.give_own_definitions(self.item), stack
        setup = self.times["setup"] = PhaseTimes()
        try:
            self._set_up_shared(stack, shared)
            self.context = copy_context()
            self.context.run(self._set_up_own, stack)
        except SETUP_OUTCOMES as error:
            stack[self.item] = (stack[self.item][0], (error, error.__traceback__))
        finally:
            setup.end()

    def _set_up_shared(self, stack: fixtures.Stack, names: Sequence[str]) -> None:
        with (
            fixtures.use_stack(stack),
            use_sink(self.sink),
            activate_temporarily(self._state.running),
        ):
            for node, (_, error) in stack.items():
                if error is not None and node is not self.item:
                    raise error[0].with_traceback(error[1])
            for name in names:
                self.item._request.getfixturevalue(name)  # noqa: SLF001 - the item's own request, as `Function.setup` uses it

    def set_up_in_turn(self) -> None:
        """Run pytest's own setup, which comes next, in the item's context, too.

        Context variables set by its own fixtures are then invisible to concurrent episodes.
        """
        self.sink.live = True
        self.shared_definitions = fixtures.give_own_definitions(self.item)
        self.item.setup = self._set_up_in_context  # type: ignore[method-assign]

    def _set_up_in_context(self) -> None:
        for name in fixtures.list_shared_fixtures(self.item):
            self.item._request.getfixturevalue(name)  # noqa: SLF001 - as in `_set_up_shared`
        self.context = copy_context()
        self.context.run(self._bind_output)
        self.context.run(type(self.item).setup, self.item)

    def _set_up_own(self, stack: fixtures.Stack) -> None:
        fixtures.set_stack(stack)
        self._bind_output()
        self.item.setup()

    def _bind_output(self) -> None:
        set_sink(self.sink)
        if self._state.running is not None:
            bind_context(self._state.running)

    @property
    def is_set_up(self) -> bool:
        """Whether the setup succeeded and the test can be called."""
        return self.stack is None or self.stack[self.item][1] is None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call the test and run its coroutine as a task of the loop."""
        self.sink.phase = "call"
        if self._state.running is not None:
            self._state.running.is_called = True
        self.times["call"] = PhaseTimes()
        self.asyncio_task = loop.create_task(
            self._run_test(), context=self.context, name=self.item.nodeid
        )

    async def _run_test(self) -> None:
        try:
            await call_test(self.item)
        except SystemExit as error:
            self.exit = error
        except KeyboardInterrupt as error:
            if not self._is_cancelled:
                raise
            self.exit = error  # of a child process, say, that got the signal as well
        finally:
            self.times["call"].end()
            if (recorder := self._state.recorder) is not None:
                recorder.stop()
            await run_end_callbacks(self.item)

    def end(self, reason: str) -> None:
        """Cancel its running task, from any thread."""
        if self.asyncio_task is not None and not self.asyncio_task.done():
            self.end_reason = self.end_reason or reason
            loop = self.asyncio_task.get_loop()
            loop.call_soon_threadsafe(self.cancel)

    def cancel(self) -> asyncio.Task[None] | None:
        """Cancel its task, once, as it cleans up from then on; return it while it runs."""
        if self.asyncio_task is None or self.asyncio_task.done():
            return None
        if not self._is_cancelled:
            self._is_cancelled = True
            self.asyncio_task.cancel()
        return self.asyncio_task

    def raise_result(self) -> None:
        """Raise the test's exception, or EpisodeStopped if the run ended it."""
        if self.exit is not None:
            raise self.exit
        assert self.asyncio_task is not None  # noqa: S101 - it was awaited
        try:
            self.asyncio_task.result()
        except (Exception, asyncio.CancelledError):
            if self.end_reason is None:
                raise
            raise build_stop_error(self.end_reason) from None

    def bind_teardown(self, stack: fixtures.Stack) -> None:
        """Run pytest's teardown of the item, which comes next, in the item's context."""
        fixtures.bind_teardown_context(self.context, stack, self.item)

    def tear_down(self) -> list[BaseException]:
        """Tear down the item's own nodes before its turn; return the errors."""
        assert self.stack is not None  # noqa: S101 - it was started ahead
        errors = self.context.run(fixtures.tear_down_node, self.stack, self.item)
        self.close()
        return errors

    def close(self) -> None:
        """Restore the item's shared fixture definitions and its setup method."""
        if self.shared_definitions is not None:
            fixtures.restore_definitions(self.item, self.shared_definitions)
        self.shared_definitions = None
        vars(self.item).pop("setup", None)
