"""Evaluations beside strict tests, other plugins, coverage, and in any order."""

from __future__ import annotations

import json
import sys

from tests.plugin.evaluations.rig import SHARED, recorded
from tests.plugin.test_same_bytes import SHUFFLED


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
