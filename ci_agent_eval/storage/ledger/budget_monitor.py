"""Monitor of a running suite's budgets: adds up usage and stops the run once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ci_agent_eval.contract.suite_stop import SuiteStop
from ci_agent_eval.storage.ledger.limits import SuiteLimits, SuiteUsage

Clock = Callable[[], float]
"""Returns seconds, comparable in all processes of the run."""

Listener = Callable[[SuiteStop], None]
"""Called with the exceeded budget."""


class UsageStore(Protocol):
    """Store of the usage of a run's episodes, for one process or for all of them."""

    def put(self, episode_id: str, spent: SuiteUsage) -> None:
        """Set an episode's usage so far, replacing the previous value."""

    def total(self) -> SuiteUsage:
        """Return the usage of all episodes."""

    def stop(self, cause: SuiteStop) -> SuiteStop:
        """Record that the run must stop; returns the first recorded cause."""

    def get_stop(self) -> SuiteStop | None:
        """Return why the run must stop; None while it may continue."""


class ProcessUsageStore:
    """The usage store of a single process, in memory."""

    def __init__(self) -> None:
        self._episodes: dict[str, SuiteUsage] = {}
        self._total = SuiteUsage()
        self._stop: SuiteStop | None = None

    def put(self, episode_id: str, spent: SuiteUsage) -> None:
        """Set an episode's usage so far, replacing the previous value."""
        self._total += spent - self._episodes.get(episode_id, SuiteUsage())
        self._episodes[episode_id] = spent

    def total(self) -> SuiteUsage:
        """Return the usage of all episodes."""
        return self._total

    def stop(self, cause: SuiteStop) -> SuiteStop:
        """Record that the run must stop; returns the first recorded cause."""
        self._stop = self._stop or cause
        return self._stop

    def get_stop(self) -> SuiteStop | None:
        """Return why the run must stop; None while it may continue."""
        return self._stop


class SuiteBudgetMonitor:
    """The suite's budgets as seen by one process of the run."""

    def __init__(
        self, limits: SuiteLimits, spending: UsageStore, *, clock: Clock, started: float
    ) -> None:
        self._limits = limits
        self._spending = spending
        self._clock = clock
        self._started = started
        self._stop: SuiteStop | None = None
        self._listeners: list[Listener] = []

    def spend(self, episode_id: str, cost_usd: float, tokens: int) -> None:
        """Set an episode's total usage so far; repeating a call changes nothing.

        Raises InputError if the shared ledger file cannot be used.
        """
        self._spending.put(episode_id, SuiteUsage(cost_usd, tokens))
        self.find_exceeded()

    def find_exceeded(self) -> SuiteStop | None:
        """Return the exceeded budget; once found, it stays exceeded for all processes.

        Raises InputError as `spend` does.
        """
        if self._stop is None:
            found = self._spending.get_stop() or self._limits.find_exceeded(
                self._spending.total(), self._elapsed_s()
            )
            if found is not None:
                self._record_stop(self._spending.stop(found))
        return self._stop

    def get_stop(self) -> SuiteStop | None:
        """Return why any process stopped the run; None if it was not stopped.

        Unlike `find_exceeded` it checks nothing new: time after the last episode does not count.
        """
        return self._stop or self._spending.get_stop()

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

    def _elapsed_s(self) -> float:
        return self._clock() - self._started

    def _record_stop(self, cause: SuiteStop) -> None:
        self._stop = cause
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(cause)
