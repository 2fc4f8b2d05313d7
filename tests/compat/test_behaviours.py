"""What episodes are, on every pytest: fixture, marker, iterations, async tests, subtests."""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest

PYTEST = tuple(int(part) for part in version("pytest").split(".")[:2])

MARKED = """
import pytest

@pytest.mark.episode(scenario_id="refund", budgets={"max_turns": 1}, gate="advisory", agent="desk")
@pytest.mark.parametrize("tier", ["gold", "basic"])
def test_tiers(episode, tier):
    with episode.turn(f"I am {tier}") as turn:
        turn.tool_call("lookup", {"tier": tier}, result="found")
        turn.reply("Hi", tokens=7, cost_usd=0.25)
    episode.score("warmth", 0.5)

@pytest.mark.episode(budgets={"tool_calls": 0})
class TestDesk:
    def test_over_budget(self, episode):
        with episode.turn("Hello") as turn:
            turn.tool_call("lookup", {})
            turn.reply("Hi")

    def test_marked_alone(self): pass

def test_plain(): pass
"""


@pytest.fixture
def suite(suite):
    """These suites are about how tests run and end, and need no evidence."""
    return suite.without_evidence()


def test_marker_and_fixture_say_what_is_written_down(suite):
    suite.write(test_desk=MARKED)
    ran = suite.run()
    assert ran.status == 1, ran.output
    assert ran.outcomes == {
        "test_tiers[gold]": "passed",
        "test_tiers[basic]": "passed",
        "test_over_budget": "passed",
        "test_marked_alone": "passed",
    }
    assert ran.junit["test_over_budget"] == "failed"
    gold = next(e for e in ran.episodes if e["nodeid"].endswith("[gold]"))
    assert (gold["scenario_id"], gold["gate"], gold["agent"]) == ("refund", "advisory", "desk")
    assert (gold["file"], gold["line"]) == ("test_desk.py", 4)
    assert gold["budgets"]["max_turns"]["used"] == 1
    assert gold["trajectory"]["turns"][-1]["cost_usd"] == 0.25
    assert [score["name"] for score in gold["scores"]] == ["warmth"]


ENDS = """
import pytest

def test_passes(episode): pass
def test_fails(episode): assert "Hi" == "Hello", "no greeting"
def test_fails_by_hand(episode): pytest.fail("no answer")
def test_errors(episode): raise ConnectionError("refused")
def test_skips(episode): pytest.skip("no weather")
def test_xfails_by_hand(episode): pytest.xfail("known")

@pytest.mark.xfail(reason="known")
def test_expected(episode): assert False

@pytest.mark.xfail(reason="known", strict=True)
def test_unexpected(episode): pass

@pytest.fixture
def broken(): raise OSError("no database")

def test_setup_breaks(broken, episode): pass

@pytest.fixture
def leaky():
    yield
    raise OSError("cannot clean up")

def test_teardown_breaks(leaky, episode): pass
"""


def test_every_end_has_the_same_outcome_and_reason(suite):
    suite.write(test_ends=ENDS)
    ran = suite.run()
    assert {name: (ran.outcomes[name], ran.reasons[name]) for name in ran.outcomes} == {
        "test_passes": ("passed", None),
        "test_fails": ("failed", "no greeting"),
        "test_fails_by_hand": ("failed", "no answer"),
        "test_errors": ("error", "ConnectionError: refused (test_ends.py:7)"),
        "test_skips": ("skipped", "no weather"),
        "test_xfails_by_hand": ("skipped", "xfail: known"),
        "test_expected": ("skipped", "xfail: known"),
        "test_unexpected": ("failed", "[XPASS(strict)] known"),
        "test_setup_breaks": ("error", "OSError: no database (test_ends.py:18)"),
        "test_teardown_breaks": (
            "error",
            "in teardown: OSError: cannot clean up (test_ends.py:25)",
        ),
    }


def test_a_failed_assert_is_kept_with_its_place_and_pytest_s_introspection(suite):
    suite.write(
        test_sum="""
        def test_sum(episode):
            reply = "Hello"
            assert "refund" in reply
        """
    )
    (episode,) = suite.run().episodes
    (assertion,) = episode["assertions"]
    assert (assertion["name"], assertion["passed"]) == ('assert "refund" in reply', False)
    assert (assertion["file"], assertion["line"]) == ("test_sum.py", 4)
    assert "'refund' in 'Hello'" in assertion["reason"]


ITERATIONS = """
import pytest

@pytest.mark.parametrize("tier", ["gold", pytest.param("basic", marks=pytest.mark.episode(iterations=2))])
def test_tiers(episode, tier): pass

@pytest.mark.episode(iterations=3, min_passes=2)
class TestDesk:
    def test_one(self, episode): assert episode.iteration != 2

    @pytest.mark.episode(iterations=1, min_passes=1)
    def test_once(self): pass

@pytest.mark.episode(iterations=2)
async def test_async(episode): pass

def test_plain(): pass
"""


