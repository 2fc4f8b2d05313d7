"""Assertions in setup and teardown, of one test and of several."""

from __future__ import annotations

import pytest

from tests.plugin.evaluations.rig import SHARED, recorded


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
