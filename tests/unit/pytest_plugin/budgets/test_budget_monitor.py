from __future__ import annotations

import pytest

from ci_agent_eval.contract.suite_stop import SuiteStop
from ci_agent_eval.pytest_plugin.budgets.budget_monitor import SuiteBudgetMonitor, SuiteLimits
from ci_agent_eval.pytest_plugin.budgets.journal_sums import UnreadableJournal
from ci_agent_eval.recording.spending import SuiteUsage


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def budgets():
    """Make the budgets of a process, with what the others have spent."""
    clock = Clock()

    def make(read_others=SuiteUsage, **limits):
        made = SuiteBudgetMonitor(SuiteLimits(limits), read_others, clock=clock, started=clock.now)
        made.clock = clock
        return made

    return make


def test_episodes_add_up_and_the_last_word_on_each_counts(budgets):
    suite = budgets(total_cost_usd=1.0, total_tokens=1000)
    suite.spend("a", 0.4, 100)
    suite.spend("a", 0.6, 200)
    suite.spend("b", 0.3, 300)
    suite.spend("b", 0.3, 300)
    assert suite.find_exceeded() is None
    suite.spend("b", 0.45, 300)
    assert suite.find_exceeded() == SuiteStop("total_cost_usd", pytest.approx(1.05), 1.0)


def test_listeners_are_told_once_and_late_ones_at_once(budgets):
    suite, heard = budgets(total_tokens=10), []
    suite.on_exceeded(lambda said: heard.append(("first", said)))
    suite.spend("a", 0, 10)
    assert heard == []
    suite.spend("a", 0, 11)
    suite.spend("a", 0, 12)
    suite.find_exceeded()
    suite.on_exceeded(lambda said: heard.append(("late", said)))
    assert [who for who, _ in heard] == ["first", "late"]
    assert {said for _, said in heard} == {suite.find_exceeded()}


def test_the_time_runs_from_the_start_of_the_run(budgets):
    suite = budgets(total_wall_time_s=60.0)
    suite.clock.now += 20
    assert suite.deadline_s() == 40
    assert suite.find_exceeded() is None
    suite.clock.now += 41
    assert suite.deadline_s() == 0
    assert suite.find_exceeded() == SuiteStop("total_wall_time_s", 61, 60)


def test_a_journal_that_cannot_be_read_stops_the_run(budgets):
    problem, heard = UnreadableJournal("gw1.jsonl", "cannot be read"), []
    suite = budgets(lambda: problem, total_tokens=1000)
    suite.on_exceeded(heard.append)
    assert suite.find_exceeded() is problem
    assert heard == [problem]
