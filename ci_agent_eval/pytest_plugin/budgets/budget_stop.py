"""Stopping a run at a budget of its suite: no episode starts any more, and running ones end.

A plugin object, registered where the suite has such a budget.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ci_agent_eval.contract.suite_stop import SuiteStop
from ci_agent_eval.contract.wording import make_printable
from ci_agent_eval.pytest_plugin.budgets import shared_ledger
from ci_agent_eval.pytest_plugin.budgets.spending import SpendingTracker
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE, RECORDER
from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop
from ci_agent_eval.pytest_plugin.episodes.endings import build_stop_error
from ci_agent_eval.pytest_plugin.options import SCHEDULER, is_worker
from ci_agent_eval.pytest_plugin.terminal import PLUGIN_NAME, EpisodeReports
from ci_agent_eval.storage.ledger.budget_monitor import (
    Listener,
    ProcessUsageStore,
    SuiteBudgetMonitor,
    UsageStore,
)
from ci_agent_eval.storage.ledger.limits import SuiteLimits
from ci_agent_eval.storage.ledger.sqlite_stores import SharedUsageStore

LOOK_S = 0.2
"""Seconds between two looks at what the other processes have spent, while an episode waits."""

COUNTS = "agent_eval_counts"
"""Key under which an xdist worker hands over how many episodes were selected, and have begun."""


class BudgetState:
    """What one process keeps of the suite's budgets, made when it is first asked for.

    Not a part of the plugin object: of that pytest asks every attribute when it is registered.
    """

    def __init__(self, config: pytest.Config, limits: SuiteLimits, stop: Listener) -> None:
        self._config = config
        self._limits = limits
        self._stop = stop

    @functools.cached_property
    def budgets(self) -> SuiteBudgetMonitor:
        """What the run may spend; to be asked for when the session has begun."""
        file = shared_ledger.ledger_file(self._config)
        spending: UsageStore = ProcessUsageStore() if file is None else SharedUsageStore(file)
        made = SuiteBudgetMonitor(
            self._limits,
            spending,
            clock=shared_ledger.clock,
            started=shared_ledger.get_start_time(self._config),
        )
        made.on_exceeded(self._stop)
        return made

    @functools.cached_property
    def accounts(self) -> SpendingTracker:
        """What the episodes of this process spend."""
        return SpendingTracker(self.budgets)


class BudgetStop:
    """Watches what the run spends, and stops it; one for each process of the run."""

    def __init__(self, config: pytest.Config, limits: SuiteLimits) -> None:
        self._config = config
        self.kept = BudgetState(config, limits, self._stop)
        self._session: pytest.Session | None = None
        self._watched: SessionLoop | None = None
        self._ended: list[str] = []
        self._selected: int | None = None
        self._begun = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Take the time before anything else does, and before a worker is told of it."""
        self._session = session
        shared_ledger.get_start_time(self._config)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the episodes that are to run."""
        self._selected = sum(1 for item in session.items if EPISODE in item.stash)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Start nothing any more once a budget is exceeded; what was started has its turn."""
        return None if self._is_begun(item) or self.kept.budgets.find_exceeded() is None else True

    def _is_begun(self, item: pytest.Item) -> bool:
        lanes = self._config.stash.get(SCHEDULER, None)
        return lanes is not None and lanes.is_begun(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        """Keep account of an episode from the moment on that its recorder is there."""
        made = yield
        if fixturedef.argname == RECORDER:
            self.kept.accounts.open(request.node, made)
        return made

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin no further attempt at an episode that was stopped."""
        if EPISODE not in item.stash or self._is_begun(item):
            return
        if (cause := self.kept.budgets.find_exceeded()) is not None:
            raise build_stop_error(cause.sentence)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """End the episode as stopped whose task was cancelled for it."""
        if EPISODE not in item.stash:
            return (yield)
        with self._watching():
            try:
                return (yield)
            except (Exception, asyncio.CancelledError):
                if not self._ended:
                    raise
                raise build_stop_error(self._ended[0]) from None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Take back what an episode has spent that was skipped late: no report counts it."""
        report = yield
        state = item.stash.get(EPISODE, None)
        if state is not None and state.ended is not None and report.when == "teardown":
            self.kept.accounts.close(item, state.ended)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Let the session of the main process end, too, because its workers have stopped."""
        try:
            result = yield
        finally:
            cause = self.kept.budgets.get_stop() if self._is_controller else None
            if cause is not None:
                session.shouldstop = cause.sentence
        if cause is not None:
            # xdist does so itself, but for older ones.
            raise session.Interrupted(cause.sentence)
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the numbers of episodes to the main process."""
        if is_worker(session.config):
            output: dict[str, Any] = session.config.workeroutput  # type: ignore[attr-defined]
            output[COUNTS] = (self._selected or 0, self.kept.accounts.count)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take up what a worker says: all of them collected the same."""
        output = getattr(node, "workeroutput", None) or {}
        selected, begun = output.get(COUNTS, (0, 0))
        self._selected = selected or self._selected
        self._begun += begun

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say that the run was stopped, why, and how many episodes did not run."""
        if (cause := self.kept.budgets.get_stop()) is not None:
            told = f"STOPPED {cause.sentence}{self._left_out()}"
            terminalreporter.write_line(make_printable(told))

    def _left_out(self) -> str:
        reports = self._config.pluginmanager.get_plugin(PLUGIN_NAME)
        if self._selected is None or not isinstance(reports, EpisodeReports):
            return ""
        # Of those that a worker cut off there is no report.
        missing = max(self._selected - max(reports.count, self._begun), 0)
        return f"; {missing} of {self._selected} selected episodes did not run"

    @property
    def _is_controller(self) -> bool:
        """Whether this is the main process of several."""
        return shared_ledger.FOLDER in self._config.stash

    def _stop(self, cause: SuiteStop) -> None:
        """Let pytest stop after the item that it is at, and end what this one waits for."""
        sentence = cause.sentence
        lanes = self._config.stash.get(SCHEDULER, None)
        if lanes is not None and lanes.end_all(sentence):
            return
        if self._session is not None:
            self._session.shouldstop = sentence
        if self._watched is None:
            return
        for task in self._watched.running:
            if not task.done():
                self._ended.append(sentence)
                self._cancel(task)

    @staticmethod
    def _cancel(task: asyncio.Task[Any]) -> None:
        loop = task.get_loop()
        try:
            is_here = asyncio.get_running_loop() is loop
        except RuntimeError:
            is_here = False
        if is_here:
            task.cancel()
        else:
            loop.call_soon_threadsafe(task.cancel)

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """While a test runs, look again and again, and let it be cancelled."""
        self._ended.clear()
        self._watched = SessionLoop.of(self._config)
        watch = BudgetWatcher(self.kept.budgets, self._watched.loop)
        try:
            yield
        finally:
            watch.stop()
            self._watched = None


class BudgetWatcher:
    """Looks on an event loop whether a budget is exceeded, until it is or it is told to stop.

    The time is over at its time; what other processes have spent is seen within `LOOK_S`.
    """

    def __init__(self, budgets: SuiteBudgetMonitor, loop: asyncio.AbstractEventLoop) -> None:
        self._budgets = budgets
        self._loop = loop
        self._next = loop.call_later(self._pause_s(), self._look)

    def stop(self) -> None:
        """Look no more."""
        self._next.cancel()

    def _look(self) -> None:
        if self._budgets.find_exceeded() is None:
            self._next = self._loop.call_later(self._pause_s(), self._look)

    def _pause_s(self) -> float:
        deadline = self._budgets.deadline_s()
        # A moment later than the deadline, so that it is exceeded and not just reached.
        return LOOK_S if deadline is None else min(deadline + 0.001, LOOK_S)
