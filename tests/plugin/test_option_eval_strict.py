"""`--eval-strict`: evaluations run as pytest runs any other test."""

from __future__ import annotations

import pytest

EVALUATION = """
import pytest

@pytest.mark.episode(scenario_id="marked")
def test_marked():
    assert 1 == 2
    assert 0, "never reached"

def test_plain():
    assert 1 == 3
"""


@pytest.fixture(autouse=True)
def files(suite):
    suite.write("def test_strict(): assert 1")
    suite.pytester.makepyfile(chat_eval=EVALUATION)


def test_the_first_failed_assert_ends_the_test(suite):
    ran = suite.run("--eval-strict", "chat_eval.py")
    ran.result.assert_outcomes(failed=2)
    assert ran.result.ret == 1
    assert "never reached" not in ran.result.stdout.str()
    (episode,) = ran.results.episodes
    assert (episode.mode, episode.gate, episode.outcome) == ("strict", "required", "failed")
    assert [a.line for a in episode.assertions] == [5]


@pytest.mark.parametrize("mode", ["rewrite", "plain"])
def test_asserts_are_explained_as_pytest_does(suite, mode):
    ran = suite.run_apart("--eval-strict", "--eval", f"--assert={mode}")
    is_explained = "assert 1 == 2" in [a.reason for a in ran.episodes["test_marked"].assertions]
    assert is_explained == (mode == "rewrite")
    ran.result.assert_outcomes(failed=2, passed=1)


def test_alone_it_collects_none(suite):
    suite.run("--eval-strict").result.assert_outcomes(passed=1)


def test_bytecode_of_one_mode_is_not_taken_for_the_other(suite):
    for options, outcomes in [((), {"passed": 2}), (("--eval-strict",), {"failed": 2})]:
        suite.run_apart("chat_eval.py", *options).result.assert_outcomes(**outcomes)
    suite.run_apart("chat_eval.py").result.assert_outcomes(passed=2)
