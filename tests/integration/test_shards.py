"""Suites in shards, and what a change has affected."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from pathlib import Path

import pytest

from ci_agent_eval.app.suite_job import ChangeRequest, plan_changes
from ci_agent_eval.contract.affected import ChangePlan
from tests.processes import run_agent_eval
from tests.repositories import TestRepository

# A suite in shards, each a real pytest run, merges to the bytes of one run.


pytestmark = pytest.mark.timeout(400)  # the first test waits for all runs of all splits

CLOCK = """
import itertools
import pytest

@pytest.fixture
def episode_clock():
    return itertools.count(step=0.25).__next__
"""
SUITE = """
import pytest

@pytest.mark.parametrize("n", range(5))
def test_desk(episode, n):
    with episode.turn(f"order {n}") as turn:
        turn.tool_call("lookup_order", {"order": n}, result="ok")
        turn.reply("Done.", tokens=10 + n, cost_usd=0.001 * n, source="scripted")
    episode.check("is polite", n != 3)

@pytest.mark.episode(scenario_id="refund", iterations=3, min_passes=2, budgets={"tool_calls": 0})
def test_refund(episode):
    with episode.turn("refund") as turn:
        turn.tool_call("refund", {}, result="ok")
        turn.reply("Done.")
    assert episode.iteration != 2

@pytest.mark.episode(scenario_id="both", gate="advisory")
def test_one(episode):
    raise OSError("the world")

@pytest.mark.episode(scenario_id="both", evidence="none")
def test_two(episode): pass

@pytest.mark.skip(reason="not today")
def test_later(episode): pass

def test_wrong(episode):
    assert "right" in "wrong"

def test_plain(): assert 1 == 2
"""
EVALUATION = """
def test_measured():
    assert 1 == 2
    assert 1 == 1
"""
SOON = dt.datetime.now(dt.UTC).date() + dt.timedelta(90)  # whatever day the tests run on
CONFIG = f"""
[[quarantine]]
scenario = "*test_desk[[]3]"
owner = "desk"
reason = "known"
until = "{SOON}"
"""
COMMIT = "4f2a91c0" * 5
FIRST_ATTEMPT = {"GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "1"}
SAME = (
    "comment.md",
    "annotations.json",
    "verdict.json",
    "eval-results.json",
    "summary.md",
    "report.html",
    "results.json",
)


def run_shard(root: Path, index: int, count: int, *, into: str = "shards", **environ: str):
    folder = f"{into}/report-{count - index}"
    commit = environ.pop("commit", COMMIT)
    return run_agent_eval(
        *("run", "--shard", f"{index}/{count}", "--report-dir", folder, "suite"),
        *("--", "-W", "error", f"--episode-commit={commit}"),
        cwd=root,
        **environ,
    )


def reported(root: Path, **environ: str):
    """Report on all shards; return the files that must be the same, and the process."""
    done = run_agent_eval("report", "--results", "shards/*", cwd=root, **environ)
    folder = root / "agent-eval-report"
    return {name: (folder / name).read_bytes() for name in SAME}, done


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """The suite in 1 and 2 shards, each run by a process of its own; 2 as a job in CI."""
    roots = {}
    for count in (1, 2):
        environ = FIRST_ATTEMPT if count == 2 else {}
        root = roots[count] = tmp_path_factory.mktemp(f"split{count}")
        (root / "suite").mkdir()
        (root / "suite/conftest.py").write_text(CLOCK)
        (root / "suite/test_suite.py").write_text(SUITE)
        (root / "suite/talk_eval.py").write_text(EVALUATION)
        (root / "agent-eval.toml").write_text(CONFIG)
        for index in range(1, count + 1):
            done = run_shard(root, index, count, **environ)
            assert done.returncode in (0, 1), done.stderr + done.stdout
    return roots


def test_any_split_is_reported_in_the_same_bytes(split):
    whole, done = reported(split[1])
    assert done.returncode == 1
    document = json.loads(whole["verdict.json"])
    assert {reason["kind"] for reason in document["verdict"]["reasons"]} == {
        *("scenario", "budget", "error_budget", "skipped", "tests")
    }
    assert document["summary"]["shard"] is None
    environ = {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1", "LC_ALL": "C"}
    parts, _ = reported(split[2], **environ)
    for name in SAME:
        assert parts[name] == whole[name], name


def copied(split, count, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(split[count], root)
    return root


def findings(files):
    return [
        (finding["kind"], finding["message"])
        for finding in json.loads(files["verdict.json"])["summary"]["findings"]
        if finding["blocking"]
    ]


def test_a_missing_shard_fails_and_is_named(split, tmp_path):
    root = copied(split, 2, tmp_path)
    shutil.rmtree(root / "shards/report-0")
    files, done = reported(root)
    assert done.returncode == 1
    ((kind, message),) = findings(files)
    assert kind == "shards"
    assert message.startswith("shard 2 of 2 left no results; let every job of the matrix upload")
    assert "shard 2 of 2 is missing" in done.stdout


def test_an_empty_shard_is_no_failure_of_its_job(tmp_path):
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/test_one.py").write_text(
        "def test_only(episode):\n"
        "    with episode.turn('Hi') as turn:\n"
        "        turn.reply('Hello')\n"
        "    episode.check('polite', True)\n"
    )
    config = "[gate]\neval_min_score = 0.9\n[budgets]\ntotal_cost_usd = 1\n"
    (tmp_path / "agent-eval.toml").write_text(config)
    done = run_shard(tmp_path, 2, 2)
    assert done.returncode == 0, done.stdout
    assert "Agent evals passed: shard 2 of 2 has nothing to run" in done.stdout
    assert json.loads((tmp_path / "shards/report-0/verdict.json").read_text())["summary"]["shard"]

    other = run_shard(tmp_path, 1, 2)
    assert other.returncode == 0, other.stdout
    assert "Agent evals passed: shard 1 of 2, 1 of 1 scenario" in other.stdout
    # What is required of the whole suite is judged where the whole suite is.
    done = run_agent_eval("report", "--results", "shards/*", cwd=tmp_path)
    assert done.returncode == 1
    assert "no evaluation conversation was judged" in " ".join(done.stdout.split())


# `agent-eval run --affected` in a small repository: what runs, what the report and the gate say.


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
