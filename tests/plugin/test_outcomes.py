"""Budgets, outcomes and what the terminal says of them."""

from __future__ import annotations

from ci_agent_eval.analysis.loaded_results import build_episode_record
from tests.plugin.conftest import timed_out

# How each end of a test becomes the outcome of its episode.


# test_times_out ends the timer of pytest-timeout itself, so that no machine is too slow.
SUITE = """\
import signal, pytest

pytestmark = pytest.mark.episode(evidence="none")

def test_passes(): pass

def test_fails(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
        answer = 30
        assert answer == 45, "wrong sum"

def test_fails_by_hand():
    pytest.fail("no answer")

def test_fails_in_a_group():
    raise ExceptionGroup("checks", [AssertionError("a"), AssertionError("b")])

def test_errors(episode):
    with episode.turn("Hello") as turn:
        turn.tool_call("lookup")
        raise ConnectionError("refused by 10.0.0.1")

def test_exits():
    raise SystemExit(3)

def test_mixed_group():
    raise ExceptionGroup("checks", [AssertionError("a"), KeyError("b")])

@pytest.fixture
def broken():
    raise OSError("no database")

def test_setup_breaks(broken): pass

@pytest.fixture
def broken_later():
    yield
    raise OSError("cannot clean up")

def test_teardown_breaks(broken_later): pass

def test_fails_then_teardown_breaks(broken_later):
    assert False

@pytest.mark.skip(reason="not today")
def test_skipped(): pass

def test_skips_itself():
    pytest.skip("no weather")

@pytest.mark.xfail(reason="known")
def test_expected():
    assert False

@pytest.mark.xfail(reason="known")
def test_unexpected(): pass

@pytest.mark.xfail(reason="known", strict=True)
def test_unexpected_strict(): pass

@pytest.mark.timeout(100)
def test_times_out(episode):
    with episode.turn("Hello") as turn:
        turn.tool_call("lookup")
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while True: pass

def test_checks(episode):
    episode.check("polite", True)
    episode.check("asks first", False, "did not ask")
    episode.check("confirms", False)

def test_over_budget(episode):
    episode.budget("emails", 1, used=2)

def test_over_soft_budget(episode):
    episode.budget("emails", 1, used=2, hard=False)

@pytest.mark.xfail
def test_expected_check(episode):
    episode.check("polite", False)

def test_late_check(episode, request):
    request.addfinalizer(lambda: episode.check("late", True))

@pytest.fixture
def slow():
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    while True: pass

@pytest.mark.timeout(100)
def test_setup_times_out(slow): pass
"""

EXPECTED = {
    "test_passes": ("passed", None),
    "test_fails": ("failed", "wrong sum"),
    "test_fails_by_hand": ("failed", "no answer"),
    "test_fails_in_a_group": ("failed", "checks (2 sub-exceptions)"),
    "test_errors": ("error", "ConnectionError: refused by 10.0.0.1 (test_suite.py:22)"),
    "test_exits": ("error", "SystemExit: 3 (test_suite.py:25)"),
    "test_mixed_group": (
        "failed",
        "a; then ExceptionGroup: checks (2 sub-exceptions) (test_suite.py:28)",
    ),
    "test_setup_breaks": ("error", "OSError: no database (test_suite.py:32)"),
    "test_teardown_breaks": ("error", "in teardown: OSError: cannot clean up (test_suite.py:39)"),
    "test_fails_then_teardown_breaks": (
        "failed",
        "assert False; then in teardown: OSError: cannot clean up (test_suite.py:39)",
    ),
    "test_skipped": ("skipped", "not today"),
    "test_skips_itself": ("skipped", "no weather"),
    "test_expected": ("skipped", "xfail: known"),
    "test_unexpected": ("passed", None),
    "test_unexpected_strict": ("failed", "[XPASS(strict)] known"),
    "test_times_out": ("failed", timed_out(100.0)),
    "test_checks": ("failed", "failed: asks first; confirms"),
    "test_over_budget": ("passed", None),
    "test_over_soft_budget": ("passed", None),
    "test_expected_check": ("skipped", "xfail: "),
    "test_late_check": (
        "error",
        (
            "in teardown: InputError: episode 'test_suite.py::test_late_check' has ended: "
            "record the check 'late' before the test returns "
            "(test_suite.py:85)"
        ),
    ),
    "test_setup_times_out": ("error", f"Failed: {timed_out(100.0)} (test_suite.py:90)"),
}


