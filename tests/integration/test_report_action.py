"""The action's report: mode, links, commands for reviewers, agreements, scores and the brief."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from ruamel.yaml import YAML

from ci_agent_eval.contract.results import Session, Shard
from tests.builders import episode, failing, write_run
from tests.integration.test_action import (  # noqa: F401 - fixtures
    HEAD,
    ROOT,
    TOKEN,
    github,
    pull,
    workspace,
)
from tests.processes import SECONDS, clean_environ, declared_inputs

# The action without Docker: its program, as its steps start it, against GitHub's fake.


ACTION = YAML(typ="safe").load(ROOT / "report/action.yml")
JUNIT = '<testsuite name="shop"><testcase classname="a" name="{}">{}</testcase></testsuite>'
WITHOUT_POSIX = Path(__file__).with_name("without_posix.py")


@pytest.fixture
def step(workspace, tmp_path):  # noqa: F811
    """Run the step that reports, with these inputs, on the packages of the tests."""
    packages = tmp_path / "temp/agent-eval-report-action/packages"
    packages.parent.mkdir(parents=True)
    packages.symlink_to(Path(click.__file__).parents[1])

    def run(*, before="", **inputs):
        for name in ("summary.md", "output.txt"):
            (workspace.files / name).write_text("")
        declared = declared_inputs(ACTION)
        given = {name.replace("_", "-"): text for name, text in inputs.items()}
        environ = {
            "AGENT_EVAL_INPUTS": json.dumps({**declared, "github-token": TOKEN, **given}),
            "GITHUB_ACTION_PATH": str(ROOT / "report"),
            "PYTHON": sys.executable,
            "RUNNER_TEMP": str(tmp_path / "temp"),
        }
        (report,) = (s for s in ACTION["runs"]["steps"] if s.get("id") == "report")
        assert report["shell"] == "bash"
        script = report["run"].replace('"$GITHUB_ACTION_PATH/', f'{before}"$GITHUB_ACTION_PATH/')
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=workspace.folder,
            env=clean_environ(**workspace.environ(), **environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )

    return run


def comment_and_conclusion(workspace):  # noqa: F811
    (comment,) = workspace.github.comments("octo/shop", 7)
    (run,) = workspace.github.check_runs("octo/shop")
    assert (run.head_sha, run.status) == (HEAD, "completed")
    return comment.body, run.conclusion


def test_reports_results_of_earlier_steps(workspace, step):  # noqa: F811
    (workspace.folder / "shop.xml").write_text(JUNIT.format("test_bad", "<failure>no</failure>"))

    (workspace.folder / "agent-eval.toml").write_text('title = "Shop"\n')

    done = step(junit="shop.xml")

    assert done.returncode == 1, done.stdout + done.stderr
    body, conclusion = comment_and_conclusion(workspace)
    assert "### ❌ Shop failed: 1 of 1" in body
    assert "test_bad" in body
    assert conclusion == "failure"
    assert workspace.outputs["conclusion"] == "failure"
    assert "test_bad" in workspace.summary


def test_says_what_the_container_says(workspace, step):  # noqa: F811
    write_run(workspace.folder / "evals", episode("refund"), episode("exchange"))
    write_run(workspace.folder / "before", episode("refund"))
    inputs = {"mode": "report", "results": "evals", "baseline": "before"}
    assert workspace.action(**inputs).returncode == 0
    expected = comment_and_conclusion(workspace), workspace.summary, workspace.outputs
    files = {p.name: p.read_bytes() for p in (workspace.folder / "agent-eval-report").iterdir()}

    done = step(**inputs)
    assert done.returncode == 0, done.stdout + done.stderr

    assert (comment_and_conclusion(workspace), workspace.summary, workspace.outputs) == expected
    written = {p.name: p.read_bytes() for p in (workspace.folder / "agent-eval-report").iterdir()}
    assert written == files


def test_needs_nothing_that_windows_lacks(workspace, step):  # noqa: F811
    write_run(workspace.folder / "evals/now", episode("refund"), episode("exchange"))
    write_run(workspace.folder / "before", episode("refund"))
    (workspace.folder / "agent-eval.toml").write_text('formats = ["ctrf"]\n')

    inputs = {"results": "evals/*", "baseline": "before", "publish": "false"}
    for given in (inputs, {"mode": "publish"}):
        assert workspace.github.check_runs("octo/shop") == []
        done = step(before=f"{WITHOUT_POSIX} ", **given)
        assert done.returncode == 0, done.stdout + done.stderr

    body, conclusion = comment_and_conclusion(workspace)
    assert "1 new scenario: `exchange`" in body
    assert conclusion == "success"


def test_runs_no_suite(workspace, step):  # noqa: F811
    done = step(mode="run")

    assert done.returncode == 2
    assert "input mode: this action runs no suite" in done.stderr
    assert workspace.github.check_runs("octo/shop") == []


def test_imports_nothing_of_the_workspace(workspace, step):  # noqa: F811
    for name in ("ci_agent_eval", "click", "json", "sitecustomize"):
        (workspace.folder / f"{name}.py").write_text("raise SystemExit('hijacked')\n")
    (workspace.folder / "shop.xml").write_text(JUNIT.format("test_good", ""))

    done = step(junit="shop.xml")

    assert done.returncode == 0, done.stdout + done.stderr
    assert comment_and_conclusion(workspace)[1] == "success"


def test_inputs_are_data(workspace, step):  # noqa: F811
    done = step(junit='$(touch pwned) `touch pwned` "; touch pwned; "')

    assert done.returncode != 0
    assert not (workspace.folder / "pwned").exists()
    assert all("${{" not in one["run"] for one in ACTION["runs"]["steps"] if "run" in one)


# Links to the uploaded page: run, upload, publish, in steps of one job.


PAGE = "https://github.com/octo/shop/actions/runs/42/artifacts/9"
RUN = "https://github.com/octo/shop/actions/runs/42"
LATER = {"publish": "false"}


@pytest.fixture
def ran(workspace):  # noqa: F811
    """The workspace after the step that runs the suite and leaves publishing to a later one."""
    over = {"tool_calls": {"used": 6, "limit": 4}}
    found = (failing("refund_over_limit"), episode("refund_by_email", budgets=over))
    done = workspace.report(*found, suite="desk", **LATER)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "::error file=" not in done.stdout
    return workspace


def find_comments(space):
    return [comment.body for comment in space.github.comments("octo/shop", 7)]


def test_the_first_step_publishes_nothing_and_sets_outputs(ran):
    assert find_comments(ran) == []
    assert ran.github.check_runs("octo/shop") == []
    assert ran.github.writes == []
    assert ran.summary == ""
    assert ran.outputs["conclusion"] == "failure"
    assert (ran.folder / ran.outputs["report-dir"] / "report.html").is_file()


def test_card_annotation_and_check_run_link_to_the_conversation(ran):
    done = ran.action(mode="publish", report_url=PAGE)

    assert done.returncode == 1, done.stdout + done.stderr
    link = f"{PAGE}#scenario=refund_over_limit"
    (comment,) = find_comments(ran)
    assert f'· <a href="{link}">conversation</a> · ' in comment
    assert f"· [report]({PAGE}) · " in comment
    (run,) = ran.github.check_runs("octo/shop")
    assert (run.name, run.conclusion) == ("agent-eval (desk)", "failure")
    assert f'<a href="{link}">conversation</a>' in run.summary
    assert [one["message"].splitlines()[-1] for one in run.annotations] == [
        f"Conversation: {PAGE}#scenario=refund_by_email",
        f"Conversation: {link}",
    ]
    assert f'<a href="{link}">conversation</a>' in ran.summary
    assert ran.outputs["comment-url"]


def test_without_the_address_cards_link_to_the_check_run(ran):
    ran.action(mode="publish", report_url="")

    (run,) = ran.github.check_runs("octo/shop")
    url = ran.outputs["check-run-url"]
    (comment,) = find_comments(ran)
    assert f'· <a href="{url}">check run</a> · ' in comment
    assert "check run</a>" not in run.summary
    assert "Conversation: " not in str(run.annotations)


def test_without_a_check_run_they_link_to_the_step_summary(ran):
    ran.action(mode="publish", check_run="false")

    (comment,) = find_comments(ran)
    assert f'· <a href="{RUN}">summary</a> · ' in comment
    assert "summary</a>" not in ran.summary


@pytest.mark.parametrize("address", ["http://e.example/", "https://me:pw@e.example/x"])
def test_a_wrong_address_publishes_nothing_and_is_not_shown(ran, address):
    done = ran.action(mode="publish", report_url=address)
    assert done.returncode == 2
    assert "option --report-url: must be an https address" in done.stdout
    assert address not in done.stdout + done.stderr
    assert ran.github.writes == []


def test_publish_is_true_or_false(workspace):  # noqa: F811
    done = workspace.action(paths="examples/refund_desk", publish="later")
    assert done.returncode == 2
    assert "input publish: 'later' is neither true nor false" in done.stdout


# The two commands that end a comment work as they are copied.


ODD = "tone of [voice], 'x'"
SUITE = """
import pathlib
import pytest

