"""The action as GitHub's runner starts it, in a process, against GitHub's fake."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from ci_agent_eval.contract.results import Session
from tests.archive_builders import zipped
from tests.builders import episode, failing, write_run
from tests.github_fake import FakeGitHub
from tests.integration.refund_desk import mend
from tests.processes import run_agent_eval
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
HEAD = "a" * 40
TOKEN = "ghs_" + "t" * 36


@pytest.fixture
def github():
    with FakeGitHub() as fake:
        fake.token(TOKEN)
        fake.add_repo("octo/shop")
        fake.add_pull("octo/shop", 7, HEAD)
        yield fake
        assert fake.violations == []


class Workspace:
    """A checked-out repository and the files of one job."""

    def __init__(self, folder: Path, github: FakeGitHub) -> None:
        self.folder = folder / "workspace"
        self.github = github
        self.files = folder / "files"
        self.files.mkdir()
        (self.folder / "examples").mkdir(parents=True)
        (self.folder / ".git").mkdir()
        shutil.copytree(ROOT / "examples/refund_desk", self.folder / "examples/refund_desk")
        self.event("pull_request", pull_request=pull())

    def event(self, name, **payload):
        self.name = name
        repository = {"full_name": "octo/shop"}
        (self.files / "event.json").write_text(json.dumps({"repository": repository, **payload}))

    def environ(self):
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.github.url,
            "GITHUB_EVENT_NAME": self.name,
            "GITHUB_EVENT_PATH": str(self.files / "event.json"),
            "GITHUB_OUTPUT": str(self.files / "output.txt"),
            "GITHUB_REPOSITORY": "octo/shop",
            "GITHUB_RUN_ID": "42",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_SHA": "b" * 40,
            "GITHUB_STEP_SUMMARY": str(self.files / "summary.md"),
            "GITHUB_WORKSPACE": str(self.folder),
        }

    def action(self, *, token=TOKEN, environ=None, **inputs):
        for name in ("summary.md", "output.txt"):
            (self.files / name).write_text("")
        given = {f"INPUT_{k.upper().replace('_', '-')}": v for k, v in inputs.items()}
        set_by_the_step = {"INPUT_GITHUB-TOKEN": token, **given, **(environ or {})}
        return run_agent_eval("action", cwd=self.folder, **{**self.environ(), **set_by_the_step})

    def report(self, *episodes, **options):
        """Report on results of earlier steps."""
        write_run(self.folder / "left", *episodes)
        return self.action(mode="report", results="left", **options)

    def command(self, *arguments):
        environ = {**self.environ(), "GITHUB_TOKEN": TOKEN}
        return run_agent_eval(*arguments, cwd=self.folder, **environ)

    @property
    def outputs(self):
        return dict(
            re.findall(r"^([\w-]+)=(.*)$", (self.files / "output.txt").read_text(), re.MULTILINE)
        )

    @property
    def summary(self):
        return (self.files / "summary.md").read_text()


def pull(repository="octo/shop"):
    return {"number": 7, "head": {"sha": HEAD, "repo": {"full_name": repository}}}


@pytest.fixture
def workspace(tmp_path, github):
    return Workspace(tmp_path, github)


def test_the_whole_job_on_a_pull_request_and_again(workspace, github):
    done = workspace.action(paths="examples/refund_desk")
    assert done.returncode == 1, done.stdout + done.stderr
    (comment,) = github.comments("octo/shop", 7)
    link = f"https://github.com/octo/shop/blob/{HEAD}/examples/refund_desk/test_refunds.py#L25"
    assert link in comment.body
    (run,) = github.check_runs("octo/shop")
    assert (run.head_sha, run.status, run.conclusion) == (HEAD, "completed", "failure")
    assert [(a["start_line"], a["annotation_level"]) for a in run.annotations] == [
        (25, "failure"),
        (32, "failure"),
    ]
    assert "refund_over_limit" in workspace.summary
    outputs = workspace.outputs
    assert outputs["conclusion"] == "failure"
    assert (outputs["scenarios"], outputs["scenarios-passing"]) == ("3", "2")
    assert (outputs["episodes"], outputs["budget-violations"]) == ("3", "1")
    assert (outputs["conversations"], outputs["average-score"]) == ("0", "")
    assert outputs["comment-url"]
    assert outputs["check-run-url"]
    assert (workspace.folder / outputs["report-dir"] / "verdict.json").is_file()

    # The same results write nothing, and others update in place.
    writes = len(github.writes)
    workspace.action(mode="publish")
    assert len(github.writes) == writes
    mend(workspace.folder / "examples/refund_desk")
    done = workspace.action(paths="examples/refund_desk")
    assert done.returncode == 0, done.stdout
    (comment,) = github.comments("octo/shop", 7)
    assert "Agent evals passed" in comment.body
    assert [run.conclusion for run in github.check_runs("octo/shop")] == ["failure", "success"]


LISTED = """\
[required]
"refund_by_email" = "examples/refund_desk/test_refunds.py"
"voucher" = "examples/refund_desk/test_vouchers.py"
"""


def test_a_partial_run_is_never_the_evidence_of_the_check(workspace, github):
    mend(workspace.folder / "examples/refund_desk")
    (workspace.folder / "agent-eval-scenarios.toml").write_text(LISTED)
    restricted = {"PYTEST_ADDOPTS": "-k email"}
    done = workspace.action(paths="examples/refund_desk", environ=restricted)
    assert done.returncode == 1
    assert "a partial run is not evidence" in workspace.outputs["headline"]
    assert [run.conclusion for run in github.check_runs("octo/shop")] == ["failure"]
    assert "restricted by <code>-k email</code>" in github.comments("octo/shop", 7)[0].body

    folder = {"AGENT_EVAL_REPORT_DIR": "again"}
    again = workspace.action(mode="report", results="agent-eval-report", environ=folder)
    assert again.returncode == 1
    verdict = json.loads((workspace.folder / "again/verdict.json").read_text())
    assert [reason["kind"] for reason in verdict["verdict"]["reasons"]] == ["partial"]


@pytest.mark.parametrize(("commit", "passes"), [(HEAD, True), ("0" * 40, False)])
def test_report_mode_holds_results_against_the_commit_of_the_run(workspace, github, commit, passes):
    session = Session(state="finished", selected=1, commit=commit)
    write_run(workspace.folder / "left", episode("refund"), session=session)
    done = workspace.action(mode="report", results="left")
    assert (done.returncode == 0) is passes, done.stdout
    assert ("about another commit" in done.stdout) is not passes


def test_a_read_only_token_of_a_fork_fails_nothing(workspace, github):
    github.token("ghs_readonly", can_write=False)
    workspace.event("pull_request", pull_request=pull("fork/shop"))
    done = workspace.report(episode("refund"), token="ghs_readonly")
    assert done.returncode == 0, done.stdout
    refused = [line for line in done.stdout.splitlines() if "comes from a fork" in line]
    assert refused
    assert all(line.startswith("::notice ") for line in refused)
    assert "Agent evals passed" in workspace.summary
    assert github.comments("octo/shop", 7) == []


def test_a_push_comments_on_the_open_pull_request_of_its_commit(workspace, github):
    workspace.event("push", after=HEAD, ref="refs/heads/topic")
    workspace.report(episode("refund"), environ={"GITHUB_SHA": HEAD})
    assert len(github.comments("octo/shop", 7)) == 1


LOUD = """
import os

