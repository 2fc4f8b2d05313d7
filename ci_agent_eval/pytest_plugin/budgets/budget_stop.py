"""Stop a run that exceeds a suite budget: start no further episode and end running ones.

Made only if the suite has a budget.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.findings import SuiteStop
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.contract.wording import make_printable
from ci_agent_eval.pytest_plugin.budgets import suite_budgets
from ci_agent_eval.pytest_plugin.budgets.budget_monitor import (
    JournalReader,
    ReadOthers,
    RunStop,
    SuiteBudgetMonitor,
    SuiteLimits,
    UnreadableJournal,
    measure_spending,
)
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE
from ci_agent_eval.pytest_plugin.collection.iterations import is_optional
from ci_agent_eval.pytest_plugin.collection.removed_episodes import build_collected_episode
from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop
from ci_agent_eval.pytest_plugin.episodes.endings import build_stop_error
from ci_agent_eval.pytest_plugin.options import (
    get_report_dir,
    get_worker_id,
    is_worker,
)
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.storage.run_folder import ReportFolder

CHECK_INTERVAL_S = 0.2
"""Seconds between two checks of the other processes' spending while an episode waits."""

EPISODE_COUNTS = "agent_eval_counts"
"""Key under which an xdist worker reports its numbers of selected and started episodes."""

STOP = "agent_eval_stop"
"""Key under which an xdist worker reports why it stopped, the fields of a `RunStop`."""

REQUIRED_TESTS = "agent_eval_required"
"""Key under which an xdist worker of a stopped run reports the tests of required scenarios."""

RequiredTests = Sequence[tuple[str, int, str]]
"""Node id, iteration and scenario."""


