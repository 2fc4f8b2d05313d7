"""`eval-results.json` in the report folder: of merged runs, without secrets, and only if there
are evaluations."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ci_agent_eval.app.pipeline import Job, report_files
from ci_agent_eval.config.settings import Settings
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


BROKEN = """
import pytest

@pytest.fixture
def desk():
    yield "open"
    raise OSError("teardown")

def test_fails_and_raises():
    state = "closed"
    assert state == 'open'; raise KeyError('x')

def test_passes_and_raises():
    state = "closed"
    assert state; raise KeyError('x')

def test_fails_and_is_torn_down(desk):
    state = "closed"
    assert state == 'open'

def test_passes_and_is_torn_down(desk):
    state = "closed"
    assert state

def test_other():
    assert {1}
"""


def test_an_exception_fails_the_run_whatever_was_asserted(tmp_path):
    (tmp_path / "desk_eval.py").write_text(BROKEN)
    done = run_agent_eval("run", "desk_eval.py", cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    said = "Agent evals failed: 4 evaluation conversations ended in an error"
    assert said in " ".join(done.stdout.split()), done.stdout


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


def test_a_threshold_with_nothing_measured_closes_it(agent_eval, tmp_path):
    (tmp_path / "test_strict.py").write_text(
        "def test_one(episode):\n    with episode.turn('Hi') as turn: turn.reply('Hello')\n"
        "    assert episode.turns\n"
    )
    done = agent_eval("run", "test_strict.py", "--eval-min-score=0")
    assert done.returncode == 1
    assert "no evaluation conversation was judged" in done.stdout


def test_evaluations_that_all_broke_are_no_evidence(agent_eval, tmp_path):
    (tmp_path / "evals/diagram_eval.py").write_text("def test_a():\n    raise OSError('refused')\n")
    done = agent_eval("run", "evals")
    assert done.returncode == 1
    assert "Agent evals failed: none of 1 episode was judged" in done.stdout


GUARDED = """
import pytest

pytestmark = pytest.mark.episode("calls", gate="required")

class Call:
    name = "x"

@pytest.mark.parametrize("calls", [[Call()], [], [], []], ids=["one", "no", "none", "nil"])
def test_calls_the_tool(calls):
    assert len(calls) == 1
    assert calls[0].name == "x"
"""


def test_the_exception_after_a_failed_guard_is_no_infrastructure_error(agent_eval, tmp_path):
    (tmp_path / "evals/diagram_eval.py").write_text(GUARDED)
    done = agent_eval("run", "evals", "--max-error-rate=0.8")
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "4 conversations: 1 passed (25.0 %), average score 0.25" in said
    assert "IndexError: list index out of range" in said
    folder = tmp_path / "agent-eval-report"
    (reason,) = json.loads((folder / "verdict.json").read_text())["verdict"]["reasons"]
    assert (reason["kind"], reason["message"]) == (
        "scenario",
        "1 of 4 iterations pass, 100% required",
    )
    comment = (folder / "comment.md").read_text()
    assert "`len(calls) == 1`" in comment
    scores = json.loads((folder / "eval-results.json").read_text())["conversations"]
    assert [found["score"] for found in scores] == [0, 0, 0, 1]


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
