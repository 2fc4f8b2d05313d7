"""Stop a run that exceeds a suite budget: start no further episode and end running ones.

Made only if the suite has a budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.findings import SuiteStop
from ci_agent_eval.contract.results import JournalLine
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.contract.wording import make_printable
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.budgets import suite_budgets
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE
from ci_agent_eval.pytest_plugin.collection.iterations import is_optional
from ci_agent_eval.pytest_plugin.collection.removed_episodes import build_collected_episode
from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop
from ci_agent_eval.pytest_plugin.episodes.endings import build_stop_error
from ci_agent_eval.pytest_plugin.parts import get_parts
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.storage.regular_file import open_regular
from ci_agent_eval.storage.run_folder import EpisodeKey, ReportFolder

CHECK_INTERVAL_S = 0.2
"""Seconds between two checks of the other processes' spending while an episode waits."""

ROUNDING = 1e-9
"""Relative rounding error of a sum of many small costs; the run ignores smaller excesses."""

EPISODE_COUNTS = "agent_eval_counts"
"""Key under which an xdist worker reports its numbers of selected and started episodes."""

STOP = "agent_eval_stop"
"""Key under which an xdist worker reports why it stopped, the fields of a `RunStop`."""

REQUIRED_TESTS = "agent_eval_required"
"""Key under which an xdist worker of a stopped run reports the tests of required scenarios."""

RequiredTests = Sequence[tuple[str, int, str]]
"""Node id, iteration and scenario."""


@dataclass(frozen=True, slots=True)
class UnreadableJournal:
    """A journal that cannot be read, so that the run must stop: its episodes may cost anything."""

    path: str
    problem: str

    @property
    def sentence(self) -> str:
        """Description of the problem, and what to do."""
        return (
            f"the budgets of the suite cannot be checked: {self.path} {self.problem}; run the "
            "suite again, and let nothing else write to the report directory"
        )


RunStop = SuiteStop | UnreadableJournal
"""Why the run must stop."""


def measure_spending(episode: Episode) -> Usage:
    """Return what an episode has spent; agents of a skipped episode do not count."""
    trajectory = None if episode.outcome == "skipped" else episode.trajectory
    turns = () if trajectory is None else trajectory.turns
    return Usage.from_turns(turns, episode.judge, episode.simulated_user)


@dataclass(slots=True)
class JournalReader:
    """Reads the journals of all processes but one, each time only their new lines."""

    folder: ReportFolder
    own: Path
    """The journal of the process that asks."""
    _offsets: dict[Path, int] = field(default_factory=dict)
    _spent: dict[EpisodeKey, Usage] = field(default_factory=dict)
    _ended: set[EpisodeKey] = field(default_factory=set)

    def read(self) -> Usage | UnreadableJournal:
        """Return what the other processes have spent so far."""
        for path in {*self.folder.list_journals(), *self._offsets} - {self.own}:
            try:
                for line in self._read_new_lines(path):
                    self._add(line)
            except OSError as error:
                return UnreadableJournal(str(path), f"cannot be read ({error.strerror})")
            except ValueError:  # includes pydantic's ValidationError
                return UnreadableJournal(str(path), "has a line that is not a record of an episode")
        return sum(self._spent.values(), Usage())

    def _read_new_lines(self, path: Path) -> list[JournalLine]:
        """Read the new complete lines. Raises OSError and ValueError."""
        start = self._offsets.get(path, 0)
        with open_regular(path) as file:
            file.seek(start)
            new, newline, _ = file.read().rpartition(b"\n")
        lines = [JournalLine.model_validate_json(raw) for raw in new.splitlines()]
        self._offsets[path] = start + len(new) + len(newline)
        return lines

    def _add(self, line: JournalLine) -> None:
        """Add a record; the last one of an episode counts, and an `ended` one before others."""
        key = line.episode.key
        if line.event == "ended":
            self._ended.add(key)
        if line.event == "ended" or key not in self._ended:
            self._spent[key] = measure_spending(line.episode)


@dataclass(slots=True)
class EpisodeSpending:
    """The spending of one episode: recorded turns plus runs that are not recorded yet."""

    recorded: Usage = field(default_factory=Usage)
    runs: dict[int, Usage] = field(default_factory=dict)

    def record(self, spent: Usage) -> None:
        """Replace the recorded spending.

        A call without a price makes the sum unknown; the amount known before was spent.
        """
        self.recorded = replace(
            spent,
            tokens=max(spent.tokens, self.recorded.tokens),
            cost_usd=max(spent.cost_usd, self.recorded.cost_usd),
        )

    def sum(self) -> Usage:
        """Return the spending so far."""
        return sum(tuple(self.runs.values()), self.recorded)


