"""How each end of a test becomes the outcome of its episode."""

from __future__ import annotations

from tests.plugin.conftest import timed_out

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
