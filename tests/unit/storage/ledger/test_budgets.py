from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ci_agent_eval.contract.suite_stop import SuiteStop
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.ledger.budget_monitor import ProcessUsageStore, SuiteBudgetMonitor
from ci_agent_eval.storage.ledger.file import LedgerFile
from ci_agent_eval.storage.ledger.limits import SuiteLimits, SuiteUsage
from ci_agent_eval.storage.ledger.sqlite_stores import SharedUsageStore


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture(params=["process", "shared"])
def budgets(request, tmp_path):
    """Make budgets that share what is spent, as the processes of one run do."""
    clock, files, own = Clock(), [], ProcessUsageStore()

    def make(**limits):
        if request.param == "shared":
            files.append(LedgerFile(tmp_path))
        spending = SharedUsageStore(files[-1]) if files else own
        made = SuiteBudgetMonitor(SuiteLimits(limits), spending, clock=clock, started=clock.now)
        made.clock = clock
        return made

    yield make
    for file in files:
        file.close()


def test_episodes_add_up_and_the_last_word_on_each_counts(budgets):
    suite = budgets(total_cost_usd=1.0, total_tokens=1000)
    suite.spend("a", 0.4, 100)
    suite.spend("a", 0.6, 200)
    suite.spend("b", 0.3, 300)
    suite.spend("b", 0.3, 300)
    assert suite.find_exceeded() is None
    suite.spend("b", 0.45, 300)
    assert suite.find_exceeded() == SuiteStop("total_cost_usd", pytest.approx(1.05), 1.0)


def test_tokens_add_up_too(budgets):
    suite = budgets(total_tokens=499)
    suite.spend("a", 0.0, 100)
    suite.spend("a", 0.0, 200)
    suite.spend("b", 0.0, 299)
    assert suite.find_exceeded() is None
    suite.spend("b", 0.0, 300)
    assert suite.find_exceeded() == SuiteStop("total_tokens", 500, 499)


def test_once_it_is_exceeded_it_stays_so_in_the_same_words(budgets):
    suite = budgets(total_tokens=10)
    suite.spend("a", 0, 11)
    said = suite.find_exceeded()
    suite.spend("a", 0, 5)
    suite.spend("b", 0, 90)
    assert suite.find_exceeded() == said == SuiteStop("total_tokens", 11, 10)


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


def test_without_a_limit_on_time_there_is_no_deadline(budgets):
    assert budgets(total_tokens=10).deadline_s() is None


def test_what_one_process_finds_stops_the_others_which_see_what_all_have_spent(tmp_path):
    files = [LedgerFile(tmp_path), LedgerFile(tmp_path)]
    one, other = (
        SuiteBudgetMonitor(
            SuiteLimits({"total_cost_usd": 1.0}),
            SharedUsageStore(file),
            clock=Clock(),
            started=100.0,
        )
        for file in files
    )
    heard = []
    other.on_exceeded(heard.append)
    one.spend("a", 0.6, 1)
    other.spend("b", 0.3, 1)
    assert one.find_exceeded() is None
    one.spend("a", 0.75, 1)
    said = SuiteStop("total_cost_usd", pytest.approx(1.05), 1.0)
    assert one.find_exceeded() == said
    assert heard == []
    assert other.find_exceeded() == said
    assert heard == [said]
    for file in files:
        file.close()


def test_nothing_is_lost_of_what_several_spend_at_once(tmp_path):
    def spend(worker):
        file = LedgerFile(tmp_path)
        spending = SharedUsageStore(file)
        for number in range(150):
            spending.put(f"{worker}-{number % 15}", SuiteUsage(number, number))
        file.close()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(spend, range(3)))
    file = LedgerFile(tmp_path)
    whole = 3 * sum(range(135, 150))
    assert SharedUsageStore(file).total() == SuiteUsage(whole, whole)
    file.close()


def test_the_file_holds_digests_and_no_names(tmp_path):
    file = LedgerFile(tmp_path)
    SharedUsageStore(file).put(
        "tests/test_a.py::test_one[sk-secret-0123456789]", SuiteUsage(1.0, 2)
    )
    file.close()
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"sk-secret" not in written
    assert b"test_one" not in written
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir()} == {0}


def test_a_file_that_cannot_be_used_is_said_with_what_to_do(tmp_path):
    (tmp_path / "run.sqlite3").write_text("this is no database, and long enough to be told so")
    file = LedgerFile(tmp_path)
    with pytest.raises(InputError, match=r"cannot be used.*-n 0"):
        SharedUsageStore(file).get_stop()
    file.close()
