from __future__ import annotations

import pytest

from ci_agent_eval.contract.suite_stop import SuiteStop
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.pytest_plugin.budgets.budget_monitor import SuiteBudgetMonitor, SuiteLimits
from ci_agent_eval.pytest_plugin.budgets.journal_sums import UnreadableJournal


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def budgets():
    """Make the budgets of a process, with what the others have spent."""
    clock = Clock()

    def make(read_others=Usage, **limits):
        made = SuiteBudgetMonitor(SuiteLimits(limits), read_others, clock=clock, started=clock.now)
        made.clock = clock
        return made

    return make


def test_episodes_add_up_and_the_last_word_on_each_counts(budgets):
    suite = budgets(total_cost_usd=1.0, total_tokens=1000)
    suite.spend("a", Usage(tokens=100, cost_usd=0.4))
    suite.spend("a", Usage(tokens=200, cost_usd=0.6))
    suite.spend("b", Usage(tokens=300, cost_usd=0.3))
    suite.spend("b", Usage(tokens=300, cost_usd=0.3))
    assert suite.find_exceeded() is None
    suite.spend("b", Usage(tokens=300, cost_usd=0.45))
    assert suite.find_exceeded() == SuiteStop("total_cost_usd", pytest.approx(1.05), 1.0)


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


def test_what_is_used_up_to_the_limit_is_not_exceeded(budgets):
    """Whatever many small costs add up to, in whatever order."""
    suite = budgets(total_cost_usd=0.3, total_tokens=10)
    suite.spend("a", Usage(tokens=5, cost_usd=0.1))
    suite.spend("b", Usage(tokens=5, cost_usd=0.2))
    assert suite.find_exceeded() is None
    suite.spend("b", Usage(tokens=6, cost_usd=0.2))
    assert suite.find_exceeded().sentence == "suite budget total_tokens exceeded: 11 of 10"
