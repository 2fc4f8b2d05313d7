"""Evaluations beside strict tests, other plugins, coverage, and in any order."""

from __future__ import annotations

from ci_agent_eval.contract.evaluation import build_evaluation_report
from tests.plugin.conftest import SCRIPTED_CLOCK
from tests.plugin.evaluations.rig import SHARED, recorded


def test_outside_of_evaluations_nothing_is_recorded(suite):
    """A helper of an evaluation that a strict episode calls, and the next test after one."""
    suite.write("def test_strict(): assert 1")
    suite.pytester.makepyfile(
        chat_eval="""
        def test_a(): assert 0
        """,
        test_after="""
        from ci_agent_eval.recording.active_episode import get_active_episode

        def test_none(): assert get_active_episode() is None
        def test_some(episode): assert get_active_episode().mode == "strict"
        """,
    )
    ran = suite.without_evidence().run("--eval")
    ran.result.assert_outcomes(passed=4)


def test_a_tuple_warns_as_pytest_warns(suite):
    suite.pytester.makepyfile(chat_eval="def test_a():\n    assert (1 == 2, 'always true')\n")
    warned = suite.run_apart("chat_eval.py")
    warned.result.assert_outcomes(passed=1, warnings=1)
    warned.result.stdout.fnmatch_lines(
        ["*chat_eval.py:2: PytestAssertRewriteWarning: assertion is always true*"]
    )
    assert recorded(warned.episodes["test_a"]) == [(2, True, "(1 == 2, 'always true')")]


def test_what_hypothesis_runs_again_and_again_is_one_measurement(measured, monkeypatch):
    monkeypatch.delenv("PYTEST_ADDOPTS")
    ran = measured(
        """
        import pytest
        from ci_agent_eval import check
        from hypothesis import given, settings, strategies as st

        @settings(database=None)
        @given(st.integers())
        def test_all(n):
            assert n < 30

        @settings(database=None, max_examples=5)
        @given(st.integers())
        def test_each(n):
            assert isinstance(n, int)

        @settings(database=None, max_examples=5)
        @given(st.integers())
        def test_nothing(n): pass

        @settings(database=None, max_examples=5)
        @given(st.integers())
        def test_raises(n):
            with pytest.raises(TypeError): len(n)

        @settings(database=None)
        @given(st.integers())
        def test_raises_not(n):
            with pytest.raises(TypeError): len("n")

        @settings(database=None)
        @given(st.integers())
        def test_scored(n):
            check(n < 30, "small")

        @settings(database=None)
        @given(st.integers())
        def test_breaks(n):
            assert n == n
            raise OSError
    """,
        "-p",
        "no:randomly",
    )
    ran.result.assert_outcomes(passed=5, failed=2)
    report = build_evaluation_report(ran.results.episodes)
    scores = {c.name.partition("::")[2]: (c.passed, c.score) for c in report.conversations}
    assert scores == {
        "test_all": (False, 0),
        "test_each": (True, 1),
        "test_nothing": (False, 0),
        "test_raises": (True, 1),
        "test_raises_not": (False, 0),
        "test_scored": (False, 0),
        "test_breaks": (False, 0),
    }
    # One assertion each, however many examples there were.
    (found,) = ran.episodes["test_all"].assertions
    assert (found.passed, found.name) == (False, "assert n < 30")
    assert found.reason.startswith("assert 30 < 30")
    assert recorded(ran.episodes["test_each"]) == [(10, True, "holds for every example")]
    assert len(ran.episodes["test_scored"].assertions) == 1
    nothing = ran.episodes["test_nothing"]
    assert (nothing.outcome, nothing.assertions) == ("error", ())
    assert nothing.reason.startswith("it asserted nothing")
    assert ran.episodes["test_breaks"].outcome == "error"


LATE = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call":
        report.outcome, report.longrepr = "failed", "soft"
        try:
            raise AssertionError("soft")
        except AssertionError:
            call.excinfo = pytest.ExceptionInfo.from_current()
    return report
"""


def test_what_another_plugin_fails_the_test_over_lowers_the_score(suite):
    suite.pytester.makepyfile(chat_eval="def test_a(): assert 1", conftest=LATE)
    ran = suite.run("chat_eval.py")
    episode = ran.episodes["test_a"]
    assert (episode.outcome, [a.passed for a in episode.assertions]) == ("failed", [True, False])
    (found,) = build_evaluation_report(ran.results.episodes).conversations
    assert found.score == 0.5


STRICT = """
import pytest

@pytest.mark.episode(scenario_id="shared", budgets={"tool_calls": 2, "latency_ms": 150})
@pytest.mark.parametrize("tier", ["gold", "basic", "\u00fcber", "a::b", "none"])
def test_tiers(episode, tier):
    with episode.turn(f"I am {tier}") as turn:
        turn.tool_call("lookup", {"tier": tier, "all": {"b", "a"}}, result=object())
        turn.reply("Hi", tokens=7, cost_usd=0.1)
    episode.check("known", tier != "none", "who?")

def test_fails(episode):
    assert [object] == {"a": object()}

def test_errors(episode):
    raise ConnectionError(object())

@pytest.mark.skip(reason="later")
def test_skipped(episode): pass

class TestDesk:
    async def test_async(self, episode): pass
"""

SHUFFLED = (
    SCRIPTED_CLOCK
    + """
import os
import random

def pytest_collection_modifyitems(items):
    random.Random(os.environ["SHUFFLE"]).shuffle(items)
"""
)


def test_workers_order_and_hash_seed_do_not_show(suite, monkeypatch):
    suite.write(STRICT, conftest=SHUFFLED)
    suite.pytester.makepyfile(
        a_eval="""
        import pytest

        NAMES = {"search", "refund", "ask", "pay"}

        @pytest.fixture(scope="module")
        def shared():
            assert NAMES
            return object()

        @pytest.mark.parametrize("tier", ["gold", "basic"])
        def test_tiers(tier, shared):
            assert [1, 2, tier] == [2, 3]
            assert shared is None
            for name in sorted(NAMES):
                assert name in ("search", "ask")
        """,
        b_eval=SHARED,
    )
    strict, measured = set(), set()
    monkeypatch.delenv("CI", raising=False)  # there pytest explains more
    for number, workers in enumerate(("-n0", "-n2", "-n0")):
        monkeypatch.setenv("SHUFFLE", str(number))
        monkeypatch.setenv("PYTHONHASHSEED", str(number))
        ran = suite.run_apart("--eval", workers)
        measured.add((ran.folder / "eval-results.json").read_bytes())
        strict.add((ran.folder / "results.json").read_bytes())
    (results,) = strict
    assert results.count(b'"scenario_id"') == 6 + 9
    assert len(measured) == 1
