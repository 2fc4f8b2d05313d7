"""The budgets of a running suite: told what is spent, they say once that the run is to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ci_agent_eval.contract.suite_stop import SuiteStop
from ci_agent_eval.storage.ledger.limits import RunUsage, SuiteLimits

Clock = Callable[[], float]
"""Seconds, the same in all processes of the run."""

Listener = Callable[[SuiteStop], None]
"""Is told which budget is exceeded."""


class UsageStore(Protocol):
    """Who keeps what the episodes of a run have spent, for one process or for all of them."""

    def put(self, episode_id: str, spent: RunUsage) -> None:
        """Set what an episode has spent so far, in place of what was set before."""

    def total(self) -> RunUsage:
        """Return what all episodes have spent."""

    def stop(self, cause: SuiteStop) -> SuiteStop:
        """Say that the run is to stop; returns the cause that was there first."""

    def stopped(self) -> SuiteStop | None:
        """Return why the run is to stop; None while it may go on."""


class ProcessUsageStore:
    """In the memory of one process."""

    def __init__(self) -> None:
        self._episodes: dict[str, RunUsage] = {}
        self._total = RunUsage()
        self._stop: SuiteStop | None = None

    def put(self, episode_id: str, spent: RunUsage) -> None:
        """Set what an episode has spent so far, in place of what was set before."""
        self._total += spent - self._episodes.get(episode_id, RunUsage())
        self._episodes[episode_id] = spent

    def total(self) -> RunUsage:
        """Return what all episodes have spent."""
        return self._total

    def stop(self, cause: SuiteStop) -> SuiteStop:
        """Say that the run is to stop; returns the cause that was there first."""
        self._stop = self._stop or cause
        return self._stop

    def stopped(self) -> SuiteStop | None:
        """Return why the run is to stop; None while it may go on."""
        return self._stop


class SuiteBudgetMonitor:
    """What a run may spend, in the eyes of one of its processes."""

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
        """Say what an episode has spent so far, all in all: saying it again changes nothing.

        Raises InputError where the processes of the run share a file that cannot be used.
        """
        self._spending.put(episode_id, RunUsage(cost_usd, tokens))
        self.find_exceeded()

    def find_exceeded(self) -> SuiteStop | None:
        """Return which budget is exceeded; once it is, it stays so for all.

        Raises InputError as `spend` does.
        """
        if self._stop is None:
            found = self._spending.stopped() or self._limits.find_exceeded(
                self._spending.total(), self._elapsed_s()
            )
            if found is not None:
                self._end(self._spending.stop(found))
        return self._stop

    def stopped(self) -> SuiteStop | None:
        """Return why the run was stopped, by any of its processes; None where it was not.

        Unlike `exceeded` it finds nothing new: the time after the last episode does not count.
        """
        return self._stop or self._spending.stopped()

    def deadline_s(self) -> float | None:
        """Return the seconds until the time is over; None where it has no limit."""
        limit = self._limits.elapsed_s
        return None if limit is None else max(limit - self._elapsed_s(), 0.0)

    def on_exceeded(self, listener: Listener) -> None:
        """Have a listener told once, at once if it is too late already.

        It is called where this process finds out: by `spend` or `exceeded`, on their thread.
        """
        if self._stop is None:
            self._listeners.append(listener)
        else:
            listener(self._stop)

    def _elapsed_s(self) -> float:
        return self._clock() - self._started

    def _end(self, cause: SuiteStop) -> None:
        self._stop = cause
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(cause)
