"""A project that has the plugin and does not use it: no change, and next to no cost."""

from __future__ import annotations

import re

import pytest

SUITE = """
import sys
import pytest
import warnings

def test_passes(): pass

@pytest.mark.parametrize("n", [1, 2])
def test_fails(n): assert n == 1

def test_warns():
    warnings.warn("mine")

@pytest.fixture
def broken():
    raise OSError

def test_errors(broken): pass

@pytest.mark.skip
def test_skipped(): pass

async def test_async(): pass
"""


def said(result: pytest.RunResult) -> list[str]:
    """All that pytest said, without the plugin's own name, seconds and addresses of objects."""
    lines = [
        re.sub(r"0x[0-9a-f]+", "0x", re.sub(r"=*(.*) in \d+\.\d+s\b.*", r"\1 in N s", line))
        for line in result.outlines + result.errlines
    ]
    names = [
        re.sub(r", ci-agent-eval-[\d.]+|ci-agent-eval-[\d.]+(, )?", "", line) for line in lines
    ]
    # Which of two workers ran a test, and in what order, is no change.
    return [line for line in names if not line.startswith(("plugins:", "[gw")) and "%]" not in line]


@pytest.mark.parametrize(
    "arguments",
    [["-v", "-W", "error", "--strict-markers"], ["-n2"], ["--collect-only"]],
    ids=lambda arguments: arguments[0],
)
def test_nothing_changes(pytester, arguments):
    pytester.makepyfile(SUITE)
    common = ["-p", "no:cacheprovider"]
    without = pytester.runpytest_subprocess(*common, "-p", "no:ci_agent_eval", *arguments)
    having = pytester.runpytest_subprocess(*common, *arguments)
    assert having.ret == without.ret
    assert sorted(said(having)) == sorted(said(without))


def test_nothing_heavy_is_imported(pytester):
    pytester.makepyfile(SUITE)
    pytester.makeconftest("""
        import sys

        def pytest_unconfigure(config):
            heavy = {"pydantic", "ci_agent_eval.contract.base", "ci_agent_eval.recording", "asyncio",
                     "ci_agent_eval.redaction", "ci_agent_eval.pytest_plugin.session",
                     "ci_agent_eval.pytest_plugin.budgets.budget_stop"}
            assert "ci_agent_eval.pytest_plugin" in sys.modules
            steering = {name for name in sys.modules if "steer" in name}
            print("imported:", sorted((heavy & set(sys.modules)) | steering))
            ours = [name for name in sys.modules if name.partition(".")[0] == "ci_agent_eval"]
            assert len(ours) <= 21, ours
    """)
    only_ours = ["-p", "no:anyio", "-p", "no:xdist"]
    for arguments in (["--enable-pytest-full-suite-steering"], ["--collect-only"]):
        result = pytester.runpytest_subprocess("-s", *only_ours, *arguments)
        result.stdout.fnmatch_lines(["imported: []"])


def test_the_first_episode_brings_it_in(pytester):
    pytester.makepyfile("""
        import pytest
        import sys

        @pytest.mark.episode(evidence="none")
        def test_one(episode):
            assert "pydantic" in sys.modules

        @pytest.mark.episode(evidence="none")
        def test_models_are_built_before_threads_share_them(episode):
            from ci_agent_eval.contract import base, trajectory

            assert trajectory.Turn in base.FrozenModel.__subclasses__()
            assert all(model.__pydantic_complete__ for model in base.FrozenModel.__subclasses__())
    """)
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_the_help_says_what_there_is_and_not_what_is_for_programs(pytester):
    shown = pytester.runpytest_inprocess("--help").stdout.str()
    for name in ("report-dir", "suite", "commit", "again", "watched"):
        assert (f"--episode-{name}" in shown) == (name in {"report-dir", "suite", "commit"})
    for name in ("aitest-iterations", "eval", "eval-strict", "total-cost-usd", "total-tokens"):
        assert f"--{name}" in shown
    for name in ("total-wall-time-s", "enable-pytest-full-suite-steering"):
        assert f"--{name}" in shown
    markers = pytester.runpytest_inprocess("--markers").stdout.str()
    assert "@pytest.mark.episode(scenario_id=None, budgets=None" in markers


def test_a_run_inside_another_may_load_a_plugin_before_ours(pytester):
    """The rewriter of the outer run sees a configuration without our settings."""
    pytester.makepyfile(early_plugin="def pytest_configure(config): assert config is not None")
    pytester.makepyfile(test_fine="def test_fine(): pass")
    pytester.syspathinsert()
    pytester.runpytest_inprocess("-p", "early_plugin").assert_outcomes(passed=1)