class BudgetStop:
    """Watches the spending of the run and stops it; one object per process."""

    def __init__(self, config: pytest.Config, limits: SuiteLimits) -> None:
        self._config = config
        self.limits = limits
        self._session: pytest.Session | None = None
        self._active_loop: SessionLoop | None = None
        self._stop_reasons: list[str] = []
        self._selected: int | None = None
        self._required: RequiredTests = ()
        self._started_count = 0
        self._has_workers = False
        """Whether this is the main process of several."""
        self._items: list[pytest.Item] = []

    @functools.cached_property
    def budgets(self) -> SuiteBudgetMonitor:
        """The limits and the spending of the run; available once the session has begun."""
        budgets = SuiteBudgetMonitor(
            self.limits,
            self._choose_reader(),
            clock=suite_budgets.clock,
            started=suite_budgets.get_start_time(self._config),
        )
        budgets.on_exceeded(self._stop)
        return budgets

    def _choose_reader(self) -> ReadOthers:
        """Return what reads the spending of the other processes; a single one has none."""
        directory = get_report_dir(self._config)
        if directory is None or not (self.limits.limits_spending and is_worker(self._config)):
            return Usage
        folder = ReportFolder(directory)
        return JournalReader(folder, folder.journal(get_worker_id(self._config)).path).read

    @functools.cached_property
    def tracker(self) -> SpendingTracker:
        """The spending of the episodes of this process."""
        return SpendingTracker(self.budgets)

    def begin(self, session: pytest.Session) -> None:
        """Read the start time before other hooks run and before a worker needs it."""
        self._session = session
        suite_budgets.get_start_time(self._config)

    def count_selected(self, session: pytest.Session) -> None:
        """Count the episodes that are to run."""
        found = [one for one in session.items if EPISODE in one.stash and not is_optional(one)]
        self._selected, self._items = len(found), found

    def passes_over(self, item: pytest.Item) -> bool:
        """Skip items once a budget is exceeded, except episodes that were started ahead."""
        return not self._is_started(item) and self.budgets.find_exceeded() is not None

    def _is_started(self, item: pytest.Item) -> bool:
        scheduler = get_parts(self._config).scheduler
        return scheduler is not None and scheduler.is_started(item)

    def refuse(self, item: pytest.Item) -> None:
        """Refuse another attempt at an episode that was stopped."""
        if EPISODE not in item.stash or self._is_started(item):
            return
        if (cause := self.budgets.find_exceeded()) is not None:
            raise build_stop_error(cause.sentence)

    def watch_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Convert the cancellation of an episode's task into a stop error."""
        if EPISODE not in item.stash:
            return (yield)
        with self._watch_budgets():
            try:
                return (yield)
            except (Exception, asyncio.CancelledError):
                if not self._stop_reasons:
                    raise
                raise build_stop_error(self._stop_reasons[0]) from None

    def note_report(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Subtract the spending of an episode that was skipped late, as reports do not count it."""
        state = item.stash.get(EPISODE, None)
        if state is not None and state.final_episode is not None and report.when == "teardown":
            self.tracker.close(item, state.final_episode)

    def watch_loop(self, session: pytest.Session) -> Generator[None, object, object]:
        """End the main process's session after its workers have stopped."""
        try:
            result = yield
        finally:
            cause = self.budgets.get_stop() if self._has_workers else None
            if cause is not None:
                session.shouldstop = cause.sentence
        if cause is not None:
            # Older versions of xdist do not raise it themselves.
            raise session.Interrupted(cause.sentence)
        return result

    def dump(self, output: dict[str, Any]) -> None:
        """Send a worker's episode counts to the main process."""
        output[EPISODE_COUNTS] = (self._selected or 0, self.tracker.count)
        output[REQUIRED_TESTS] = self.list_required()
        cause = self.budgets.get_stop()
        output[STOP] = None if cause is None else asdict(cause)

    def add_worker(self, output: Mapping[str, Any]) -> None:
        """Add a worker's counts, and why it stopped; all workers collect the same episodes."""
        self._has_workers = True
        if fields := output.get(STOP):
            self.budgets.stop(
                SuiteStop(**fields) if "budget" in fields else UnreadableJournal(**fields)
            )
        selected, begun = output.get(EPISODE_COUNTS, (0, 0))
        self._selected = selected or self._selected
        self._started_count += begun
        self._required = output.get(REQUIRED_TESTS) or self._required

    def list_required(self) -> RequiredTests:
        """Return the tests of required scenarios, at the end of a stopped run; else nothing."""
        if self.budgets.get_stop() is None or not self._items:
            return self._required
        found = []
        for item in self._items:
            episode, state = build_collected_episode(item), item.stash[EPISODE]
            if episode.gate == "required":
                found.append((state.nodeid, state.iteration, episode.scenario_id))
        return found

    def write_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write that the run was stopped, the cause, and how many episodes did not run."""
        if (cause := self.budgets.get_stop()) is not None:
            text = f"STOPPED {cause.sentence}{self._describe_missing()}"
            terminalreporter.write_line(make_printable(text))

    def _describe_missing(self) -> str:
        reports = get_parts(self._config).reports
        if self._selected is None or reports is None:
            return ""
        # Episodes that a worker cut off have no report.
        missing = max(self._selected - max(reports.count, self._started_count), 0)
        return f"; {missing} of {self._selected} selected episodes did not run"

    def _stop(self, cause: RunStop) -> None:
        """Make pytest stop after the current item, and cancel the running tasks."""
        sentence = cause.sentence
        scheduler = get_parts(self._config).scheduler
        if scheduler is not None and scheduler.end_all(sentence):
            return
        if self._session is not None:
            self._session.shouldstop = sentence
        if self._active_loop is None:
            return
        for task in self._active_loop.running:
            if not task.done():
                self._stop_reasons.append(sentence)
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
    def _watch_budgets(self) -> Iterator[None]:
        """Check the budgets while a test runs, and make its task cancellable."""
        self._stop_reasons.clear()
        self._active_loop = SessionLoop.find(self._config)
        watch = BudgetWatcher(self.budgets, self._active_loop.loop)
        try:
            yield
        finally:
            watch.stop()
            self._active_loop = None


class BudgetWatcher:
    """Checks on an event loop whether a budget is exceeded, until one is or `stop` is called.

    A time limit is noticed at its deadline, spending of other processes soon after
    it is in their journals.
    """

    def __init__(self, budgets: SuiteBudgetMonitor, loop: asyncio.AbstractEventLoop) -> None:
        self._budgets = budgets
        self._loop = loop
        self._next = loop.call_later(self._compute_pause_s(), self._look)

    def stop(self) -> None:
        """End the checks."""
        self._next.cancel()

    def _look(self) -> None:
        if self._budgets.find_exceeded() is None:
            self._next = self._loop.call_later(self._compute_pause_s(), self._look)

    def _compute_pause_s(self) -> float:
        deadline = self._budgets.deadline_s()
        # Slightly after the deadline, so that it is exceeded and not just reached.
        return CHECK_INTERVAL_S if deadline is None else min(deadline + 0.001, CHECK_INTERVAL_S)


class EpisodeSpending:
    """The spending of one episode: recorded turns plus runs that are not recorded yet."""

    def __init__(self, budgets: SuiteBudgetMonitor, name: str) -> None:
        self._budgets = budgets
        self._name = name
        self._recorded = Usage()
        self._running: dict[int, Usage] = {}

    def record(self, spent: Usage) -> None:
        """Replace the spending that the episode's record contains so far."""
        # A call without a price makes the sum unknown; the amount known before was spent.
        previous = self._recorded
        self._recorded = replace(
            spent,
            tokens=max(spent.tokens, previous.tokens),
            cost_usd=max(spent.cost_usd, previous.cost_usd),
        )
        self._update_budgets()

    def record_run(self, run: object, spent: Usage | None) -> None:
        """Replace the spending of a running agent; None if the run ended and is recorded next."""
        if spent is None:
            self._running.pop(id(run), None)
        else:
            self._running[id(run)] = spent
            self._update_budgets()

    def close(self, spent: Usage) -> None:
        """Set the final spending of the episode."""
        self._recorded = spent
        self._running.clear()
        self._update_budgets()

    def _update_budgets(self) -> None:
        self._budgets.spend(self._name, sum(tuple(self._running.values()), self._recorded))


class SpendingTracker:
    """The spending of all episodes that one process runs at the same time."""

    def __init__(self, budgets: SuiteBudgetMonitor) -> None:
        self._budgets = budgets
        self._open: dict[str, EpisodeSpending] = {}
        self._started: set[str] = set()

    def open(self, item: pytest.Item, recorder: EpisodeRecorder) -> None:
        """Start to track an attempt at an episode."""
        state = item.stash[EPISODE]
        self._started.add(f"{item.nodeid}\n{state.iteration}")
        name = f"{item.nodeid}\n{state.iteration}\n{state.attempt}"
        self._open[item.nodeid] = account = EpisodeSpending(self._budgets, name)
        recorder.on_spent = account.record

    @property
    def count(self) -> int:
        """Number of episodes started, however many attempts each had."""
        return len(self._started)

    def record_run(self, episode_id: str, run: object, spent: Usage | None) -> None:
        """Record the spending so far of a run of the episode with this id."""
        if (account := self._open.get(episode_id)) is not None:
            account.record_run(run, spent)

    def close(self, item: pytest.Item, ended: Episode) -> None:
        """Set the final spending of an episode; agents of a skipped episode do not count."""
        account = self._open.pop(item.nodeid, None)
        if account is not None and ended.outcome == "skipped":
            account.close(measure_spending(ended))
