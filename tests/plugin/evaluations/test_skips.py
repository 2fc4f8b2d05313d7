"""Skips and expected failures of evaluations."""

from __future__ import annotations

from tests.plugin.evaluations.rig import recorded


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
