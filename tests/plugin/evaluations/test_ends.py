"""What ends an evaluation, what fails its test, what does neither, and what its marker says."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.evaluation import build_evaluation_report
from tests.plugin.evaluations.rig import recorded


def test_an_exception_ends_it_fails_the_test_and_keeps_what_was_asserted(measured):
    ran = measured("""
        import pytest

        def connect():
            raise ConnectionError("refused")

        def test_errs():
            assert 1 == 1
            connect()
            assert 0

        def test_goes_on():
            assert 1
    """)
    ran.result.assert_outcomes(failed=1, passed=1)
    assert ran.result.ret == 1
    errs = ran.episodes["test_errs"]
    assert (errs.outcome, recorded(errs)) == ("error", [(7, True, "1 == 1")])
    assert errs.reason == "ConnectionError: refused (chat_eval.py:4, called at chat_eval.py:8)"
    assert ran.episodes["test_goes_on"].outcome == "passed"
    errored, _ = build_evaluation_report(ran.results.episodes).conversations
    assert (errored.passed, errored.score) == (False, 0)


def test_once_an_assertion_failed_no_exception_makes_it_an_error(measured):
    ran = measured("""
        import pytest

        @pytest.fixture
        def breaks_in_setup():
            assert 0
            raise OSError("no server")

        @pytest.fixture
        def breaks_in_teardown():
            yield
            assert 0
            raise OSError("no server")

        def test_guarded():
            calls = []
            assert len(calls) == 1
            assert calls[0].name == "x"

        def test_checked(episode):
            episode.check("polite", False)
            raise KeyError("name")

        def test_setup(breaks_in_setup): pass

        def test_teardown(breaks_in_teardown): assert 1

        def test_subtest(subtests):
            assert 0
            with subtests.test("one"): raise OSError("no server")
    """)
    assert {name: episode.outcome for name, episode in ran.episodes.items()} == dict.fromkeys(
        ("test_guarded", "test_checked", "test_setup", "test_teardown", "test_subtest"), "failed"
    )
    # The exception is shown, and fails the test, as any other does.
    assert ran.result.ret == 1
    guarded = ran.episodes["test_guarded"]
    assert recorded(guarded)[0][1:] == (False, "len(calls) == 1")
    assert guarded.reason.startswith("failed: len(calls) == 1; then IndexError: list index out of")
    reasons = [ran.episodes[name].reason for name in ("test_setup", "test_teardown")]
    assert reasons == [
        "OSError: no server (chat_eval.py:6); in setup failed: 0",
        "in teardown: OSError: no server (chat_eval.py:12); in teardown failed: 0",
    ]
    report = build_evaluation_report(ran.results.episodes)
    assert report.average_score < 0.5


def test_one_that_asserts_nothing_has_measured_nothing(measured):
    ran = measured("""
        import pytest

        @pytest.mark.episode(gate='required')
        def test_never_reached():
            for call in []:
                assert call

        def test_empty(): pass

        def test_one(): assert 1

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
    report = build_evaluation_report(ran.results.episodes)
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


def test_failed_assertions_stop_no_run_and_errors_do(measured):
    ran = measured(
        """
        def test_a(): assert 0
        def test_b(): raise AssertionError
        def test_c(subtests):
            with subtests.test(): raise AssertionError
        def test_d(): raise OSError
        def test_e(): assert 0
    """,
        "-x",
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


def test_an_interruption_leaves_nothing_running(suite):
    suite.pytester.makeconftest(
        """
        def pytest_unconfigure():
            from ci_agent_eval.recording.active_episode import get_active_episode

            print("running:", get_active_episode())
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
    assert in_setup.reason == "no server; in setup failed: 0"


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