CHANGED = pathlib.Path("changed").read_text()

def reply(episode, answer):
    with episode.turn("hello") as turn:
        turn.reply(answer)
    assert answer == "Good morning."

@pytest.mark.episode(scenario_id="refund", iterations=10, min_pass_rate=0.0)
def test_refund(episode):
    reply(episode, "Hi." if CHANGED == "refund" else "Good morning.")

@pytest.mark.episode(scenario_id="tone of [voice], 'x'", iterations=10, min_pass_rate=0.0)
def test_tone(episode):
    reply(episode, "Hi." if CHANGED != "refund" and CHANGED else "Good morning.")
"""


@pytest.fixture
def suite(agent_eval, tmp_path):
    """A suite with a baseline; the file `changed` names the scenario that answers differently."""
    folder = tmp_path / "tests/my episodes"
    folder.mkdir(parents=True)
    (folder / "test_desk.py").write_text(SUITE)
    (tmp_path / "changed").write_text("")
    done = agent_eval("run", "tests")
    assert done.returncode == 0, done.stdout
    shutil.copytree(tmp_path / "agent-eval-report", tmp_path / "base")
    (tmp_path / "agent-eval.toml").write_text('[compare]\nbaseline = "base"\n')
    return tmp_path


def read_commands(folder):
    comment = (folder / "agent-eval-report/comment.md").read_text()
    (block,) = re.findall(r"^```sh\n(.*?)^```", comment, re.DOTALL | re.MULTILINE)
    return [shlex.split(command)[1:] for command in block.splitlines()]


def test_the_first_runs_the_scenario_again_and_the_second_accepts_it(agent_eval, suite):
    (suite / "changed").write_text(ODD)
    assert agent_eval("run", "tests").returncode == 1
    inspect, accept = read_commands(suite)

    again = agent_eval(*inspect)
    assert again.returncode == 1, again.stdout + again.stderr
    found = json.loads((suite / "agent-eval-report/results.json").read_text())["episodes"]
    assert [(one["scenario_id"], one["outcome"]) for one in found] == [(ODD, "failed")] * 10

    accepted = agent_eval(*accept)
    assert accepted.returncode == 0, accepted.stderr
    assert f"{ODD} is accepted until 20" in accepted.stdout
    assert agent_eval("run", "tests").returncode == 0


# The action over several jobs and days: shards, comment modes, what was agreed.


def comments(fake):
    return [comment.body for comment in fake.comments("octo/shop", 7)]


def test_shards_publish_nothing_and_the_report_on_them_does(workspace):  # noqa: F811
    fake = workspace.github
    for index in (1, 2):
        folder = {"AGENT_EVAL_REPORT_DIR": f"shards/{index}"}
        done = workspace.action(paths="examples/refund_desk", shard=f"{index}/2", environ=folder)
        assert f"shard {index} of 2" in done.stdout
        assert "::error file=" not in done.stdout
        assert workspace.summary.startswith("\n<!-- agent-eval suite=default -->\n### ")
        workspace.command("publish", f"--report-dir=shards/{index}")
    assert (comments(fake), fake.check_runs("octo/shop")) == ([], [])

    done = workspace.action(mode="report", results="shards/*")
    assert done.returncode == 1, done.stdout
    (comment,) = comments(fake)
    assert "1 of 3 scenarios fails, 1 over budget" in comment
    (run,) = fake.check_runs("octo/shop")
    assert (run.conclusion, run.head_sha) == ("failure", HEAD)


def test_jobs_that_failed_need_a_reason_in_their_results(workspace):  # noqa: F811
    """A shard that dies on a second attempt leaves the artifact of the first."""
    session = Session(state="finished", selected=1, shard=Shard(index=1, count=1))
    write_run(workspace.folder / "shards/1", episode(), session=session)
    passing = {"mode": "report", "results": "shards/*"}
    assert workspace.action(**passing, jobs_result="success").returncode == 0
    for ended in ("failure", "cancelled", "skipped"):
        done = workspace.action(**passing, jobs_result=ended)
        assert done.returncode == 1, done.stdout
        said = " ".join(done.stdout.split())
        assert f"GitHub says that it ended in {ended}" in said
        assert "failed: the job failed and no result says why; a test file may not have" in said
    assert workspace.github.check_runs("octo/shop")[-1].conclusion == "failure"
    advisory = {"scenario_id": "b", "gate": "advisory", "outcome": "failed"}
    (workspace.folder / "more.json").write_text(json.dumps({"episodes": [advisory]}))
    explained = {"mode": "report", "results": "shards/* more.json", "jobs_result": "failure"}
    assert workspace.action(**explained).returncode == 0