def test_iterations_are_tests_of_their_own(suite):
    suite.write(test_iterations=ITERATIONS)
    ran = suite.run("--aitest-iterations=2")
    assert ran.status == 1, ran.output
    assert sorted(ran.junit) == [
        "test_async[1-of-2]",
        "test_async[2-of-2]",
        "test_once",
        "test_one[1-of-3]",
        "test_one[2-of-3]",
        "test_one[3-of-3]",
        "test_plain",
        "test_tiers[basic-1-of-2]",
        "test_tiers[basic-2-of-2]",
        "test_tiers[gold-1-of-2]",
        "test_tiers[gold-2-of-2]",
    ]
    assert {(e["scenario_id"], e.get("iteration", 1)) for e in ran.episodes} >= {
        ("test_iterations.py::TestDesk::test_one", 1),
        ("test_iterations.py::TestDesk::test_one", 3),
        ("test_iterations.py::test_tiers[gold]", 2),
        ("test_iterations.py::test_tiers[basic]", 2),
    }


ASYNC = """
import asyncio
import contextvars
import pytest

loops = []

async def test_passes(episode):
    loops.append(asyncio.get_running_loop())
    with episode.turn("Hello") as turn:
        await asyncio.sleep(0)
        turn.reply("Hi")

@pytest.mark.episode
async def test_fails():
    await asyncio.sleep(0)
    assert 1 == 2

class TestDesk:
    async def test_checks(self, episode, tmp_path):
        assert tmp_path.exists()
        episode.check("polite", False)

@pytest.mark.parametrize("tier", ["gold"])
async def test_errors(episode, tier):
    raise ConnectionError(tier)

async def test_shares_the_loop(episode):
    assert loops == [asyncio.get_running_loop()]
"""


def test_async_episodes_need_no_other_plugin(suite):
    suite.write(test_async=ASYNC)
    ran = suite.run()
    assert ran.status == 1, ran.output
    assert ran.outcomes == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_checks": "failed",
        "test_errors[gold]": "error",
        "test_shares_the_loop": "passed",
    }


SUBTESTS: tuple[str, ...] = () if PYTEST >= (9, 0) else ("subtests",)
"""What gives the fixture `subtests`: pytest itself, or pytest-subtests before it did."""


def test_subtests_are_assertions_of_the_episode(suite):
    suite.write(
        test_sub="""
        def test_sub(episode, subtests):
            for number in range(3):
                with subtests.test("sum", number=number):
                    assert number != 1
            episode.check("went on", True)

        def test_broken(episode, subtests):
            with subtests.test("lookup"):
                raise ConnectionError("refused")
        """
    )
    ran = suite.run(plugins=SUBTESTS)
    assert ran.outcomes == {"test_sub": "failed", "test_broken": "error"}
    (episode,) = (e for e in ran.episodes if e["outcome"] == "failed")
    found = [(a["name"], a["passed"]) for a in episode["assertions"]]
    assert found == [("sum (number=1)", False), ("went on", True)]


UNITTEST = """
import unittest
import pytest

@pytest.mark.episode
class TestOld(unittest.TestCase):
    def test_passes(self): self.assertEqual(1, 1)
    def test_fails(self): self.assertEqual(1, 2)
"""


def test_methods_of_unittest_are_episodes(suite):
    suite.write(test_old=UNITTEST)
    assert suite.run().outcomes == {"test_passes": "passed", "test_fails": "failed"}


UNRELATED = """
import unittest
import warnings
import pytest

def test_passes(): pass

@pytest.mark.parametrize("n", [1, 2])
def test_fails(n): assert n == 1

def test_warns(): warnings.warn("mine")

@pytest.fixture
def broken(): raise OSError("no database")

def test_errors(broken): pass

@pytest.mark.skip
def test_skipped(): pass

@pytest.mark.xfail
def test_expected(): assert False

{ASYNC}

class TestOld(unittest.TestCase):
    def test_old(self): self.assertEqual(1, 2)
"""


@pytest.mark.parametrize("arguments", [(), ("--tb=short",), ("-v", "--strict-markers")], ids=str)
def test_a_suite_without_episodes_says_the_same_with_us_and_without(suite, arguments):
    # Of an async test that nobody runs, older pytest shows a warning's way through all hooks.
    text = "async def test_async(): pass" if PYTEST >= (8, 4) else "def test_sync(): pass"
    suite.write(test_unrelated=UNRELATED.replace("{ASYNC}", text))
    having = suite.run("--episode-report-dir=", *arguments)
    without = suite.run(*arguments, without_ours=True)
    assert having.status == without.status == 1
    assert having.junit == without.junit
    assert what_was_said(having) == what_was_said(without)


def what_was_said(ran):
    """Leave out the seconds, and the names of the plugins."""
    lines = re.sub(r" in \d+\.\d+s", "", ran.output).splitlines()
    return [line for line in lines if not line.startswith("plugins: ")]


def test_the_markers_are_known_to_strict_suites(suite):
    suite.write(test_desk=MARKED)
    ran = suite.run("--strict-markers", "--strict-config", "-k", "tiers")
    assert ran.status == 0, ran.output
