"""Evaluations beside other tests, with fixtures, and their results in Python."""

from __future__ import annotations

import pytest

from ci_agent_eval import EvalResults
from ci_agent_eval.contract.evaluation import build_evaluation_report
from ci_agent_eval.errors import InputError
from tests.plugin.conftest import SCRIPTED_CLOCK
from tests.plugin.evaluations.rig import SHARED, recorded

# Evaluations beside strict tests, other plugins, coverage, and in any order.


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


# Assertions in setup and teardown, of one test and of several.


def test_what_several_tests_share_is_nobody_s_assertion(measured):
    ran = measured(SHARED)
    ran.result.assert_outcomes(passed=2, errors=2)
    assert recorded(ran.episodes["test_a"]) == [(13, True, "shared")]
    assert recorded(ran.episodes["test_b"]) == [(14, True, "shared")]
    for name in ("test_c", "test_d"):
        episode = ran.episodes[name]
        assert (episode.outcome, episode.assertions) == ("error", ())
        assert "broken for all" in episode.reason


@pytest.mark.parametrize("kind", ["class", "session"])
def test_a_shared_teardown_that_breaks_fails_the_run_and_no_evaluation(measured, kind):
    ran = measured(f"""
        import pytest

        @pytest.fixture(scope="{kind}")
        def shared():
            yield
            assert 0, "left open"

        @pytest.fixture
        def own():
            yield
            raise OSError

        def test_c(own): assert 1

        class TestOf:
            def test_a(self, shared): assert 1
            def test_b(self, shared): assert 1
    """)
    ran.result.assert_outcomes(passed=3, errors=2)
    assert ran.result.ret == 1
    ran.result.stdout.fnmatch_lines(["*AssertionError: left open*"])
    outcomes = [ran.episodes[f"test_{name}"].outcome for name in "abc"]
    assert outcomes == ["passed", "passed", "error"]


def test_asserts_of_teardown_count(measured):
    ran = measured("""
        import pytest

        @pytest.fixture
        def tidy():
            yield
            assert 1 == 3

        def test_passed(tidy): assert 1
        def test_failed(tidy): assert 0
        def test_error(tidy): raise OSError
    """)
    ran.result.assert_outcomes(passed=2, failed=1)
    passed, failed, error = (ran.episodes[f"test_{name}"] for name in ("passed", "failed", "error"))
    assert (passed.outcome, passed.reason) == ("failed", "in teardown failed: 1 == 3")
    assert failed.reason == "failed: 0; in teardown failed: 1 == 3"
    assert (error.outcome, error.reason) == ("error", "OSError (chat_eval.py:10)")
    assert recorded(error) == [(6, False, "1 == 3")]
    assert error.assertions[0].severity == "warning", "an error came before it"


def test_foreign_failures_in_setup_and_teardown_are_errors(measured):
    ran = measured("""
        import pytest

        @pytest.fixture
        def before():
            pytest.fail("no agent")

        @pytest.fixture
        def after():
            yield
            raise AssertionError("not closed")

        def test_before(before): pass
        def test_after(after): assert 1
    """)
    ran.result.assert_outcomes(passed=1, errors=2)
    assert {e.outcome for e in ran.results.episodes} == {"error"}


# `EvalResults.generate_report()`: of the session, and of a report folder.


CONFTEST = """
    from ci_agent_eval import EvalResults

    def pytest_sessionfinish(session):
        if hasattr(session.config, "workerinput"):
            return
        report = EvalResults.generateReport()
        print("passed:", report.passed_conversations, "of", report.total_conversations)
        print("rates:", report.pass_rate, report.average_score)
        print("names:", [one.name for one in report.conversations])
"""
SUITE = """
    import pytest

    @pytest.mark.episode(scenario_id="Create")
    def test_create():
        assert "A" in "A -> B"
        assert "C" in "A -> B"

    @pytest.mark.episode(scenario_id="Extend")
    def test_extend():
        assert "B" in "A -> B"
"""


@pytest.mark.parametrize("options", [(), ("-n2",)])
def test_the_report_of_a_session_when_it_has_ended(pytester, options):
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(diagram_eval=SUITE)
    result = pytester.runpytest_inprocess("-s", "--eval", *options)
    result.stdout.fnmatch_lines(
        ["*passed: 1 of 2", "rates: 50.0 0.75", "names: ?'Create', 'Extend'?"]
    )


def test_the_report_of_a_folder(pytester):
    pytester.makepyfile(diagram_eval=SUITE)
    pytester.runpytest_inprocess("--eval", "--episode-report-dir=out")
    report = EvalResults.generate_report(pytester.path / "out")
    assert (report.total_conversations, report.pass_rate, report.average_score) == (2, 50.0, 0.75)
    assert report.model_dump(by_alias=True)["passedConversations"] == 1


def test_a_folder_without_a_report_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"eval-results\.json: cannot be read \(No such file"):
        EvalResults.generate_report(tmp_path)
    (tmp_path / "eval-results.json").write_text("{}")
    with pytest.raises(InputError, match=r"eval-results\.json: totalConversations: is required; "):
        EvalResults.generate_report(tmp_path)


def test_a_session_without_evaluations_has_no_report(pytester):
    pytester.makepyfile(
        """
        import pytest
        from ci_agent_eval import EvalResults

        def test_none():
            EvalResults.generate_report()
        """
    )
    result = pytester.runpytest_inprocess()
    result.stdout.fnmatch_lines(["*EvalResults.generate_report(): no pytest session with eval*"])


def test_a_session_does_not_have_the_report_of_an_earlier_one(pytester):
    pytester.makepyfile(
        diagram_eval=SUITE,
        test_plain="def test_plain(): pass",
        main="""
            import pytest
            from ci_agent_eval import EvalResults

            pytest.main(["--eval", "diagram_eval.py"])
            print("first:", EvalResults.generate_report().total_conversations)
            pytest.main(["test_plain.py"])
            EvalResults.generate_report()
        """,
    )
    result = pytester.runpython("main.py")
    result.stdout.fnmatch_lines(["first: 2"])
    result.stderr.fnmatch_lines(["*InputError: *no pytest session with evaluations*"])
