"""`eval-results.json` in the report folder: of merged runs, without secrets, and only if there
are evaluations."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ci_agent_eval.app.pipeline import Job, report_files
from ci_agent_eval.config.options import Settings
from ci_agent_eval.contract.evaluation import is_rendered_evaluation
from ci_agent_eval.redaction import REDACTED
from tests.builders import episode, evaluated, write_run
from tests.processes import run_agent_eval

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
            "1 of 2 evaluation conversations passed, 60.0 % required",
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
