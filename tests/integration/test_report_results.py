"""Reports of results files: scores, conversations, retries, and the brief."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ci_agent_eval.app.pipeline import Job, report_files
from ci_agent_eval.config.options import Settings
from ci_agent_eval.contract.evaluation import is_rendered_evaluation
from ci_agent_eval.redaction import REDACTED
from tests.builders import episode, evaluated, junit_case, junit_xml, write_run
from tests.processes import run_agent_eval

# `eval-results.json` in the report folder: of merged runs, without secrets, and only if there are
# evaluations.


SECRET = "hunter2-hunter2-hunter2"


SUITE = """
import pytest

@pytest.mark.episode(scenario_id="Create")
def test_create():
    canvas = "A -> B"
    assert "A" in canvas
    assert "C" in canvas

@pytest.mark.episode(scenario_id="Extend")
def test_extend():
    assert "B" in "A -> B"
"""


@pytest.fixture
def agent_eval(tmp_path: Path):
    """Run the program in a folder with an evaluation of which one of two conversations passes."""
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/diagram_eval.py").write_text(SUITE)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_agent_eval(*arguments, cwd=tmp_path)

    return run


def test_a_run_measures_evaluations_and_passes_whatever_they_say(agent_eval, tmp_path):
    done = agent_eval("run", "evals")
    assert done.returncode == 0, done.stdout + done.stderr
    headline = done.stdout.splitlines()[-3]
    assert headline == "Agent evals passed: 1 of 2 conversations (average score 0.75)"
    folder = tmp_path / "agent-eval-report"
    assert names(folder / "eval-results.json") == ["Create", "Extend"]
    comment = (folder / "comment.md").read_text()
    assert '- `Create` 0/1 passed, score 0.50, 1/2 assertions · `"C" in canvas`: ' in comment
    (notice,) = json.loads((folder / "annotations.json").read_text())
    assert (notice["level"], notice["start_line"]) == ("notice", 8)


def test_below_a_threshold_the_gate_is_closed_and_at_it_open(agent_eval):
    report = ("report", "--results", "agent-eval-report")
    for command, option, said in (
        (
            ("run", "evals"),
            "--eval-min-pass-rate=0.6",
            "1 of 2 evaluation conversations passed, 60 % required",
        ),
        (report, "--eval-min-score=0.8", "the evaluations' average score is 0.75, 0.8 required"),
    ):
        done = agent_eval(*command, option)
        assert done.returncode == 1
        assert f"Agent evals failed: {said} 2 episodes" in " ".join(done.stdout.split())
    at = ("--eval-min-pass-rate=0.5", "--eval-min-score=0.75")
    assert agent_eval(*report, *at).returncode == 0


@pytest.fixture
def report(tmp_path: Path):
    def run(*results: str) -> Path:
        job = Job(Settings(), root=tmp_path, environ={"API_TOKEN": SECRET})
        report_files(job, results=results, junit=())
        return tmp_path / "agent-eval-report/eval-results.json"

    return run


def names(path: Path) -> list[str]:
    return [conversation["name"] for conversation in json.loads(path.read_text())["conversations"]]


def test_it_holds_the_evaluations_of_all_that_was_read(report, tmp_path):
    write_run(tmp_path / "one", evaluated("b", True), episode("strict"))
    write_run(tmp_path / "two", evaluated("a", False), evaluated("c", outcome="skipped"))
    path = report("one", "two")
    assert names(path) == ["a", "b"]
    assert is_rendered_evaluation(path.read_text())
    assert json.loads(path.read_text())["passRate"] == 50


def test_no_secret_gets_into_it(report, tmp_path):
    said = [{"name": f"is {SECRET}", "passed": False, "reason": f"got {SECRET}"}]
    write_run(tmp_path / "one", evaluated("a", assertions=said, nodeid=f"t.py::x[{SECRET}]"))
    text = report("one").read_text()
    assert SECRET not in text
    assert text.count(REDACTED) == 2


# Results with scores alone are judged by thresholds: flag, variable, setting, and baseline.


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


# The setting passed_on_retry: how a test of a JUnit file counts that passed on a retry.


RETRIED = junit_xml(junit_case("<flakyFailure message='once'/>"), junit_case(name="test_other"))
OUTCOMES = {"passed": (0, 0, []), "flaky": (0, 0, ["test_sum"]), "failed": (1, 1, [])}
TOLD = "it passed only on a retry, which counts as failed (passed_on_retry)"


@pytest.fixture
def judge_retries(tmp_path):
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


def test_passed_on_retry_is_a_flag_a_variable_and_a_setting(judge_retries, tmp_path):
    assert judge_retries() == OUTCOMES["flaky"]
    assert judge_retries("--passed-on-retry", "passed") == OUTCOMES["passed"]
    assert judge_retries(AGENT_EVAL_PASSED_ON_RETRY="failed") == OUTCOMES["failed"]
    (tmp_path / "agent-eval.toml").write_text('[gate]\npassed_on_retry = "failed"\n')
    assert judge_retries() == OUTCOMES["failed"]


def test_a_failure_says_that_the_setting_is_the_reason(judge_retries, tmp_path):
    judge_retries("--passed-on-retry", "failed")
    found = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
    (failing,) = found["summary"]["tests"]["failing"]
    assert failing["message"] == f"{TOLD}; at first: once"
    assert TOLD in (tmp_path / "agent-eval-report/comment.md").read_text()


# `agent-eval brief`: printed from the folder of a report, with the gate's exit code.


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "passed.xml").write_text(junit_xml(junit_case()))
    (tmp_path / "failed.xml").write_text(junit_xml(junit_case('<failure message="1 is not 2"/>')))
    return tmp_path


def test_the_brief_of_a_failed_report_names_its_causes(folder):
    run_agent_eval("report", "--junit", "failed.xml", cwd=folder)
    text = run_agent_eval("brief", cwd=folder)
    document = run_agent_eval("brief", "agent-eval-report", "--format", "json", cwd=folder)
    assert (text.returncode, document.returncode) == (1, 1)
    assert text.stdout.startswith("### ❌ Tests failed: 1 of 1\n\n**Cause 1:** ")
    assert len(json.loads(document.stdout)["causes"]) == 1
    again = run_agent_eval("brief", cwd=folder)
    assert again.stdout == text.stdout


def test_without_a_report_it_says_what_writes_one(folder):
    done = run_agent_eval("brief", "nowhere", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere/verdict.json: cannot be read" in done.stderr
    assert "agent-eval run" in done.stderr