def find_exceeded_limit(
    limits: Mapping[str, float], spent: Usage, elapsed_s: float
) -> SuiteStop | None:
    """Return the first exceeded limit, by the names of the suite budgets; None without any."""
    for kind in suite_budgets.KINDS:
        used: float = elapsed_s if kind.spent == "elapsed_s" else getattr(spent, str(kind.spent))
        if used > limits.get(kind.name, used) * (1 + ROUNDING):
            return SuiteStop(kind.name, used, limits[kind.name])
    return None


class BudgetStop:
    """Adds up the spending of the run and stops it once; one object per process."""

    def __init__(self, config: pytest.Config, limits: Mapping[str, float]) -> None:
        self._config = config
        self._limits = limits
        times = [kind.name for kind in suite_budgets.KINDS if kind.spent == "elapsed_s"]
        self.limits_spending = bool(limits.keys() - set(times))
        """Whether cost or tokens have a limit."""
        self._deadline = min((limits[name] for name in times if name in limits), default=None)
        """Seconds after the start of the run; None: time has no limit."""
        self.cause: RunStop | None = None
        """Why the run was stopped; None if it was not."""
        self._read_others = self._choose_reader()
        self._session: pytest.Session | None = None
        self._active_loop: SessionLoop | None = None
        self._timer: asyncio.TimerHandle
        """The next check while a test runs."""
        self._has_cancelled = False
        """Whether the stop has cancelled the current test."""
        self._spending: dict[tuple[str, int, int], EpisodeSpending] = {}
        """By node id, iteration and attempt."""
        self._open: dict[str, EpisodeSpending] = {}
        """Of the running attempts, by node id."""
        self._selected: int | None = None
        self._required: RequiredTests = ()
        self._started_count = 0
        self._has_workers = False
        """Whether this is the main process of several."""
        self._items: list[pytest.Item] = []

    def _choose_reader(self) -> Callable[[], Usage | UnreadableJournal]:
        """Return what reads the spending of the other processes; a single one has none."""
        directory = options.get_report_dir(self._config)
        if directory is None or not (self.limits_spending and options.is_worker(self._config)):
            return Usage
        folder = ReportFolder(directory)
        own = folder.journal(options.get_worker_id(self._config)).path
        return JournalReader(folder, own).read

    # The spending.

    def open(self, item: pytest.Item, recorder: EpisodeRecorder) -> None:
        """Start to track an attempt at an episode."""
        state, spending = item.stash[EPISODE], EpisodeSpending()
        key = item.nodeid, state.iteration, state.attempt
        self._spending[key] = self._open[item.nodeid] = spending

        def record(spent: Usage) -> None:
            spending.record(spent)
            self.find_exceeded()

        recorder.on_spent = record

    def record_run(self, episode_id: str, run: object, spent: Usage | None) -> None:
        """Record the spending so far of a run of the episode with this id.

        None: it has ended and is recorded next.
        """
        if (spending := self._open.get(episode_id)) is None:
            return
        if spent is None:
            spending.runs.pop(id(run), None)
        else:
            spending.runs[id(run)] = spent
            self.find_exceeded()

    def note_report(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Subtract the spending of an episode that was skipped late, as reports do not count it."""
        state = item.stash.get(EPISODE, None)
        if state is None or state.final_episode is None or report.when != "teardown":
            return
        spending = self._open.pop(item.nodeid, None)
        if spending is not None and state.final_episode.outcome == "skipped":
            spending.recorded = measure_spending(state.final_episode)
            spending.runs.clear()

    def find_exceeded(self) -> RunStop | None:
        """Return the exceeded budget; once found, it stays exceeded, and the run stops."""
        if self.cause is None and (cause := self._check()) is not None:
            self._stop(cause)
        return self.cause

    def _check(self) -> RunStop | None:
        others = self._read_others()
        if isinstance(others, UnreadableJournal):
            return others
        own = [spending.sum() for spending in tuple(self._spending.values())]
        return find_exceeded_limit(self._limits, sum(own, others), self._measure_elapsed_s())

    def _measure_elapsed_s(self) -> float:
        return suite_budgets.clock() - suite_budgets.get_start_time(self._config)

    # The tests.

    def begin(self, session: pytest.Session) -> None:
        """Read the start time before other hooks run and before a worker needs it."""
        self._session = session
        suite_budgets.get_start_time(self._config)

    def count_selected(self, session: pytest.Session) -> None:
        """Count the episodes that are to run."""
        self._items = [i for i in session.items if EPISODE in i.stash and not is_optional(i)]
        self._selected = len(self._items)

    def passes_over(self, item: pytest.Item) -> bool:
        """Skip items once a budget is exceeded, except episodes that were started ahead."""
        return not self._is_started(item) and self.find_exceeded() is not None

    def refuse(self, item: pytest.Item) -> None:
        """Refuse another attempt at an episode that was stopped."""
        if EPISODE not in item.stash or self._is_started(item):
            return
        if (cause := self.find_exceeded()) is not None:
            raise build_stop_error(cause.sentence)

    def _is_started(self, item: pytest.Item) -> bool:
        scheduler = get_parts(self._config).scheduler
        return scheduler is not None and scheduler.is_started(item)

    def watch_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Convert the cancellation of an episode's task into a stop error."""
        if EPISODE not in item.stash:
            return (yield)
        with self._watch_budgets():
            try:
                return (yield)
            except (Exception, asyncio.CancelledError):
                if self.cause is None or not self._has_cancelled:
                    raise
                raise build_stop_error(self.cause.sentence) from None

    @contextmanager
    def _watch_budgets(self) -> Iterator[None]:
        """Check the budgets while a test runs, and make its task cancellable.

        A time limit is noticed at its deadline, spending of other processes soon after it is in
        their journals.
        """
        self._has_cancelled = False
        self._active_loop = SessionLoop.find(self._config)
        loop = self._active_loop.loop
        self._timer = loop.call_later(self._compute_pause_s(), self._check_again, loop)
        try:
            yield
        finally:
            self._timer.cancel()
            self._active_loop = None

    def _check_again(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.find_exceeded() is None:
            self._timer = loop.call_later(self._compute_pause_s(), self._check_again, loop)

    def _compute_pause_s(self) -> float:
        if self._deadline is None:
            return CHECK_INTERVAL_S
        left = max(self._deadline - self._measure_elapsed_s(), 0.0)
        # Slightly after the deadline, so that it is exceeded and not just reached.
        return min(left + 0.001, CHECK_INTERVAL_S)

    def _stop(self, cause: RunStop) -> None:
        """Make pytest stop after the current item, and cancel the running tasks."""
        self.cause = cause
        scheduler = get_parts(self._config).scheduler
        if scheduler is not None and scheduler.end_all(cause.sentence):
            return
        if self._session is not None:
            self._session.shouldstop = cause.sentence
        for task in () if self._active_loop is None else self._active_loop.running:
            if not task.done():
                self._has_cancelled = True
                _cancel(task)

    # The end.

    def watch_loop(self, session: pytest.Session) -> Generator[None, object, object]:
        """End the main process's session after its workers have stopped."""
        try:
            result = yield
        finally:
            cause = self.cause if self._has_workers else None
            if cause is not None:
                session.shouldstop = cause.sentence
        if cause is not None:
            # Older versions of xdist do not raise it themselves.
            raise session.Interrupted(cause.sentence)
        return result

    def dump(self, output: dict[str, Any]) -> None:
        """Send a worker's episode counts to the main process."""
        output[EPISODE_COUNTS] = (self._selected or 0, self._count_started())
        output[REQUIRED_TESTS] = self.list_required()
        output[STOP] = None if self.cause is None else asdict(self.cause)

    def _count_started(self) -> int:
        """Return the number of episodes started, however many attempts each had."""
        return len({key[:2] for key in self._spending})

    def add_worker(self, output: Mapping[str, Any]) -> None:
        """Add a worker's counts, and why it stopped; all workers collect the same episodes."""
        self._has_workers = True
        if (fields := output.get(STOP)) and self.cause is None:
            kind = SuiteStop if "budget" in fields else UnreadableJournal
            self._stop(kind(**fields))
        selected, started = output.get(EPISODE_COUNTS, (0, 0))
        self._selected = selected or self._selected
        self._started_count += started
        self._required = output.get(REQUIRED_TESTS) or self._required

    def list_required(self) -> RequiredTests:
        """Return the tests of required scenarios, at the end of a stopped run; else nothing."""
        if self.cause is None or not self._items:
            return self._required
        tests = [(build_collected_episode(item), item.stash[EPISODE]) for item in self._items]
        return [
            (state.nodeid, state.iteration, episode.scenario_id)
            for episode, state in tests
            if episode.gate == "required"
        ]

    def write_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write that the run was stopped, the cause, and how many episodes did not run."""
        if self.cause is not None:
            text = f"STOPPED {self.cause.sentence}{self._describe_missing()}"
            terminalreporter.write_line(make_printable(text))

    def _describe_missing(self) -> str:
        reports = get_parts(self._config).reports
        if self._selected is None or reports is None:
            return ""
        # Episodes that a worker cut off have no report.
        missing = max(self._selected - max(reports.count, self._started_count), 0)
        return f"; {missing} of {self._selected} selected episodes did not run"


def _cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task from any thread; if it is the caller, before it returns."""
    loop = task.get_loop()
    try:
        is_here = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_here = False
    if is_here:
        task.cancel()
    else:
        loop.call_soon_threadsafe(task.cancel)
