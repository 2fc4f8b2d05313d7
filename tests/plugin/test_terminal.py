"""The terminal summary: what failed first, then budgets, then totals."""

from __future__ import annotations

SUITE = """
import pytest

@pytest.mark.episode(scenario_id="refund", budgets={"tool_calls": 1, "cost_usd": 1})
def test_over(episode):
    with episode.turn("Hello") as turn:
        turn.tool_call("a")
        turn.tool_call("b")
        turn.reply("Hi", cost_usd=0.0125)

@pytest.mark.episode(scenario_id="greeting")
def test_failing(episode):
    episode.check("polite", False, "said \\x1b[31mno")
    episode.check("short", False)

@pytest.mark.episode(scenario_id="red \\x1b[31m alert")
def test_errors(episode):
    raise ConnectionError("refused\\nsecond line")

@pytest.mark.episode(budgets={"tool_calls": 1})
def test_skipped():
    import pytest
    pytest.skip()

@pytest.mark.episode(evidence="none")
def test_fine(episode): pass
"""


def test_the_summary_is_short_and_in_order(suite):
    suite.write(SUITE)
    ran = suite.run()
    lines = ran.result.outlines
    start = next(i for i, line in enumerate(lines) if line.startswith("FAILED "))
    assert lines[start : start + 4] == [
        "FAILED greeting: polite (test_suite.py:12) and 1 more",
        "ERROR  red \N{REPLACEMENT CHARACTER}[31m alert: ConnectionError: refused (test_suite.py:17)",
        "BUDGET refund: tool_calls: 2, limit 1 (hard)",
        (
            "5 episodes: 1 passed, 1 failed, 1 over a hard budget, 1 errored, 1 skipped; "
            "1 budget violation; $0.0125"
        ),
    ]


def test_it_is_there_without_a_report_directory(suite, pytester):
    suite.write(SUITE)
    result = pytester.runpytest_inprocess("-q")
    result.stdout.fnmatch_lines(["FAILED greeting: polite (test_suite.py:12) and 1 more"])
