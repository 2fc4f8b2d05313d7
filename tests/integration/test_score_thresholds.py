"""Results with scores alone are judged by thresholds: flag, variable, setting, and baseline."""

from __future__ import annotations

import json

import pytest

from tests.processes import run_agent_eval

MAPPING = """
[[mapping]]
files = "*.json"
id = "name"
scores = { faith = "faith" }
"""


def write_scores(path, *values):
    """Write a record with one figure for each value."""
    records = [{"name": f"case {number}", "faith": value} for number, value in enumerate(values)]
    path.write_text(json.dumps(records))


@pytest.fixture
def judge(tmp_path):
    """Report on two scores; return the exit code and the numbers of outcomes."""
    write_scores(tmp_path / "scores.json", 0.9, 0.6)
    (tmp_path / "map.toml").write_text(MAPPING)

    def run(*arguments, **environ):
        command = ("report", "--results", "scores.json", "--mapping", "map.toml", *arguments)
        done = run_agent_eval(*command, cwd=tmp_path, **environ)
        if done.returncode > 1:
            return done.returncode, done.stderr
        verdict = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
        counts = verdict["counts"]["episodes"]
        return done.returncode, tuple(counts[key] for key in ("passed", "failed", "error"))

    return run


def test_it_is_a_flag_a_variable_and_a_setting(judge, tmp_path):
    assert judge("--score-thresholds", "faith>=0.8") == (1, (1, 1, 0))
    assert judge("--score-thresholds", "faith>=0.5") == (0, (2, 0, 0))
    assert judge(AGENT_EVAL_SCORE_THRESHOLDS="*>=0.5") == (0, (2, 0, 0))
    (tmp_path / "agent-eval.toml").write_text('[gate.score_thresholds]\nfaith = "<= 0.6"\n')
    assert judge() == (1, (1, 1, 0))


def test_a_threshold_for_a_score_that_nothing_has_fails_the_gate(judge, tmp_path):
    code, _ = judge("--score-thresholds", "faith>=0.5 fiath>=0.5")
    assert code == 1
    comment = (tmp_path / "agent-eval-report/comment.md").read_text()
    assert "no result has the score" in comment
    assert "fiath" in comment


def test_a_baseline_is_judged_by_the_same_thresholds(judge, tmp_path):
    write_scores(tmp_path / "base.json", 0.9, 0.9)
    code, _ = judge("--score-thresholds", "faith>=0.8", "--baseline", "base.json")
    assert code == 1
    verdict = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
    rate = verdict["comparison"]["pass_rate"]
    assert (rate["before"], rate["after"]) == (1, 0.5)
