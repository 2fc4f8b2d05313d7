"""One episode at work: its fixtures, its task, its output, and the context of all three."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any

import pytest

from ci_agent_eval.pytest_plugin.collection.detection import EPISODE, EpisodeItem
from ci_agent_eval.pytest_plugin.concurrency import fixtures, setup_stacks
from ci_agent_eval.pytest_plugin.concurrency.coroutines import call_test, run_end_callbacks
from ci_agent_eval.pytest_plugin.concurrency.output import OutputSink, set_sink, use_sink
from ci_agent_eval.pytest_plugin.episodes.endings import build_stop_error
from ci_agent_eval.recording.active_episode import activate_temporarily, bind_context

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

SETUP_OUTCOMES = (Exception, pytest.skip.Exception, pytest.fail.Exception)
"""What a setup may raise that is the item's own, as pytest's `TEST_OUTCOME`."""


@dataclass(slots=True)
class PhaseTimes:
    """When a phase began, in seconds since the epoch, and how long it took, in seconds."""

    start: float = field(default_factory=time.time)
    seconds: float | None = None
    _clock: float = field(default_factory=time.perf_counter)

    def end(self) -> None:
        """Note that the phase has come to its end."""
        self.seconds = time.perf_counter() - self._clock

    def put_into(self, call: pytest.CallInfo[Any]) -> None:
        """Let pytest report these times in the place of those that its turn took."""
        if self.seconds is not None:
            call.start, call.duration = self.start, self.seconds
            call.stop = self.start + self.seconds


@dataclass(slots=True)
class EpisodeTask:
    """An episode from its start to the end of its turn."""

    item: pytest.Function
    sink: OutputSink = field(default_factory=OutputSink)
    context: Context = field(default_factory=copy_context)
    stack: setup_stacks.Stack | None = None
    """Its own nodes, where it was started ahead of its turn."""
    task: asyncio.Task[None] | None = None
    exit: SystemExit | None = None
    """Raised by the test; a task would hand it to the loop, and so to another test."""
    ended: str | None = None
    """Why its task was cancelled by the run, if it was."""
    times: dict[str, PhaseTimes] = field(default_factory=dict)
    before: Any = None
    """The item's shared fixture definitions, while it has some of its own."""

    @property
    def _state(self) -> EpisodeItem:
        return self.item.stash[EPISODE]

    @property
    def is_at_work(self) -> bool:
        """Whether its task has not come to its end."""
        return self.task is not None and not self.task.done()

    def set_up(self, stack: setup_stacks.Stack) -> None:
        """Set the item up on a stack of its own; what that raises is kept on it.

        Shared fixtures are set up in the context of the run, in which they are torn down; the
        item's own ones in the item's.
        """
        wide = list(fixtures.list_shared_fixtures(self.item))
        self.before, self.stack = fixtures.give_own_definitions(self.item), stack
        setup = self.times["setup"] = PhaseTimes()
        try:
            self._shared(stack, wide)
            self.context = copy_context()
            self.context.run(self._own, stack)
        except SETUP_OUTCOMES as error:
            stack[self.item] = (stack[self.item][0], (error, error.__traceback__))
        finally:
            setup.end()

    def _shared(self, stack: setup_stacks.Stack, names: Sequence[str]) -> None:
        with (
            setup_stacks.use_stack(stack),
            use_sink(self.sink),
            activate_temporarily(self._state.running),
        ):
            for node, (_, error) in stack.items():
                if error is not None and node is not self.item:
                    raise error[0].with_traceback(error[1])
            for name in names:
                self.item._request.getfixturevalue(name)  # noqa: SLF001 - the item's own request, as `Function.setup` uses it

    def set_up_in_turn(self) -> None:
        """Let pytest's own setup, which comes now, be in a context of the item's, too.

        What its own fixtures set there is not seen by those that are started beside it.
        """
        self.sink.live = True
        self.before = fixtures.give_own_definitions(self.item)
        self.item.setup = self._set_up_apart  # type: ignore[method-assign]

    def _set_up_apart(self) -> None:
        for name in fixtures.list_shared_fixtures(self.item):
            self.item._request.getfixturevalue(name)  # noqa: SLF001 - as in `_shared`
        self.context = copy_context()
        self.context.run(self._enter)
        self.context.run(type(self.item).setup, self.item)

    def _own(self, stack: setup_stacks.Stack) -> None:
        setup_stacks.set_stack(stack)
        self._enter()
        self.item.setup()

    def _enter(self) -> None:
        set_sink(self.sink)
        if self._state.running is not None:
            bind_context(self._state.running)

    @property
    def is_set_up(self) -> bool:
        """Whether nothing keeps the test from being called."""
        return self.stack is None or self.stack[self.item][1] is None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call the test, whose coroutine is a task of the loop from now on."""
        self.sink.phase = "call"
        if self._state.running is not None:
            self._state.running.is_called = True
        self.times["call"] = PhaseTimes()
        self.task = loop.create_task(self._driven(), context=self.context, name=self.item.nodeid)

    async def _driven(self) -> None:
        try:
            await call_test(self.item)
        except SystemExit as error:
            self.exit = error
        finally:
            self.times["call"].end()
            if (recorder := self._state.recorder) is not None:
                recorder.stop()
            await run_end_callbacks(self.item)

    def end(self, why: str) -> None:
        """Cancel its task, if that is at work, from any thread."""
        if self.task is not None and not self.task.done():
            self.ended = self.ended or why
            loop = self.task.get_loop()
            loop.call_soon_threadsafe(self.task.cancel)

    def result(self) -> None:
        """Raise what the test raised; EpisodeStopped where the run has ended it."""
        if self.exit is not None:
            raise self.exit
        assert self.task is not None  # noqa: S101 - it was awaited
        try:
            self.task.result()
        except (Exception, asyncio.CancelledError):
            if self.ended is None:
                raise
            raise build_stop_error(self.ended) from None

    def tear_down_apart(self, stack: setup_stacks.Stack) -> None:
        """Let pytest's teardown of the item, which comes now, be in its context."""
        setup_stacks.bind_teardown_context(self.context, stack, self.item)

    def tear_down(self) -> list[BaseException]:
        """Tear down what is the item's own, whose turn does not come; return what that raises."""
        assert self.stack is not None  # noqa: S101 - it was started ahead
        errors = self.context.run(setup_stacks.tear_down_node, self.stack, self.item)
        self.close()
        return errors

    def close(self) -> None:
        """Let go of what is the item's own."""
        if self.before is not None:
            fixtures.restore_definitions(self.item, self.before)
        self.before = None
        vars(self.item).pop("setup", None)
