"""What ends an evaluation, what fails its test, and what does neither."""

from __future__ import annotations

import json
import sys

import pytest

from ci_agent_eval.contract.evaluation import evaluation_report
from tests.plugin.test_same_bytes import SHUFFLED


@pytest.fixture
def measured(suite):
    """Run an evaluation of these tests."""

    def run(tests, *arguments):
        suite.pytester.makepyfile(chat_eval=tests)
        return suite.run("chat_eval.py", "-W", "error", *arguments)

    return run


def recorded(episode):
    return [(a.line, a.passed, a.name) for a in episode.assertions]


def test_an_exception_ends_it_fails_the_test_and_keeps_what_was_asserted(measured):
    ran = measured("""
        import pytest

        def connect():
            raise ConnectionError("refused")

        def test_errs():
            assert 1 == 2
            connect()
            assert 0

        def test_goes_on():
            assert 1
    """)
    ran.result.assert_outcomes(failed=1, passed=1)
    assert ran.result.ret == 1
    errs = ran.episodes["test_errs"]
    assert (errs.outcome, recorded(errs)) == ("error", [(7, False, "1 == 2")])
    assert errs.reason == "ConnectionError: refused (chat_eval.py:4, called at chat_eval.py:8)"
    assert ran.episodes["test_goes_on"].outcome == "passed"


@pytest.mark.parametrize("mark", ["", "@pytest.mark.episode(gate='required')"])
def test_one_that_asserts_nothing_has_measured_nothing(measured, mark):
    ran = measured(f"""
        import pytest

        {mark}
        def test_never_reached():
            for call in []:
                assert call

        {mark}
        def test_empty(): pass

        {mark}
        def test_one(): assert 1

        {mark}
        class TestOf:
            @pytest.fixture(autouse=True)
            def ready(self): assert 1
            def test_in_setup(self): pass
    """)
    ran.result.assert_outcomes(passed=2, failed=2)
    assert ran.result.ret == 1
    for name in ("test_never_reached", "test_empty"):
        episode = ran.episodes[name]
        assert (episode.outcome, episode.assertions) == ("error", ())
        assert episode.reason.startswith("it asserted nothing, so nothing was measured")
    report = evaluation_report(ran.results.episodes)
    assert (report.total_conversations, report.passed_conversations) == (4, 2)
    ran.result.stdout.fnmatch_lines(
        ["4 conversations: 2 passed (50.0 %), average score 1.00; 2 ended in an error, *"]
    )


def test_hard_budgets_fail_no_test_and_no_evaluation_passes_over_one(measured):
    ran = measured("""
        def test_long(episode):
            with episode.turn("hi") as turn:
                turn.tool_call("search")
                turn.reply("done")
            episode.budget("tool_calls", 0)
            episode.check("polite", False, "rude")
            assert 1
    """)
    ran.result.assert_outcomes(passed=1)
    episode = ran.episodes["test_long"]
    assert not episode.is_passing()
    assert [(v.budget, v.hard) for v in episode.violations] == [("tool_calls", True)]
    assert recorded(episode) == [(6, False, "polite"), (7, True, "1")]
    assert (episode.outcome, episode.reason) == ("failed", "failed: polite")


def test_a_skip(measured):
    ran = measured("""
        import pytest

        def test_before():
            pytest.skip("no key")

        def test_after_a_pass():
            assert 1
            pytest.skip("no key")

        def test_after_a_failure():
            assert 0
            pytest.skip("no key")

        @pytest.fixture
        def unavailable():
            assert 0
            pytest.skip("no server")

        def test_in_setup(unavailable): pass
    """)
    ran.result.assert_outcomes(skipped=3, passed=1)
    assert ran.episodes["test_before"].outcome == "skipped"
    assert ran.episodes["test_after_a_pass"].outcome == "skipped"
    after = ran.episodes["test_after_a_failure"]
    assert (after.outcome, after.reason) == ("failed", "failed: 0; then skipped: no key")
    in_setup = ran.episodes["test_in_setup"]
    assert (in_setup.outcome, recorded(in_setup)) == ("failed", [(16, False, "0")])
    assert in_setup.reason == "no server; then in setup failed: 0"