def test_every_end_has_its_outcome_and_is_told(suite):
    suite.write(SUITE)
    ran = suite.run("--timeout-method=signal")
    found = {name: (e.outcome, e.reason) for name, e in ran.episodes.items()}
    assert found == EXPECTED
    ran.result.assert_outcomes(passed=4, failed=11, errors=5, skipped=2, xfailed=2, xpassed=1)
    # Each is started once; a broken teardown is a second end.
    assert [line.event for line in ran.journal].count("started") == len(EXPECTED)
    assert [line.event for line in ran.journal].count("ended") == len(EXPECTED) + 3
    expect_a_failed_assert_as_an_assertion_with_its_place(ran)
    expect_what_was_said_before_the_end(ran)
    expect_checks_and_hard_budgets_by_name_and_place(ran)


def expect_a_failed_assert_as_an_assertion_with_its_place(ran):
    (assertion,) = ran.episodes["test_fails"].assertions
    assert assertion.name == 'assert answer == 45, "wrong sum"'
    assert assertion.reason is not None
    assert assertion.reason.splitlines() == ["wrong sum", "assert 30 == 45"]
    line = SUITE.splitlines().index('        assert answer == 45, "wrong sum"') + 1
    assert (assertion.file, assertion.line) == ("test_suite.py", line)


def expect_what_was_said_before_the_end(ran):
    for name in ("test_errors", "test_times_out"):
        trajectory = ran.episodes[name].trajectory
        assert trajectory is not None, name
        assert [call.name for call in trajectory.tool_calls()] == ["lookup"], name


def expect_checks_and_hard_budgets_by_name_and_place(ran):
    line = SUITE.splitlines().index('    episode.check("asks first", False, "did not ask")') + 1
    ran.result.stdout.fnmatch_lines(
        [
            "episode 'test_suite.py::test_checks': 2 problems",
            f"  test_suite.py:{line}: asks first: did not ask",
            f"  test_suite.py:{line + 1}: confirms",
            "episode 'test_suite.py::test_over_budget': budget emails: 2, limit 1 (hard)",
        ]
    )
    assert [v.observed for v in ran.episodes["test_over_budget"].violations] == [2]


AFTER_A_CHECK = """\
import pytest

def test_skips(episode):
    episode.check("polite", False, "was rude")
    pytest.skip("no weather")

def test_raises(episode):
    episode.check("polite", False)
    raise ConnectionError("refused")

def test_asserts(episode):
    episode.check("polite", False)
    assert False, "no"

def test_only_warned(episode):
    episode.check("polite", False, severity="warning")
    pytest.skip("no weather")

@pytest.mark.xfail(reason="known")
def test_expected(episode):
    episode.check("polite", False)
    raise ConnectionError("refused")

def test_expects_it(episode):
    episode.check("polite", False)
    pytest.xfail("known")
"""


def test_a_failed_check_fails_whatever_comes_after_it(suite):
    suite.write(AFTER_A_CHECK)
    ran = suite.run()
    # As read back from the file: the contract takes no failed check for anything else.
    assert {name: (e.outcome, e.reason) for name, e in ran.episodes.items()} == {
        "test_skips": ("failed", "failed: polite; then skipped: no weather"),
        "test_raises": (
            "failed",
            "failed: polite; then ConnectionError: refused (test_suite.py:9)",
        ),
        "test_asserts": ("failed", "failed: polite; then no"),
        "test_only_warned": ("skipped", "no weather"),
        "test_expected": ("skipped", "xfail: known"),
        "test_expects_it": ("skipped", "xfail: known"),
    }
    ran.result.assert_outcomes(failed=3, skipped=1, xfailed=2)
    (kept,) = ran.episodes["test_expected"].assertions
    assert (kept.name, kept.passed, kept.severity) == ("polite", False, "warning")
    outcomes = {name: p["agent_eval.outcome"] for name, p in ran.properties.items()}
    assert outcomes == {name: e.outcome for name, e in ran.episodes.items()}
    ran.result.stdout.fnmatch_lines(
        ["  test_suite.py:4: polite: was rude", "  then skipped: no weather"]
    )


def test_an_error_says_where_it_was_raised_and_called(suite, pytester):
    pytester.makepyfile(agent="def answer(orders):\n    return orders['x']\n")
    suite.write(
        "import agent, json, pytest\n"
        "@pytest.fixture\n"
        "def orders():\n"
        "    return agent.answer({})\n"
        "def test_agent(episode):\n"
        "    agent.answer({})\n"
        "def test_library(episode):\n"
        "    json.loads('{')\n"
        "def test_setup(episode, orders): pass\n"
    )
    reasons = {name: e.reason for name, e in suite.run().episodes.items()}
    assert reasons["test_agent"] == "KeyError: 'x' (agent.py:2, called at test_suite.py:6)"
    assert reasons["test_setup"] == "KeyError: 'x' (agent.py:2, called at test_suite.py:4)"
    assert str(reasons["test_library"]).endswith(" (test_suite.py:8)")


