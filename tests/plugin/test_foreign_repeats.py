"""Plugins that run a test several times: each run is an attempt."""

from __future__ import annotations

RETRIES = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    "As pytest-retry: within the report of the first attempt."
    report = yield
    for _ in range(3):
        if call.when == "call" and call.excinfo:
            hook = item.ihook
            hook.pytest_runtest_teardown(item=item, nextitem=pytest.Class.from_parent(item.session, name="none"))
            item._initrequest()
            hook.pytest_runtest_setup(item=item)
            call = pytest.CallInfo.from_call(lambda: hook.pytest_runtest_call(item=item), when="call")
            again = pytest.TestReport.from_item_and_call(item, call)
            report.outcome, report.longrepr = again.outcome, again.longrepr
    return report
"""

RETRIED = """
from itertools import count

numbers = count(1)

def test_ends_well(episode):
    number = next(numbers)
    with episode.turn("Hello") as turn:
        turn.reply(str(number), cost_usd=0.25)
    if number == 2:
        raise OSError("no network")
    assert episode.turns[-1].content == "3"

def test_never(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    assert episode.turns[-1].content == "Bye"
"""


def test_a_test_that_is_run_again_within_its_report_has_attempts(suite):
    suite.write(RETRIED, conftest=RETRIES)
    ran = suite.run()
    ran.result.assert_outcomes(passed=1, failed=1)
    attempts = [(e.attempt, e.outcome) for e in ran.results.episodes]
    assert attempts[:3] == [(1, "failed"), (2, "error"), (3, "passed")]
    assert attempts[3:] == [(number, "failed") for number in range(1, 5)]
    assert ran.episodes["test_ends_well"].trajectory.turns[-1].content == "3"