def test_an_xfail_is_one_where_an_assertion_failed(measured):
    ran = measured("""
        import pytest

        @pytest.mark.xfail(reason="known")
        def test_fails():
            assert 0
            assert 1

        @pytest.mark.xfail(raises=AssertionError, strict=True)
        def test_fails_so():
            assert 0

        @pytest.mark.xfail(strict=True)
        def test_foreign():
            raise AssertionError("by hand")

        @pytest.mark.xfail(strict=True)
        def test_passes():
            assert 1

        @pytest.mark.xfail(False, reason="not here")
        def test_not_expected():
            assert 0

        def test_said_late(request):
            request.applymarker(pytest.mark.xfail)
            assert 0

        def test_called():
            assert 0
            pytest.xfail("half of it")
    """)
    ran.result.assert_outcomes(xfailed=4, failed=1, passed=2)
    fails = ran.episodes["test_fails"]
    assert (fails.outcome, fails.reason) == ("skipped", "xfail: known")
    assert [(a.passed, a.severity) for a in fails.assertions] == [
        (False, "warning"),
        (True, "error"),
    ]
    assert ran.episodes["test_passes"].outcome == "failed"
    assert ran.episodes["test_not_expected"].outcome == "failed"
    assert ran.episodes["test_foreign"].outcome == "skipped"
    called = ran.episodes["test_called"]
    assert (called.outcome, called.reason) == (
        "failed",
        "failed: 0; then skipped: xfail: half of it",
    )


def test_runxfail_measures_all_the_same(measured):
    ran = measured(
        """
        import pytest

        @pytest.mark.xfail
        def test_fails():
            assert 0
    """,
        "--runxfail",
    )
    ran.result.assert_outcomes(passed=1)
    assert ran.episodes["test_fails"].outcome == "failed"


@pytest.mark.parametrize("option", ["-x", "--maxfail=1"])
def test_failed_assertions_stop_no_run_and_errors_do(measured, option):
    ran = measured(
        """
        def test_a(): assert 0
        def test_b(): raise AssertionError
        def test_c(subtests):
            with subtests.test(): raise AssertionError
        def test_d(): raise OSError
        def test_e(): assert 0
    """,
        option,
    )
    assert ran.result.parseoutcomes()["failed"] == 1
    assert sorted(ran.episodes) == ["test_a", "test_b", "test_c", "test_d"]


def test_the_debugger_opens_on_errors_alone(suite):
    suite.pytester.makepyfile(
        chat_eval="""
        import unittest

        def test_a(): assert 0
        def test_b(): raise AssertionError("by hand")
        def test_c(subtests):
            with subtests.test(): raise AssertionError("in a subtest")
        class TestCase(unittest.TestCase):
            def test_d(self): self.assertEqual(1, 2)
        def test_e(): raise OSError("here")
    """
    )
    suite.pytester.makeconftest("""
        def pytest_exception_interact(node, call, report):
            print(f"stops at {node.name}: {call.excinfo.value}")
    """)
    ran = suite.run("chat_eval.py", "-s")
    said = [line.lstrip(".") for line in ran.result.outlines if "stops at" in line]
    assert [line[line.index("stops at") :] for line in said] == ["stops at test_e: here"]


def test_pdb_opens_in_strict_mode(suite):
    suite.pytester.makepyfile(chat_eval="def test_a(): assert 0")
    command = [sys.executable, "-m", "pytest", "--pdb", "chat_eval.py"]
    measured = suite.pytester.run(*command, stdin=b"q\n")
    measured.assert_outcomes(passed=1)
    strict = suite.pytester.run(*command, "--eval-strict", stdin=b"q\n")
    strict.stdout.fnmatch_lines(["*entering PDB*", "*chat_eval.py(1)test_a()"])


