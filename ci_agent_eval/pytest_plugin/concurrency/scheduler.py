"""The concurrent episodes of a process: started ahead, awaited in turn, ended with the run."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Generator, Iterable
from functools import partial
from itertools import islice
from threading import get_ident
from typing import TYPE_CHECKING

import pytest

from ci_agent_eval.pytest_plugin.concurrency import INTERRUPTIONS, fixtures, session_loop
from ci_agent_eval.pytest_plugin.concurrency.eligibility import ItemOrder, find_obstacle
from ci_agent_eval.pytest_plugin.concurrency.episode_task import EpisodeTask
from ci_agent_eval.pytest_plugin.concurrency.held_changes import HeldChanges
from ci_agent_eval.pytest_plugin.concurrency.loop_members import run_coroutine_test
from ci_agent_eval.pytest_plugin.concurrency.output import (
    OutputRouting,
    route_logs,
)
from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.recording.active_episode import set_concurrent, set_owner_thread

if TYPE_CHECKING:
    from ci_agent_eval.pytest_plugin.session import EpisodeSession

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

AHEAD_FACTOR = 4
"""Limit on started and unreported episodes, as a multiple of the concurrency: a slow current
episode does not delay the others, and they do not pile up behind it."""


MAX_LOOK_AHEAD = 2000
"""Items among which the next adaptive iteration is looked for."""

GARBAGE_THRESHOLD = 20_000
"""Number of created and not freed objects that triggers a collection of garbage; a conversation of
a few turns creates about as many."""


class EpisodeScheduler:
    """Runs up to `concurrency` episodes at once."""

    def __init__(self, session: pytest.Session, concurrency: int, episodes: EpisodeSession) -> None:
        self._session = session
        self._concurrency = concurrency
        self._episodes = episodes
        self._loop = SessionLoop.find(session.config)
        self._owner = get_ident()
        self._order = ItemOrder(session)
        self._needs: dict[pytest.Item, dict[str, object]] = {}
        """The shared needs of the current item and of those that were started ahead."""
        self.changes = HeldChanges()
        self._postponed: set[pytest.Item] = set()
        """Episodes whose setup changes the process, and which therefore wait for their turn."""
        self._routing = OutputRouting()
        self._ahead: dict[pytest.Item, EpisodeTask] = {}
        """Episodes that were started ahead, in the order of their turns."""
        self._current_item: pytest.Item | None = None
        self._current_task: EpisodeTask | None = None
        """The current item's task, if it has one."""
        self._running_count = 0
        self._task_end: asyncio.Event | None = None
        self._pending: BaseException | None = None
        """Exception for the current item, from an alarm in a step of another item, or for the whole
        run, from another item."""
        self._interruption: BaseException | None = None
        self._stop: str | None = None
        """Why no further episode is started."""
        stack = session._setupstate.stack  # noqa: SLF001 - pytest has no public name for it
        self._stacks = fixtures.SetupStacks(stack, self._begin_turn, self._before_teardown)

    @classmethod
    def start(
        cls, session: pytest.Session, concurrency: int, episodes: EpisodeSession
    ) -> EpisodeScheduler:
        """Replace the session's setup state."""
        scheduler = cls(session, concurrency, episodes)
        session._setupstate = scheduler._stacks  # noqa: SLF001 - as in `__init__`
        get_parts(session.config).scheduler = scheduler
        scheduler._loop.around = scheduler._routing.enable
        scheduler._loop.owner = scheduler._owner
        session.config.add_cleanup(set_owner_thread())
        session.config.add_cleanup(partial(set_concurrent, False))  # pytest may run again here
        route_logs(session.config)
        session.config.add_cleanup(_collect_garbage_less_often())
        return scheduler

    def take_turn(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Set the current item, and free its resources at the end."""
        self._order.set_current(item, nextitem)
        self._current_item = item
        try:
            return (yield)
        finally:
            self._remove(item)
            if self._current_task is not None:
                self._current_task.close()
            self._current_item = self._current_task = None
            self._loop.owner = self._owner
            if self._stop is not None and not self._ahead:
                self._session.shouldstop = self._stop

    def note_fixture(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> None:
        """Store the node that a shared fixture is created for."""
        fixtures.set_holder(fixturedef, request.node)

    def is_started(self, item: pytest.Item) -> bool:
        """Return whether the episode was started ahead and its turn has just come."""
        return item in self._ahead

    def end_all(self, reason: str) -> bool:
        """Start no further episode, and end the running ones; each is reported at its turn.

        Returns False if none is running, so the run may stop at once.
        """
        tasks = [task for task in (self._current_task, *self._ahead.values()) if task is not None]
        if not tasks:
            return False
        self._stop = reason
        for task in tasks:
            task.end(reason)
        return True

    def set_phase_times(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Make pytest report the duration of a phase and not of its turn."""
        task = self._current_task
        if task is not None and task.item is item and (times := task.times.get(call.when)):
            times.apply_to(call)

    def run(self, item: pytest.Function) -> None:
        """Run the current item's test, and others concurrently; raise the test's exception."""
        task = self._get_started_task()
        if task is None:
            run_coroutine_test(item)
            return
        task.sink.replay("call")
        with self._routing.enable():
            self._await_task(task)
        task.raise_result()

    def _get_started_task(self) -> EpisodeTask | None:
        """Return the current task, started if necessary; None if the item runs alone."""
        task = self._current_task
        if task is not None and task.asyncio_task is None:
            self._run_task(task)
        return task

    def _run_task(self, task: EpisodeTask) -> None:
        task.start(self._loop.loop)
        assert task.asyncio_task is not None  # noqa: S101 - just started
        self._running_count += 1
        task.asyncio_task.add_done_callback(self._on_task_end)

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        self._running_count -= 1
        if not task.cancelled() and isinstance(error := task.exception(), pytest.exit.Exception):
            # The run ends now, as after a KeyboardInterrupt, and not at the item's turn.
            self._pending = error
        if self._task_end is not None:
            self._task_end.set()

    def _await_task(self, task: EpisodeTask) -> None:
        """Run the loop until the task has ended; start others as capacity allows.

        If it has ended already, the loop still makes a step, because the others wait for it.
        """
        try:
            with session_loop.guard_alarm(self._loop.loop, self._deliver):
                if not task.is_running:
                    self._refill()
                    self._loop.step()
                    self._raise_pending()
                while task.is_running:
                    self._refill()
                    self._raise_pending()
                    if task.is_running:  # it may have ended during the setup of async fixtures
                        self._loop.run(self._wait_for_task_end())
        except BaseException as error:
            self._clean_up(task, error)
            raise
        finally:
            if not isinstance(self._pending, pytest.exit.Exception):
                self._pending = None  # an alarm for this item, which has ended

    def _clean_up(self, task: EpisodeTask, error: BaseException) -> None:
        """Let the task clean up, and all others if the run ends.

        Raises what interrupts this, or an alarm.
        """
        try:
            if not isinstance(error, INTERRUPTIONS):
                self._cancel([task])
        except BaseException as later:
            error = later
            raise
        finally:
            if isinstance(error, INTERRUPTIONS):
                self._end_run()

    def interrupt(self, interruption: BaseException) -> None:
        """End all episodes before pytest closes its captured streams, to which they write."""
        self._interruption = interruption
        self._end_run()

    def _end_run(self) -> None:
        """Interrupt all episodes at once, and give up those that do not end in time.

        A further interruption ends this time; an alarm, which is for the current item, does not.
        """
        self._loop.begin_clean_up(self._session.config)
        tasks = [task for task in (self._current_task, *self._ahead.values()) if task is not None]
        while True:
            try:
                self._cancel(tasks)
                break
            except INTERRUPTIONS:
                self._loop.end_clean_up()
            except BaseException:  # noqa: BLE001 - the run ends by the interruption
                if not self._loop.clean_up_left_s:
                    break

    def _cancel(self, tasks: Iterable[EpisodeTask]) -> None:
        """Cancel the tasks that run, and let them clean up."""
        running = [pending for task in tasks if (pending := task.cancel()) is not None]
        if running:
            self._loop.run(self._loop.wait_for_cancelled(running))

    def _deliver(self, error: BaseException) -> None:
        self._pending = self._pending or error
        if self._task_end is not None:
            self._loop.loop.call_soon_threadsafe(self._task_end.set)

    async def _wait_for_task_end(self) -> None:
        """Wait until any task has ended, or an alarm was delivered."""
        self._task_end = asyncio.Event()
        if self._pending is None:  # an alarm may have occurred in a step before this one
            await self._task_end.wait()
        self._raise_pending()

    def _raise_pending(self) -> None:
        if self._pending is not None:
            error, self._pending = self._pending, None
            raise error

    def _refill(self) -> None:
        """Start episodes ahead up to the limits, in order, until one has to wait."""
        while (
            not self._must_stop()
            and self._pending is None
            and self._running_count < self._concurrency
            and len(self._ahead) < AHEAD_FACTOR * self._concurrency
            and (item := self._find_next()) is not None
            and self._start_if_admitted(item)
        ):
            pass
        set_concurrent(bool(self._ahead))

    def _find_next(self) -> pytest.Item | None:
        """Return the next item to start.

        An adaptive iteration is passed over if it is not needed, and for now if an earlier one
        that decides on it is still running.
        """
        adaptive = self._episodes.adaptive
        if adaptive is None:
            return next(self._order.iter_upcoming(len(self._ahead)), None)
        upcoming = islice(self._order.iter_upcoming(0), MAX_LOOK_AHEAD)
        waiting = (item for item in upcoming if item not in self._ahead)
        return next(
            (i for i in waiting if not (adaptive.is_waiting(i) or adaptive.is_unneeded(i))), None
        )

    def _must_stop(self) -> bool:
        """Return whether a suite budget is exceeded, which is also checked now."""
        found = get_parts(self._session.config).budgets
        is_over = found is not None and found.find_exceeded() is not None
        return is_over or self._stop is not None

    def _start_if_admitted(self, item: pytest.Item) -> bool:
        if find_obstacle(item) is not None or not isinstance(item, pytest.Function):
            return False
        if item in self._postponed or item in self._needs or self._needs_node_setup(item):
            return False  # the same item twice has one set of fixtures
        needs = fixtures.list_shared_needs(item)
        if any(other != needs for other in self._needs.values()):
            return False
        self._needs[item] = needs
        return self._start(item)

    def _needs_node_setup(self, item: pytest.Item) -> bool:
        """Return whether a node above the item has its own setup method, as packages do."""
        return any(
            type(node).setup is not pytest.Collector.setup
            for node in item.listchain()[:-1]
            if not self._stacks.has(node)
        )

    def _start(self, item: pytest.Function) -> bool:
        """Set an episode up and start it; False if its changes do not allow it to overlap."""
        others = [task.stack for task in reversed(self._ahead.values()) if task.stack is not None]
        set_concurrent(True)  # threads without a context belong to no episode, also in its setup
        self._episodes.begin(item, ahead=True)
        self.changes.enter(item)
        task = self._ahead[item] = EpisodeTask(item)
        task.set_up(self._stacks.build_stack(item, others))
        if not self.changes.agrees(item):
            self._postpone(task)
            return False
        if task.is_set_up:
            self._run_task(task)
        return True

    def _postpone(self, task: EpisodeTask) -> None:
        """Tear an episode down that was started ahead; errors come again at its turn."""
        del self._ahead[task.item]
        self._postponed.add(task.item)
        with self._routing.enable():
            task.tear_down()
            self._tear_down_nodes(task)
        self._remove(task.item)
        self._episodes.withdraw(task.item)

    def _remove(self, item: pytest.Item) -> None:
        """Let others start that an item has kept waiting."""
        self._needs.pop(item, None)
        self.changes.leave(item)

    def _begin_turn(self, item: pytest.Item) -> fixtures.Stack | None:
        """Activate the current item's task; the same item may be run again."""
        if self._current_task is not None:
            self._current_task.close()
        task = self._current_task = self._ahead.pop(item, None) or self._create_task_in_turn(item)
        # Pytest's thread waits for a test that runs alone; its own threads may run the loop.
        self._loop.owner = None if task is None else self._owner
        if task is None or task.stack is None:
            return None
        task.sink.replay("setup")
        return task.stack

    def _create_task_in_turn(self, item: pytest.Item) -> EpisodeTask | None:
        """Create a task for an item that was not started ahead; None if it has to run alone."""
        if find_obstacle(item) is not None or not isinstance(item, pytest.Function):
            return None
        self._needs.setdefault(item, fixtures.list_shared_needs(item))
        self.changes.enter(item)
        task = EpisodeTask(item)
        task.set_up_in_turn()
        return task

    def _before_teardown(self, nextitem: pytest.Item | None) -> None:
        """End unneeded tasks: the item's own at a skip, all at a stop.

        Raises the teardown errors of the current item.
        """
        if self._current_task is not None:
            self._current_task.bind_teardown(self._stacks.stack)
        ended = [i for i in self._ahead if nextitem is None or i is self._current_item]
        if not ended:
            return
        tasks = [self._ahead.pop(item) for item in ended]
        errors: dict[pytest.Item, list[BaseException]] = {item: [] for item in ended}
        try:
            self._end_early(tasks, errors)
        finally:  # also after a second Ctrl-C
            for item in ended:
                if item is not self._current_item:
                    teardown = [f"then in teardown: {_format_error(e)}" for e in errors[item]]
                    self._episodes.cut_off(item, "; ".join([self._describe_stop(), *teardown]))
        _raise_errors(errors.get(self._current_item, []) if self._current_item is not None else [])

    def _end_early(
        self, tasks: list[EpisodeTask], errors: dict[pytest.Item, list[BaseException]]
    ) -> None:
        """Cancel tasks, tear down their own nodes, and collect the errors by item."""
        set_concurrent(bool(self._ahead))
        with self._routing.enable():
            try:
                self._cancel(tasks)
            finally:
                for task in reversed(tasks):
                    errors[task.item] += task.tear_down()
                    self._remove(task.item)
                for task in reversed(tasks):
                    errors[task.item] += self._tear_down_nodes(task)

    def _tear_down_nodes(self, task: EpisodeTask) -> list[BaseException]:
        """Tear down the modules and classes that only episodes started ahead had set up."""
        kept = [other.stack or {} for other in self._ahead.values()]
        errors: list[BaseException] = []
        for node in reversed(list(task.stack or {})):
            if not self._stacks.has(node) and not any(node in stack for stack in kept):
                errors += fixtures.tear_down_node(task.stack or {}, node)
        return errors

    def _describe_stop(self) -> str:
        if self._interruption is not None:
            return f"interrupted: {type(self._interruption).__name__}"
        cause = self._session.shouldfail or self._session.shouldstop
        return f"cancelled: the run stopped before its turn{f' ({cause})' if cause else ''}"


def _raise_errors(errors: list[BaseException]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise BaseExceptionGroup("errors during test teardown", errors)


def _format_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _collect_garbage_less_often() -> Callable[[], None]:
    """Run Python's garbage collector less often; return a function that restores the settings.

    It scans all objects more often the more are created, which in a process full of tests and
    clients takes a fourth of the time. Existing objects are not frozen: Hypothesis, for example,
    finds the referrers of an object with `gc.get_referrers`, which skips frozen objects.
    """
    before = gc.get_threshold()
    if not gc.isenabled() or before[0] == 0 or before[0] >= GARBAGE_THRESHOLD:
        return lambda: None  # set on purpose
    gc.collect()
    gc.set_threshold(GARBAGE_THRESHOLD, *before[1:])

    def restore() -> None:
        gc.set_threshold(*before)

    return restore
