"""The spending of each episode, reported to the suite budgets while the episode runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.pytest_plugin.budgets.budget_monitor import SuiteBudgetMonitor
from ci_agent_eval.pytest_plugin.budgets.journal_sums import measure_spending
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE
from ci_agent_eval.recording import EpisodeRecorder


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