SHARED = """
    import pytest

    @pytest.fixture(scope="module")
    def shared():
        assert True, "passes of it are nobody's"
        yield 1
        assert True

    @pytest.fixture(scope="session")
    def broken():
        assert 0, "broken for all"

    def test_a(shared): assert shared
    def test_b(shared): assert shared
    def test_c(broken): assert 1
    def test_d(broken): assert 1
"""


def test_what_several_tests_share_is_nobody_s_assertion(measured):
    ran = measured(SHARED)
    ran.result.assert_outcomes(passed=2, errors=2)
    assert recorded(ran.episodes["test_a"]) == [(13, True, "shared")]
    assert recorded(ran.episodes["test_b"]) == [(14, True, "shared")]
    for name in ("test_c", "test_d"):
        episode = ran.episodes[name]
        assert (episode.outcome, episode.assertions) == ("error", ())
        assert "broken for all" in episode.reason


@pytest.mark.parametrize("kind", ["class", "module", "session"])
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
    assert failed.reason == "failed: 0; then in teardown failed: 1 == 3"
    assert (error.outcome, error.reason) == ("error", "OSError (chat_eval.py:10)")
    assert recorded(error) == [(6, False, "1 == 3")]


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


def test_what_a_marker_requires_gates(measured):
    ran = measured("""
        import pytest

        def test_unmarked(): pass

        @pytest.mark.episode(agent="a")
        def test_marked(): pass

        @pytest.mark.episode(gate="required")
        def test_gate(): pass

        @pytest.mark.episode(min_pass_rate=0.5)
        def test_rate(): pass

        @pytest.mark.episode(min_passes=1)
        def test_passes(): pass

        @pytest.mark.episode(min_passes=1, gate="advisory")
        def test_both(): pass
    """)
    assert {name: e.gate for name, e in ran.episodes.items()} == {
        "test_unmarked": "advisory",
        "test_marked": "advisory",
        "test_gate": "required",
        "test_rate": "required",
        "test_passes": "required",
        "test_both": "advisory",
    }


def test_a_marker_that_cannot_be_read_is_a_collection_error(measured):
    ran = measured("""
        import pytest

        @pytest.mark.episode(gate="maybe")
        def test_a(): pass
    """)
    ran.result.assert_outcomes(errors=1)


def test_an_interruption_leaves_nothing_running(suite):
    suite.pytester.makeconftest(
        """
        def pytest_unconfigure():
            from ci_agent_eval.current import running_episode

            print("running:", running_episode())
        """
    )
    suite.pytester.makepyfile(
        chat_eval="""
        def test_a():
            assert 0
            raise KeyboardInterrupt
        """
    )
    ran = suite.run_apart("chat_eval.py", "-s")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    ran.result.stdout.fnmatch_lines(["running: None"])
    assert recorded(ran.journal[-1].episode) == [(2, False, "0")]


