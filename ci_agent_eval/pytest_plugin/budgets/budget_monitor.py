"""The budgets of a running suite, as one process sees them: adds up usage, and stops once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci_agent_eval.contract.budget_kinds import SUITE_BUDGET_KINDS, SuiteBudgetKind
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.findings import SuiteStop
from ci_agent_eval.contract.results import JournalLine
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.storage.regular_file import open_regular
from ci_agent_eval.storage.run_folder import EpisodeKey, ReportFolder


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


@dataclass(slots=True)
class RecordedSpending:
    """The spending of episodes, by their last records."""

    _spent: dict[EpisodeKey, Usage] = field(default_factory=dict)
    _ended: set[EpisodeKey] = field(default_factory=set)

    def add(self, lines: Iterable[JournalLine]) -> None:
        """Add records in their order; an `ended` one counts before `started` ones."""
        for line in lines:
            key = line.episode.key
            if line.event == "ended":
                self._ended.add(key)
            elif key in self._ended:
                continue
            self._spent[key] = measure_spending(line.episode)

    def sum(self) -> Usage:
        """Return the spending of all episodes."""
        return sum(self._spent.values(), Usage())


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
    _spending: RecordedSpending = field(default_factory=RecordedSpending)

    def read(self) -> Usage | UnreadableJournal:
        """Return what the other processes have spent so far."""
        for path in {*self.folder.list_journals(), *self._offsets} - {self.own}:
            try:
                self._spending.add(self._read_new_lines(path))
            except OSError as error:
                return UnreadableJournal(str(path), f"cannot be read ({error.strerror})")
            except ValueError:  # includes pydantic's ValidationError
                return UnreadableJournal(str(path), "has a line that is not a record of an episode")
        return self._spending.sum()

    def _read_new_lines(self, path: Path) -> list[JournalLine]:
        """Read the new complete lines. Raises OSError and ValueError."""
        start = self._offsets.get(path, 0)
        with open_regular(path) as file:
            file.seek(start)
            new, newline, _ = file.read().rpartition(b"\n")
        lines = [JournalLine.model_validate_json(raw) for raw in new.splitlines()]
        self._offsets[path] = start + len(new) + len(newline)
        return lines


ROUNDING = 1e-9
"""Relative rounding error of a sum of many small costs; the run ignores smaller excesses."""

RunStop = SuiteStop | UnreadableJournal
"""Why the run must stop."""

ReadOthers = Callable[[], Usage | UnreadableJournal]
"""Returns what the episodes of other processes have spent so far."""

Listener = Callable[[RunStop], None]
"""Called with the exceeded budget."""


@dataclass(frozen=True, slots=True)
class SuiteLimits:
    """Limits of a run, by the names of the suite budgets."""

    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def elapsed_s(self) -> float | None:
        """Time limit in seconds; None: no limit."""
        return min(
            (limit for kind, limit in self._iter_limits() if kind.spent == "elapsed_s"),
            default=None,
        )

    @property
    def limits_spending(self) -> bool:
        """Whether cost or tokens have a limit."""
        return any(kind.spent != "elapsed_s" for kind, _ in self._iter_limits())

    def find_exceeded(self, spent: Usage, elapsed_s: float) -> SuiteStop | None:
        """Return the first exceeded limit; None if there is none."""
        for kind, limit in self._iter_limits():
            used: float = (
                elapsed_s if kind.spent == "elapsed_s" else getattr(spent, str(kind.spent))
            )
            if used > limit * (1 + ROUNDING):
                return SuiteStop(kind.name, used, limit)
        return None

    def _iter_limits(self) -> Iterator[tuple[SuiteBudgetKind, float]]:
        for kind in SUITE_BUDGET_KINDS:
            if kind.spent is not None and kind.name in self.limits:
                yield kind, self.limits[kind.name]


class SuiteBudgetMonitor:
    """The suite's budgets: what this process spends, also while an episode runs, and the others."""

    def __init__(
        self,
        limits: SuiteLimits,
        read_others: ReadOthers,
        *,
        clock: Callable[[], float],
        started: float,
    ) -> None:
        self._limits = limits
        self._read_others = read_others
        self._clock = clock
        self._started = started
        self._episodes: dict[str, Usage] = {}
        self._stop: RunStop | None = None
        self._listeners: list[Listener] = []

    def spend(self, episode_id: str, spent: Usage) -> None:
        """Set an episode's total usage so far; repeating a call changes nothing."""
        self._episodes[episode_id] = spent
        self.find_exceeded()

    def find_exceeded(self) -> RunStop | None:
        """Return the exceeded budget; once found, it stays exceeded."""
        if self._stop is None and (found := self._check()) is not None:
            self.stop(found)
        return self._stop

    def _check(self) -> RunStop | None:
        others = self._read_others()
        if isinstance(others, UnreadableJournal):
            return others
        spent = sum(tuple(self._episodes.values()), others)
        return self._limits.find_exceeded(spent, self._elapsed_s())

    def get_stop(self) -> RunStop | None:
        """Return why the run was stopped; None if it was not.

        Unlike `find_exceeded` it checks nothing new: time after the last episode does not count.
        """
        return self._stop

    def deadline_s(self) -> float | None:
        """Return the seconds left until the time limit; None without a limit."""
        limit = self._limits.elapsed_s
        return None if limit is None else max(limit - self._elapsed_s(), 0.0)

    def on_exceeded(self, listener: Listener) -> None:
        """Call a listener once when a budget is exceeded, immediately if it already is.

        It is called on the thread of the `spend` or `find_exceeded` call that detects it.
        """
        if self._stop is None:
            self._listeners.append(listener)
        else:
            listener(self._stop)

    def stop(self, cause: RunStop) -> None:
        """Stop the run, unless it is stopped already."""
        if self._stop is not None:
            return
        self._stop = cause
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(cause)

    def _elapsed_s(self) -> float:
        return self._clock() - self._started
