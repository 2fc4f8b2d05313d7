"""The setting passed_on_retry: how a test of a JUnit file counts that passed on a retry."""

from __future__ import annotations

import json

import pytest

from tests.builders import junit_case, junit_xml
from tests.processes import run_agent_eval

RETRIED = junit_xml(junit_case("<flakyFailure message='once'/>"), junit_case(name="test_other"))
OUTCOMES = {"passed": (0, 0, []), "flaky": (0, 0, ["test_sum"]), "failed": (1, 1, [])}
TOLD = "it passed only on a retry, which counts as failed (passed_on_retry)"


@pytest.fixture
def judge(tmp_path):
    """Judge one file; return the exit code, the failed tests, and the names of the flaky ones."""
    (tmp_path / "junit.xml").write_text(RETRIED)

    def run(*arguments, **environ):
        done = run_agent_eval("report", "--junit", "junit.xml", *arguments, cwd=tmp_path, **environ)
        return done.returncode, *listed(tmp_path)

    return run


def listed(folder):
    """Return how many tests failed, and the names of the flaky ones."""
    found = json.loads((folder / "agent-eval-report/verdict.json").read_text())
    flaky = [entry["test"].rpartition("::")[2] for entry in found["lists"]["flaky"]]
    return found["counts"]["tests"]["failed"], flaky


def test_it_is_a_flag_a_variable_and_a_setting(judge, tmp_path):
    assert judge() == OUTCOMES["flaky"]
    assert judge("--passed-on-retry", "passed") == OUTCOMES["passed"]
    assert judge(AGENT_EVAL_PASSED_ON_RETRY="failed") == OUTCOMES["failed"]
    (tmp_path / "agent-eval.toml").write_text('[gate]\npassed_on_retry = "failed"\n')
    assert judge() == OUTCOMES["failed"]


def test_a_failure_says_that_the_setting_is_the_reason(judge, tmp_path):
    judge("--passed-on-retry", "failed")
    found = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
    (failing,) = found["summary"]["tests"]["failing"]
    assert failing["message"] == f"{TOLD}; at first: once"
    assert TOLD in (tmp_path / "agent-eval-report/comment.md").read_text()