def test_outside_of_evaluations_nothing_is_recorded(suite, workers):
    """A helper of an evaluation that a strict episode calls, and the next test after one."""
    suite.write("def test_strict(): assert 1")
    suite.pytester.makepyfile(
        chat_eval="""
        def test_a(): assert 0
        """,
        test_after="""
        from ci_agent_eval.current import running_episode

        def test_none(): assert running_episode() is None
        def test_some(episode): assert running_episode().mode == "strict"
        """,
    )
    ran = suite.run("--eval", workers)
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
        from hypothesis import given, settings, strategies as st

        @settings(database=None)
        @given(st.integers())
        def test_all(n):
            assert n < 30

        @settings(database=None, max_examples=5)
        @given(st.integers())
        def test_each(n):
            assert isinstance(n, int)
    """,
        "-p",
        "no:randomly",
    )
    ran.result.assert_outcomes(passed=2)
    (found,) = ran.episodes["test_all"].assertions
    assert (found.passed, found.name) == (False, "assert n < 30")
    assert found.reason.startswith("assert 30 < 30")
    assert ran.episodes["test_each"].outcome == "passed"


def test_errors_show_locals_and_lines_as_ever(measured):
    ran = measured(
        """
        def test_a():
            first = 1
            assert first == 2
            second = 3
            raise OSError("here")
    """,
        "--showlocals",
    )
    said = ran.result.stdout.str()
    assert "@" not in said.partition("OSError: here")[2].partition("chat_eval.py:5: OSError")[0]
    ran.result.stdout.fnmatch_lines(
        ["first      = 1", "second     = 3", "", "chat_eval.py:5: OSError"], consecutive=True
    )


def test_coverage_counts_the_lines_that_ran(suite):
    suite.pytester.makepyfile(
        chat_eval="""
        def test_a():
            assert 1 == 2, (
                "no"
            )
            try:
                assert 0
            except ValueError:
                never = 1
            for number in (1, 2):
                if number == 3:
                    assert 0
            assert 1, "never said"
    """
    )
    pytester = suite.pytester
    pytester.run(
        sys.executable,
        "-m",
        "coverage",
        "run",
        "--branch",
        "--include=chat_eval.py",
        "-m",
        "pytest",
        "chat_eval.py",
    )
    pytester.run(sys.executable, "-m", "coverage", "json", "-o", "cov.json")
    (found,) = json.loads((pytester.path / "cov.json").read_text())["files"].values()
    assert found["missing_lines"] == [7, 8, 11]
    assert found["missing_branches"] == [[10, 11]]


def test_workers_order_and_hash_seed_do_not_show(suite, monkeypatch):
    suite.write("def test_strict(): pass", conftest=SHUFFLED)
    suite.pytester.makepyfile(
        a_eval="""
        import dataclasses
        import pytest

        @dataclasses.dataclass
        class Found:
            words: set
            more: list

        NAMES = {"search", "refund", "ask", "pay"}

        @pytest.fixture(scope="module")
        def shared():
            assert NAMES
            return object()

        @pytest.mark.parametrize("tier", ["gold", "basic"])
        def test_tiers(tier, shared):
            assert NAMES == {"a", "b", tier}
            assert {"kind": 1, "sum": 2, "who": tier} == {"kind": 2, "sum": 3}
            assert shared is None
            assert [NAMES] == [{"q", "w"}]
            assert Found(NAMES, [NAMES]) == Found({"q", "w"}, [NAMES, tier])
            for name in sorted(NAMES):
                assert name in {"search", "ask"}, [NAMES]
        """,
        b_eval=SHARED,
    )
    seen = set()
    ways = ["-n0"], ["-n0", "--color=yes"], ["-n1"], ["-n4"], ["-vv"], ["-q"]
    for number, arguments in enumerate(ways):
        # pytest itself explains more on CI, and with `-v`.
        monkeypatch.setenv("CI", "true") if number % 2 else monkeypatch.delenv("CI", raising=False)
        monkeypatch.setenv("SHUFFLE", str(number))
        monkeypatch.setenv("PYTHONHASHSEED", str(number))
        ran = suite.run_apart("--eval", *arguments)
        seen.add((ran.folder / "results.json").read_bytes())
    (only,) = seen
    assert only.count(b'"scenario_id"') == 6


def test_a_project_s_own_marker_of_the_name_says_nothing_of_an_evaluation(measured, suite):
    suite.pytester.makeini("[pytest]\nmarkers = episode: of our TV series")
    ran = measured(
        """
        import pytest

        @pytest.mark.episode("pilot", season=1)
        def test_a(): assert 0
        """
    )
    ran.result.assert_outcomes(passed=1)
    (episode,) = ran.results.episodes
    assert (episode.scenario_id, episode.gate) == ("chat_eval.py::test_a", "advisory")