def test_look(episode):
    found = [k for k, v in os.environ.items() if 'ghs_' in v or 'TOKEN' in k]
    episode.check('no token', not found, reason=str(found))
    print('::set-output name=conclusion::failure')
    with episode.turn('x') as turn:
        turn.reply('y')
    assert not [n for n in os.environ if n in ('GITHUB_OUTPUT', 'GITHUB_STEP_SUMMARY')]
"""


def test_neither_installation_nor_suite_has_what_is_the_action_s(workspace, github):
    """No shell, no token, no workflow command, and no output to set."""
    (workspace.folder / "setup.py").write_text("open('made', 'w').write('it')\n")
    (workspace.folder / "test_loud.py").write_text(LOUD)
    lines = "python setup.py\npython -c 'print(1)' ; touch shell"
    done = workspace.action(paths="test_loud.py", pytest_args="-s", install=lines)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (workspace.folder / "made").read_text() == "it"
    assert not (workspace.folder / "shell").exists()
    assert TOKEN not in done.stdout + done.stderr
    before, _, after = done.stdout.partition("::set-output name=conclusion::failure")
    word = re.findall(r"^::stop-commands::(\w{32})$", before, re.MULTILINE)[-1]
    assert f"\n::{word}::\n" not in before
    assert f"\n::{word}::\n" in after
    assert workspace.outputs["conclusion"] == "success", done.stdout


UV = """#!/bin/sh
echo "$*" >>"$0.log"
[ "$1" = venv ] || exit 0
for target; do :; done
[ "$6" = 3.14 ] && {{ echo "no 3.14 here"; exit 2; }}
mkdir -p "$target/bin"
printf '#!/bin/sh\\nexec {python} "$@"\\n' >"$target/bin/python"
chmod +x "$target/bin/python"
"""


def test_another_python_is_brought_by_uv_before_the_installation(workspace, github):
    uv = workspace.files / "uv"
    uv.write_text(UV.format(python=sys.executable))
    uv.chmod(0o755)
    environ = {"PATH": f"{workspace.files}:{os.environ['PATH']}"}
    (workspace.folder / "test_one.py").write_text(LOUD)
    (workspace.folder / "show.py").write_text(
        "import os; open('env', 'w').write(os.environ['VIRTUAL_ENV'])"
    )
    wanted = {"python_version": "3.12", "install": "python show.py", "environ": environ}
    done = workspace.action(paths="test_one.py", **wanted)
    assert done.returncode == 0, done.stdout + done.stderr
    target = (workspace.folder / "env").read_text()
    assert uv.with_name("uv.log").read_text().splitlines() == [
        f"venv --no-config --no-project --seed --python 3.12 {target}",
        f"pip install --no-config --python {target}/bin/python pytest pydantic",
    ]
    assert not Path(target).exists()

    done = workspace.action(paths="test_one.py", **{**wanted, "python_version": "3.14"})
    assert done.returncode == 2
    assert "exited with status 2; the suite did not run" in done.stderr
    assert "no 3.14 here" in done.stderr


def test_an_install_that_fails_is_reported_and_fails(workspace, github):
    done = workspace.action(
        paths="examples/refund_desk", install="python -c 'raise SystemExit(\"no wheel\")'"
    )
    assert done.returncode == 1
    body = github.comments("octo/shop", 7)[0].body
    assert "Agent evals failed: the installation failed" in body
    assert "<code>no wheel</code>" in body
    assert "exited with status 1; the suite did not run" in body


def test_base_runs_are_the_baseline_of_a_pull_request(workspace, github):
    """The first run passes on main and is uploaded; the pull request breaks what passed."""
    base = github.add_workflow_run("octo/shop", head_sha="1" * 40)
    workspace.event("push", after="1" * 40, ref="refs/heads/main")
    on_main = {"GITHUB_SHA": "1" * 40, "GITHUB_RUN_ID": str(base.id)}
    done = workspace.report(episode("refund"), baseline="artifact", environ=on_main)
    assert done.returncode == 0, done.stdout
    assert "no run of this workflow on main has come to its end yet" in workspace.summary
    folder = workspace.folder / workspace.outputs["report-dir"]
    data = zipped({p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()})
    github.add_artifact("octo/shop", base.id, "agent-eval-report", data=data)

    own = github.add_workflow_run("octo/shop", event="pull_request", head_sha=HEAD)
    workspace.event("pull_request", pull_request={**pull(), "base": {"ref": "main"}})
    on_pull = {"GITHUB_RUN_ID": str(own.id)}
    done = workspace.report(failing("refund"), baseline="artifact", environ=on_pull)
    assert done.returncode == 1, done.stdout
    (comment,) = github.comments("octo/shop", 7)
    assert "main@1111111" in comment.body
    assert "newly fail" in comment.body.lower()


@each_row(
    ("inputs", "sentence"),
    [
        ({"mode": "walk"}, "input mode: 'walk' is not a mode; use run, report or publish"),
        ({"paths": "'open"}, 'input paths: No closing quotation in "\'open"; close the quote'),
        (
            {"min_pass_rate": "0.5"},
            "input min-pass-rate: the action has no such input; write gate.",
        ),
        ({"check_run": "high"}, "option --check-run: Input should be a valid boolean"),
        ({"config": "gone.toml"}, "gone.toml: cannot be read"),
        (
            {"mode": "report", "shard": "1/2", "results": "x"},
            "input shard: only mode run reads it, this is mode report; leave it out; name the",
        ),
        ({"junit": "x.xml"}, "input junit: only mode report reads it, this is mode run; leave it"),
        ({"mode": "report", "results": "x", "paths": "y"}, "input paths: only mode run reads it"),
        ({"python_version": "3.1"}, "input python-version: '3.1' is not Python 3.11 or newer"),
        ({"mode": "publish", "python_version": "3.12"}, "input python-version: only mode run"),
        ({"mode": "publish"}, "no earlier step of this job wrote a report"),
    ],
)
def test_a_wrong_input_is_exit_2_and_an_error_on_the_run_s_page(
    workspace, github, inputs, sentence
):
    done = workspace.action(**inputs)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "::error title=agent-eval::" in done.stdout
    assert github.writes == []


def test_a_pass_that_could_not_be_published_is_exit_3(workspace, github):
    github.faults.add("unprocessable", on="POST */comments", times=None)
    done = workspace.report(episode("refund"))
    assert done.returncode == 3, done.stdout
    assert "::warning title=agent-eval::" in done.stdout
    assert github.check_runs("octo/shop")[0].conclusion == "success"


def test_a_report_of_another_commit_is_not_published(workspace, github):
    workspace.report(failing("refund"), check_run="false", comment="off")
    folder = workspace.folder / workspace.outputs["report-dir"]
    assert json.loads((folder / "verdict.json").read_text())["commit"] == HEAD
    moved = "c" * 40
    workspace.event(
        "pull_request", pull_request={**pull(), "head": {**pull()["head"], "sha": moved}}
    )

    done = workspace.command("publish", f"--report-dir={folder}")

    assert done.returncode == 2
    assert f"is about commit {HEAD}, but this run is about {moved}; run" in done.stderr
    assert github.writes == []
    workspace.event("pull_request", pull_request=pull())
    assert workspace.command("publish", f"--report-dir={folder}").returncode == 1
    assert len(github.comments("octo/shop", 7)) == 1
