"""`agent-eval run --affected` in a small repository: what runs, what the report and the gate say."""

from __future__ import annotations

import json
import os

import pytest

from ci_agent_eval.app.suite_job import ChangeRequest, plan_changes
from ci_agent_eval.contract.affected import ChangePlan
from tests.processes import run_agent_eval
from tests.repositories import TestRepository

TESTS = """
import pytest
from pathlib import Path
from ci_agent_eval import scenarios

def answer(episode, prompt):
    with episode.turn("hello") as turn:
        turn.tool_call("read", {}, result=Path(prompt).read_text())
        turn.reply("Done.")
    assert episode.turns[-1].content == "Done."

@pytest.mark.episode(scenario_id="refund", depends_on=["prompts/refund.md"])
def test_refund(episode):
    answer(episode, "prompts/refund.md")

@pytest.mark.episode(scenario_id="cancel", depends_on=["prompts/cancel.md", "src/*"])
def test_cancel(episode):
    answer(episode, "prompts/cancel.md")

@scenarios("cases.yaml")
def test_case(scenario):
    scenario.run(lambda message: "Hello, " + message)
"""
ELSEWHERE = """
import pytest
from src.declared import PROMPTS
from test_desk import answer

@pytest.mark.episode(scenario_id="elsewhere", depends_on=PROMPTS)
def test_elsewhere(episode):
    answer(episode, "prompts/cancel.md")
"""
CASES = """
- id: greet
  initial_message: Ada
  fixed_responses: [Bye]
  max_turns: 1
  depends_on: [prompts/greet.md]
  checks:
    required_text: [Hello]
"""
MANIFEST = """
[required]
"cancel" = "tests/test_desk.py"
"""
FILES = {
    ".gitignore": "__pycache__/\n",
    "agent-eval.toml": "affected = true\n",
    "agent-eval-scenarios.toml": MANIFEST,
    "off.toml": "",
    "pytest.ini": "[pytest]\npythonpath = . tests\n",
    "prompts/refund.md": "be kind",
    "prompts/cancel.md": "be quick",
    "prompts/greet.md": "be warm",
    "src/declared.py": "PROMPTS = ['prompts/greet.md']",
    "tests/test_desk.py": TESTS,
    "tests/test_elsewhere.py": ELSEWHERE,
    "tests/cases.yaml": CASES,
}


@pytest.fixture
def desk(tmp_path):
    """A repository on a branch, which is at `main`."""
    found = TestRepository(tmp_path / "desk")
    for name, text in FILES.items():
        found.write(name, text)
    found.commit()
    found.git("checkout", "--quiet", "-b", "change")
    return found


def run(desk, *arguments, **environ):
    """Run the suite; return the scenarios that ran, those left out, the verdict, and the output."""
    done = run_agent_eval("run", *arguments, cwd=desk.folder, **environ)
    assert done.returncode in {0, 1}, done.stderr + done.stdout
    verdict = json.loads((desk.folder / "agent-eval-report/verdict.json").read_text())
    ran = [one["scenario_id"] for one in verdict["summary"]["scenarios"]]
    return ran, verdict["summary"]["left_out"], verdict, done


def report(desk, *arguments, **environ):
    """Report anew on the last run; return the exit status."""
    words = ("report", "--results", "agent-eval-report", "--report-dir", "again", *arguments)
    return run_agent_eval(*words, cwd=desk.folder, **environ).returncode


def test_only_what_a_change_can_have_affected_runs(desk):
    desk.git("checkout", "--quiet", "main")
    ran, left_out, _, done = run(desk, "tests")
    assert (ran, left_out) == (["cancel", "elsewhere", "greet", "refund"], [])
    assert "everything runs: HEAD is on the base branch (main)" in done.stdout
    baseline = desk.folder.parent / "baseline.json"
    baseline.write_bytes((desk.folder / "agent-eval-report/results.json").read_bytes())

    desk.git("checkout", "--quiet", "change")
    desk.write("README.md", "new")
    desk.edit("prompts/refund.md", "kind", "very kind")
    desk.commit()
    ran, left_out, verdict, done = run(desk, "tests", "--baseline", str(baseline))
    assert done.returncode == 0, done.stdout
    # What it imports its declaration from may have changed, so that `elsewhere` declares nothing.
    assert (ran, left_out) == (["elsewhere", "refund"], ["cancel", "greet"])
    assert "2 scenarios not affected (declared)" in done.stdout
    comment = (desk.folder / "agent-eval-report/comment.md").read_text()
    assert "2 scenarios did not run, not affected (declared): cancel, greet" in comment
    assert verdict["summary"]["known"]["missing"] == []
    compared = [one["scenario_id"] for one in verdict["comparison"]["scenarios"]]
    assert compared == ["elsewhere", "refund"]
    assert [one["kind"] for one in verdict["summary"]["findings"]] == ["left_out"]

    assert report(desk) == 0
    assert report(desk, "--config", "off.toml") == 1
    assert report(desk, GITHUB_EVENT_NAME="push") == 1

    desk.edit("tests/cases.yaml", "prompts/greet.md", "prompts/other.md")  # not its own word
    assert run(desk, "tests", "--base", "main")[:2] == (
        ["elsewhere", "greet", "refund"],
        ["cancel"],
    )
    words = ("scenarios", "--write", "--results", "agent-eval-report")
    said = run_agent_eval(*words, cwd=desk.folder).stdout
    assert "1 scenario not affected by the change did not run: the entries are kept" in said
    assert '"cancel" =' in (desk.folder / "agent-eval-scenarios.toml").read_text()


def test_a_change_that_affects_nothing_passes_where_the_settings_allow_it(desk):
    desk.write("docs/page.md", "new")
    desk.commit()
    ran, left_out, verdict, done = run(desk, "tests/test_desk.py")
    assert (ran, left_out, done.returncode) == ([], ["cancel", "greet", "refund"], 0), done.stdout
    assert verdict["verdict"]["conclusion"] == "success"
    *_, done = run(desk, "tests/test_desk.py", "--affected", "--config", "off.toml")
    assert done.returncode == 1
    assert "set affected = true in the configuration file" in " ".join(done.stdout.split())


def test_everything_runs_if_the_changes_are_not_known(desk):
    def ask(**given):
        return plan_changes(ChangeRequest(desk.folder, os.environ, **given))

    desk.write("src/new.py", "")
    desk.git("mv", "prompts/cancel.md", "prompts/moved.md")
    plan = ask()
    assert isinstance(plan, ChangePlan)
    assert plan.changed == ("prompts/cancel.md", "prompts/moved.md", "src/new.py")
    assert ask(started_by="push") == "the event push is not about a pull request"
    assert "git knows no commit gone here" in ask(base="gone")
    desk.git("checkout", "--quiet", "--detach")
    assert ask() == "HEAD is on the base branch (main)"
    desk.git("checkout", "--quiet", "--orphan", "other")
    desk.commit()
    assert "no merge base of HEAD and main here; fetch the history" in ask()
    folder = desk.folder.parent
    assert plan_changes(ChangeRequest(folder, os.environ)) == "this folder is in no git repository"
