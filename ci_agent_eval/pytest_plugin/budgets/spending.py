"""What each episode spends, told to the budgets of the suite as it is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.recording.spending import sum_spending
from ci_agent_eval.storage.ledger.budget_monitor import SuiteBudgetMonitor
from ci_agent_eval.storage.ledger.limits import RunUsage

if TYPE_CHECKING:
    from ci_agent_eval.engine.limits import RunUsage as SpentByRun


class EpisodeSpending:
    """One episode's: what is recorded, and what runs have spent that are not recorded yet."""

    def __init__(self, budgets: SuiteBudgetMonitor, name: str) -> None:
        self._budgets = budgets
        self._name = name
        self._recorded = RunUsage()
        self._running: dict[int, RunUsage] = {}

    def record(self, spent: RunUsage) -> None:
        """Say what the episode has spent so far by its record."""
        # A call without a price leaves a side's sum unknown; what was known before was spent.
        known = self._recorded
        self._recorded = RunUsage(
            max(spent.cost_usd, known.cost_usd), max(spent.tokens, known.tokens)
        )
        self._tell()

    def run(self, run: object, spent: SpentByRun | None) -> None:
        """Say what a run has spent so far; None: it has ended, and is recorded next."""
        if spent is None:
            self._running.pop(id(run), None)
        else:
            self._running[id(run)] = RunUsage(spent.cost_usd, spent.tokens)
            self._tell()

    def close(self, spent: RunUsage) -> None:
        """Say what the episode has spent in the end."""
        self._recorded = spent
        self._running.clear()
        self._tell()

    def _tell(self) -> None:
        whole = sum(self._running.values(), self._recorded)
        self._budgets.spend(self._name, whole.cost_usd, whole.tokens)


class SpendingTracker:
    """Of all episodes that one process has at work."""

    def __init__(self, budgets: SuiteBudgetMonitor) -> None:
        self._budgets = budgets
        self._open: dict[str, EpisodeSpending] = {}
        self._begun: set[str] = set()

    def open(self, item: pytest.Item, recorder: EpisodeRecorder) -> None:
        """Keep account of an attempt at an episode, which begins now."""
        state = item.stash[EPISODE]
        self._begun.add(f"{item.nodeid}\n{state.iteration}")
        name = f"{item.nodeid}\n{state.iteration}\n{state.attempt}"
        self._open[item.nodeid] = account = EpisodeSpending(self._budgets, name)
        recorder.on_spent = account.record

    @property
    def count(self) -> int:
        """How many episodes have begun, whatever the number of their attempts."""
        return len(self._begun)

    def run(self, episode_id: str, run: object, spent: SpentByRun | None) -> None:
        """Say what a run has spent so far of the episode that the engine knows by its id."""
        if (account := self._open.get(episode_id)) is not None:
            account.run(run, spent)

    def close(self, item: pytest.Item, ended: Episode) -> None:
        """Say what an episode has spent in the end: of one that was skipped no agent counts."""
        account = self._open.pop(item.nodeid, None)
        if account is not None and ended.outcome == "skipped":
            account.close(sum_spending((), ended.judge, ended.simulated_user))
