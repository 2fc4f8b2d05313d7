"""The concurrent episodes of a process: started ahead, awaited in turn, ended with the run."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Protocol

import pytest

from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.budgets import suite_budgets
from ci_agent_eval.pytest_plugin.concurrency import alarm, garbage_collector, setup_stacks
from ci_agent_eval.pytest_plugin.concurrency.coroutines import run_coroutine_test
from ci_agent_eval.pytest_plugin.concurrency.eligibility import find_obstacle
from ci_agent_eval.pytest_plugin.concurrency.episode_task import EpisodeTask
from ci_agent_eval.pytest_plugin.concurrency.fixture_scope_guard import (
    FixtureScopeGuard,
    GuardedItem,
)
from ci_agent_eval.pytest_plugin.concurrency.fixtures import note_holder
from ci_agent_eval.pytest_plugin.concurrency.item_order import ItemOrder
from ci_agent_eval.pytest_plugin.concurrency.output import OutputRouting, route_logs
from ci_agent_eval.pytest_plugin.concurrency.session_loop import CLEAN_UP_S, SessionLoop
from ci_agent_eval.recording.active_episode import set_concurrent

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

AHEAD = 4
"""How many times the concurrency may be started and not yet reported: one slow episode whose
turn it is does not keep the others waiting, and they do not pile up behind it either."""


class EpisodeLog(Protocol):
    """What the plugin knows of the episodes, as far as it is needed here."""

    def begin(self, item: pytest.Item, *, ahead: bool = False) -> None:
        """Write down that an episode has started."""

    def cut_off(self, item: pytest.Item, reason: str) -> None:
        """Write down what there is of an episode that the end of the run cut off."""


class EpisodeScheduler:
    """Runs up to `concurrency` episodes at once; a plugin object of its own."""

    def __init__(self, session: pytest.Session, concurrency: int, episodes: EpisodeLog) -> None:
        self._session = session
        self._concurrency = concurrency
        self._episodes = episodes
        self._loop = SessionLoop.find(session.config)
        self._order = ItemOrder(session)
        self._window = FixtureScopeGuard()
        self._routing = OutputRouting()
        self._ahead: dict[pytest.Item, EpisodeTask] = {}
        """Those whose turn has not come, in the order of their turns."""
        self._turn: pytest.Item | None = None
        self._current: EpisodeTask | None = None
        """That of the item whose turn it is, if it has one."""
        self._at_work = 0
        self._waits: asyncio.Event | None = None
        self._pending: BaseException | None = None
        """Raised for the item whose turn it is by an alarm in a step of another one, or by
        another one for the whole run."""
        self._interruption: BaseException | None = None
        self._stop: str | None = None
        """Why no episode is started any more."""
        stack = session._setupstate.stack  # noqa: SLF001 - pytest has no public name for it
        self._stacks = setup_stacks.SetupStacks(stack, self._begun, self._before_teardown)

    @classmethod
    def start(
        cls, session: pytest.Session, concurrency: int, episodes: EpisodeLog
    ) -> EpisodeScheduler:
        """Take the session's setup over, and listen."""
        lanes = cls(session, concurrency, episodes)
        session._setupstate = lanes._stacks  # noqa: SLF001 - as in `__init__`
        session.config.stash[options.SCHEDULER] = lanes
        lanes._loop.around = lanes._routing.on
        route_logs(session.config)
        session.config.add_cleanup(garbage_collector.collect_less_often())
        session.config.pluginmanager.register(lanes, "ci_agent_eval_lanes")
        return lanes

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Note whose turn it is, and let go of all that was its own at its end."""
        self._order.turn(item, nextitem)
        self._turn = item
        try:
            return (yield)
        finally:
            self._window.remove(item)
            if self._current is not None:
                self._current.close()
            self._turn = self._current = None
            if self._stop is not None and not self._ahead:
                self._session.shouldstop = self._stop

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> None:
        """Note whom a shared fixture is for."""
        note_holder(fixturedef, request.node)

    def is_started(self, item: pytest.Item) -> bool:
        """Say whether the item's episode was started ahead, and its turn has only now come."""
        return item in self._ahead

    def end_all(self, why: str) -> bool:
        """Start none any more, and end all that are at work; each is told of in its turn.

        Returns False where there is none, and the run may stop at once.
        """
        lanes = [lane for lane in (self._current, *self._ahead.values()) if lane is not None]
        if not lanes:
            return False
        self._stop = why
        for lane in lanes:
            lane.end(why)
        return True

    def set_phase_times(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Let pytest report how long a phase took, and not how long its turn did."""
        lane = self._current
        if lane is not None and lane.item is item and (times := lane.times.get(call.when)):
            times.put_into(call)

    def run(self, item: pytest.Function) -> None:
        """Run the test of the item whose turn it is, and others beside it; raise what it raises."""
        lane = self._taken()
        if lane is None:
            run_coroutine_test(item)
            return
        lane.sink.tell("call")
        try:
            with self._routing.on():
                self._await(lane)
            lane.result()
        except (KeyboardInterrupt, pytest.exit.Exception) as interruption:
            self._interruption = interruption
            raise

    def _taken(self) -> EpisodeTask | None:
        """Return the lane whose turn it is, its test started by now; None where it is alone."""
        lane = self._current
        if lane is not None and lane.task is None:
            self._run_task(lane)
        return lane

    def _run_task(self, lane: EpisodeTask) -> None:
        lane.start(self._loop.loop)
        assert lane.task is not None  # noqa: S101 - just started
        self._at_work += 1
        lane.task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._at_work -= 1
        if not task.cancelled() and isinstance(error := task.exception(), pytest.exit.Exception):
            # The run ends now, as it does at a KeyboardInterrupt, and not at that item's turn.
            self._pending = error
        if self._waits is not None:
            self._waits.set()

    def _await(self, lane: EpisodeTask) -> None:
        """Let the loop run until the lane's task has ended; start others as there is room.

        Where it has ended already the loop makes a step all the same: the others wait for it.
        """
        try:
            with alarm.guard_alarm(
                lambda task: task in self._others(), self._loop.loop, self._deliver
            ):
                if not lane.is_at_work:
                    self._refill()
                    self._loop.step()
                    self._raise_pending()
                while lane.is_at_work:
                    self._refill()
                    self._raise_pending()
                    if lane.is_at_work:  # it may have ended while async fixtures were set up
                        self._loop.run(self._next_end())
        except BaseException:
            if lane.task is not None and not lane.task.done():
                lane.task.cancel()
                self._loop.run(_wait_for_cancelled([lane.task]))
            raise

    def _others(self) -> set[asyncio.Task[None] | None]:
        return {lane.task for lane in self._ahead.values()}

    def _deliver(self, error: BaseException) -> None:
        self._pending = error
        if self._waits is not None:
            self._loop.loop.call_soon_threadsafe(self._waits.set)

    async def _next_end(self) -> None:
        """Wait until any task has ended, or an alarm was handed over."""
        self._waits = asyncio.Event()
        await self._waits.wait()
        self._raise_pending()

    def _raise_pending(self) -> None:
        if self._pending is not None:
            error, self._pending = self._pending, None
            raise error

    def _refill(self) -> None:
        """Start episodes ahead while there is room, in order, up to one that has to wait."""
        while (
            not self._is_to_stop()
            and self._at_work < self._concurrency
            and len(self._ahead) < AHEAD * self._concurrency
            and (item := next(self._order.upcoming(len(self._ahead)), None)) is not None
            and self._admitted(item)
        ):
            pass
        set_concurrent(bool(self._ahead))

    def _is_to_stop(self) -> bool:
        """Say whether a budget of the suite is exceeded, which may be found out just now."""
        budgets = suite_budgets.get_suite_budgets(self._session.config)
        return self._stop is not None or (
            budgets is not None and budgets.find_exceeded() is not None
        )

    def _admitted(self, item: pytest.Item) -> bool:
        if find_obstacle(item) is not None or not isinstance(item, pytest.Function):
            return False
        member = GuardedItem.from_item(item)
        if not self._window.admits(item, member) or self._brings_a_setup(item):
            return False
        self._window.add(item, member)
        self._start(item)
        return True

    def _brings_a_setup(self, item: pytest.Item) -> bool:
        """Say whether a node above the item, a package, is set up by more than its fixtures."""
        return any(
            type(node).setup is not pytest.Collector.setup
            for node in item.listchain()[:-1]
            if not self._stacks.has(node)
        )

    def _start(self, item: pytest.Function) -> None:
        others = [lane.stack for lane in reversed(self._ahead.values()) if lane.stack is not None]
        self._episodes.begin(item, ahead=True)
        lane = self._ahead[item] = EpisodeTask(item)
        lane.set_up(self._stacks.stack_for(item, others))
        if lane.is_set_up:
            self._run_task(lane)

    def _begun(self, item: pytest.Item) -> setup_stacks.Stack | None:
        """Take an item over whose turn has come; it may come again, when it is run again."""
        if self._current is not None:
            self._current.close()
        lane = self._current = self._ahead.pop(item, None) or self._in_turn(item)
        if lane is None or lane.stack is None:
            return None
        lane.sink.tell("setup")
        return lane.stack

    def _in_turn(self, item: pytest.Item) -> EpisodeTask | None:
        """Return a lane for an item that was not started ahead; None if it is to be alone."""
        if find_obstacle(item) is not None or not isinstance(item, pytest.Function):
            return None
        if item not in self._window:
            self._window.add(item, GuardedItem.from_item(item))
        lane = EpisodeTask(item)
        lane.set_up_in_turn()
        return lane

    def _before_teardown(self, nextitem: pytest.Item | None) -> None:
        """End what was started and is not needed: at a skip its own item, at a stop all.

        Raises what the teardown of an item raises whose turn it is.
        """
        if self._current is not None:
            self._current.tear_down_apart(self._stacks.stack)
        ended = [i for i in self._ahead if nextitem is None or i is self._turn]
        if not ended:
            return
        lanes = [self._ahead.pop(item) for item in ended]
        errors: dict[pytest.Item, list[BaseException]] = {item: [] for item in ended}
        try:
            self._end_early(lanes, errors)
        finally:  # a second Ctrl-C may come
            for item in ended:
                if item is not self._turn:
                    said = "".join(f"; then in teardown: {_format_error(e)}" for e in errors[item])
                    self._episodes.cut_off(item, f"{self._reason()}{said}")
        _raise_errors(errors.get(self._turn, []) if self._turn is not None else [])

    def _end_early(
        self, lanes: list[EpisodeTask], errors: dict[pytest.Item, list[BaseException]]
    ) -> None:
        """Cancel tasks, tear down what is theirs alone; note what that raised, by item."""
        set_concurrent(bool(self._ahead))
        tasks = [lane.task for lane in lanes if lane.task is not None]
        for task in tasks:
            task.cancel()
        with self._routing.on():
            try:
                if tasks:
                    self._loop.run(_wait_for_cancelled(tasks))
            finally:
                for lane in reversed(lanes):
                    errors[lane.item] += lane.tear_down()
                    self._window.remove(lane.item)
                for lane in reversed(lanes):
                    errors[lane.item] += self._tear_down_nodes(lane)

    def _tear_down_nodes(self, lane: EpisodeTask) -> list[BaseException]:
        """Tear down the modules and classes that were begun by those that were started ahead."""
        kept = [other.stack or {} for other in self._ahead.values()]
        errors: list[BaseException] = []
        for node in reversed(list(lane.stack or {})):
            if not self._stacks.has(node) and not any(node in stack for stack in kept):
                errors += setup_stacks.tear_down_node(lane.stack or {}, node)
        return errors

    def _reason(self) -> str:
        if self._interruption is not None:
            return f"interrupted: {type(self._interruption).__name__}"
        why = self._session.shouldfail or self._session.shouldstop
        return f"cancelled: the run stopped before its turn{f' ({why})' if why else ''}"


def _raise_errors(errors: list[BaseException]) -> None:
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise BaseExceptionGroup("errors during test teardown", errors)


def _format_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


async def _wait_for_cancelled(tasks: list[asyncio.Task[None]]) -> None:
    """Wait for tasks that were cancelled, and for what they still have to do."""
    if tasks:
        await asyncio.wait(tasks, timeout=CLEAN_UP_S)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # seen: nobody awaits it any more