SWALLOWING = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    for _ in range(3):  # repeats a test that is named so, and swallows what is left
        try:
            if _ == 0:
                yield
            elif "repeated" in item.name:
                item.runtest()
            return
        except (Exception, pytest.fail.Exception):
            pass
"""


def test_a_hook_that_swallows_an_exception_makes_no_test_pass(suite):
    suite.without_evidence().write(
        "import pytest\nruns = []\n"
        "def test_asserts(episode): assert episode.turns\n"
        "def test_fails(episode): pytest.fail('no')\n"
        "async def test_raises(episode): raise KeyError('x')\n"
        "def test_repeated(episode):\n    runs.append(1)\n    assert len(runs) == 2\n"
        "def test_skips(episode): pytest.skip('later')\n",
        conftest=SWALLOWING,
    )
    found = {name: e.outcome for name, e in suite.run().episodes.items()}
    expected = "failed", "failed", "error", "passed", "skipped"
    assert list(found.values()) == list(expected), found


# Budgets of episodes that never took a turn: not measured, and not taken for zero.


SUITE_BUDGETS = """
import pytest

LIMITS = {"max_turns": 2, "tool_calls": 3, "latency_ms": 100}
pytestmark = pytest.mark.episode(budgets=LIMITS, evidence="none")

def test_no_fixture(): pass

def test_unused(episode): episode.check("fine", True)

def test_skips(episode): pytest.skip("not today")

def test_breaks(episode): raise KeyError("x")

def test_breaks_in_its_turn(episode):
    with episode.turn("Hello"):
        raise KeyError("x")
"""

NOT_MEASURED = [("max_turns", None), ("tool_calls", None), ("latency_ms", None)]


def test_a_budget_is_owed_by_those_that_passed_alone(suite):
    suite.write(SUITE_BUDGETS)
    ran = suite.run()
    for name in ("test_no_fixture", "test_unused"):
        violations = ran.episodes[name].violations
        assert [(v.budget, v.observed) for v in violations] == NOT_MEASURED
    for name in ("test_skips", "test_breaks", "test_breaks_in_its_turn"):
        assert ran.episodes[name].violations == ()
        assert build_episode_record(ran.episodes[name]).violations == ()
        assert f"BUDGET test_suite.py::{name}:" not in ran.result.stdout.str()
    assert "BUDGET test_suite.py::test_unused:" in ran.result.stdout.str()


STRICTER = """
import pytest

pytestmark = pytest.mark.episode(
    budgets={"tool_calls": 1, "latency_ms": {"p95": None, "limit": 100}, "custom": {"emails": 1}},
    evidence="none",
)

def test_worst_record(episode):
    episode.budget("pages", limit=1, used=3)
    episode.budget("pages", limit=1, used=0)
    episode.budget("pages", limit=9)
def test_measured_later(episode):
    episode.budget("emails", limit=1, used=0)
def test_looser_limit(episode):
    episode.budget("tool_calls", limit=9, hard=False)
    episode.budget("emails", limit=9, used=3)
def test_stricter_limit(episode):
    episode.budget("tool_calls", limit=0)
    episode.budget("emails", limit=0.5, used=0)
    episode.budget("latency_ms", limit=50)
def test_other_statistic(episode): episode.budget("latency_ms", limit=200, statistic="max")
def test_returned(episode):
    from ci_agent_eval import Episode
    episode.budget("emails", limit=1, used=3)
    return Episode(scenario_id="x", budgets={"custom": {"emails": {"used": 0, "limit": 9}}})
"""


def test_a_budget_set_again_only_becomes_stricter(suite):
    suite.write(STRICTER)
    episodes = suite.run("-W", "ignore").episodes
    found = {
        name: {key: (b.limit, b.used, b.hard) for key, b in one.budgets.iter_named()}
        for name, one in episodes.items()
    }
    assert found["test_worst_record"]["pages"] == (1, 3, True)
    assert found["test_measured_later"]["emails"] == (1, 0, True)
    assert found["test_looser_limit"]["tool_calls"] == (1, None, True)
    assert found["test_looser_limit"]["emails"] == (1, 3, True)
    assert [limit for limit, *_ in found["test_stricter_limit"].values()] == [0, 50, 0.5]
    assert found["test_returned"]["emails"] == (1, 3, True)
    assert (
        "budget 'latency_ms': it is already set for p95" in episodes["test_other_statistic"].reason
    )


# The terminal summary: what failed first, then budgets, then totals.


SUITE_TERMINAL = """
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
    suite.write(SUITE_TERMINAL)
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
    suite.write(SUITE_TERMINAL)
    result = pytester.runpytest_inprocess("-q")
    result.stdout.fnmatch_lines(["FAILED greeting: polite (test_suite.py:12) and 1 more"])
