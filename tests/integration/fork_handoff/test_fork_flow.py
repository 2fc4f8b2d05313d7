"""A fork's pull request from its own run to what the privileged workflow publishes of it."""

from __future__ import annotations

import json
import subprocess
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from ci_agent_eval.render.markdown.guard import find_foreign_elements
from tests.archive_builders import hostile_zips, report_files, report_zip, zipped
from tests.builders import junit_case, junit_xml
from tests.github_fake import FakeGitHub
from tests.processes import run_agent_eval

REPO, FORK = "octo/shop", "mallory/shop"
HEAD, MERGE = "a" * 40, "c" * 40
TOKEN = "ghs_" + "t" * 36
NAME = "agent-eval-report"
HOSTILE = hostile_zips(HEAD)

SUITE = """
def test_refund(episode):
    with episode.turn("Refund order 7, please.") as turn:
        turn.tool_call("lookup_order", {"order": 7})
        turn.reply("@octocat ![x](http://evil.example) done")
    assert str(PASSES) == "True"
"""


class Flow:
    """The two workflows of docs/forks.md, each step a process, against the fake."""

    def __init__(self, folder: Path, github: FakeGitHub) -> None:
        self.folder = folder
        self.github = github
        github.token(TOKEN)
        github.token("ghs_of_the_fork", can_write=False, can_read_actions=False)
        github.add_repo(REPO)
        github.add_pull(REPO, 7, HEAD, head_repo=FORK, head_ref="main")
        self.run = github.add_workflow_run(
            REPO, event="pull_request", head_sha=HEAD, head_repo=FORK, head_branch="main"
        )
        self.base = folder / "base"
        self.base.mkdir()
        self.attempt, self.conclusion = 1, "success"
        """What GitHub says of the fork's run."""
        self.publications = 0
        self.environ: dict[str, str] = {}

    def unprivileged(self, suite: str) -> subprocess.CompletedProcess[str]:
        """Run the fork's suite as its own workflow does, and upload what it leaves."""
        work = self.folder / "fork"
        work.mkdir(exist_ok=True)
        (work / "test_refund.py").write_text(suite)
        pull = {"number": 7, "head": {"sha": HEAD, "repo": {"full_name": FORK}}}
        done = self._action(
            work,
            "pull_request",
            {"pull_request": {**pull, "base": {"ref": "main"}}},
            run_id=self.run.id,
            attempt=self.attempt,
            token="ghs_of_the_fork",
            paths="test_refund.py",
            comment="off",
            check_run="false",
        )
        self.conclusion = "failure" if done.returncode else "success"
        packed = BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            report = work / "agent-eval-report"
            for file in sorted(report.rglob("*")):
                if file.is_file() and not file.name.startswith("."):
                    archive.write(file, file.relative_to(report).as_posix())
        self.upload(packed.getvalue())
        return done

    def upload(self, data: bytes, **fields: object) -> None:
        self.github.add_artifact(REPO, self.run.id, NAME, data=data, **fields)

    def privileged(self, *, token: str = TOKEN, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Publish it from the base repository's own checkout."""
        run = {
            "id": self.run.id,
            "workflow_id": 1,
            "event": "pull_request",
            "conclusion": self.conclusion,
            "run_attempt": self.attempt,
            "head_sha": HEAD,
            "head_branch": "main",
            "head_repository": {"full_name": FORK},
            "pull_requests": [],
        }
        self.publications += 1
        return self._action(
            self.base,
            "workflow_run",
            {"workflow_run": run, "action": "completed"},
            run_id=9999,
            attempt=self.publications,
            token=token,
            mode="publish",
            **inputs,
        )

    def _action(self, work, name, payload, *, run_id, attempt, token, **inputs):
        event = self.folder / f"{name}.json"
        event.write_text(json.dumps({"repository": {"full_name": REPO}, **payload}))
        given = {f"INPUT_{k.upper().replace('_', '-')}": v for k, v in inputs.items()}
        environ = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_API_URL": self.github.url,
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": REPO,
            "GITHUB_RUN_ATTEMPT": str(attempt),
            "GITHUB_RUN_ID": str(run_id),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_SHA": MERGE,
            "GITHUB_STEP_SUMMARY": str(self.folder / f"{name}.md"),
            "GITHUB_WORKSPACE": str(work),
            "INPUT_GITHUB-TOKEN": token,
        }
        return run_agent_eval("action", cwd=work, **environ, **given, **self.environ)

    @property
    def comments(self):
        return [comment.body for comment in self.github.comments(REPO, 7)]

    @property
    def check_runs(self):
        return [(run.head_sha, run.conclusion) for run in self.github.check_runs(REPO)]

    @property
    def summary(self):
        path = self.folder / "workflow_run.md"
        return path.read_text() if path.exists() else ""

    def assert_only_the_refusal_is_published(self):
        assert self.check_runs == [(HEAD, "failure")]
        assert self.comments == []
        assert self.summary == ""


@pytest.fixture
def flow(tmp_path):
    with FakeGitHub() as github:
        yield Flow(tmp_path, github)
        assert github.violations == []


@pytest.mark.parametrize(("passes", "conclusion"), [("True", "success"), ("False", "failure")])
def test_end_to_end(flow, passes, conclusion):
    flow.unprivileged(SUITE.replace("PASSES", passes))
    assert flow.github.writes == []
    done = flow.privileged()
    assert done.returncode == (0 if passes == "True" else 1), done.stdout + done.stderr
    assert flow.check_runs == [(HEAD, conclusion)]
    (body,) = flow.comments
    assert ("Agent evals passed" in body) is (passes == "True")
    # A failing answer is shown, as code alone.
    assert ("@octocat ![x](http" in body) is (passes == "False")
    ours = (f"https://github.com/{REPO}/", f"{flow.github.url}/{REPO}/runs/")
    assert find_foreign_elements(body, ours) == ()
    assert TOKEN not in done.stdout + done.stderr
    session = json.loads((flow.folder / "fork/agent-eval-report/session.json").read_text())
    assert session["commit"] == HEAD


def test_what_the_fork_rendered_and_configured_counts_for_nothing(flow):
    """The base repository's rule decides; here it asks for more than the fork's."""
    flow.upload(report_zip(commit=HEAD))
    (flow.base / "agent-eval.toml").write_text("[budgets]\ntotal_tokens = 1\n")
    done = flow.privileged()
    assert done.returncode == 1, done.stdout + done.stderr
    assert flow.check_runs == [(HEAD, "failure")]
    assert "Agent evals failed: 1 suite budget not measured" in flow.comments[0]


def test_an_end_that_only_the_process_shows_is_taken_over(flow):
    end = "\nimport atexit, os\natexit.register(os._exit, 7)\n"
    assert flow.unprivileged(SUITE.replace("PASSES", "True") + end).returncode == 1
    done = flow.privileged()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "pytest ended with status 7, but its session says 0" in flow.comments[0]
    assert flow.check_runs == [(HEAD, "failure")]


def test_a_run_that_failed_passes_only_with_a_reason(flow):
    flow.upload(report_zip(commit=HEAD))
    flow.conclusion = "timed_out"
    done = flow.privileged()
    assert done.returncode == 1, done.stdout + done.stderr
    assert flow.check_runs == [(HEAD, "failure")]
    assert "GitHub says that it ended in timed out" in " ".join(flow.comments[0].split())


def test_results_of_another_suite_answer_for_no_check(flow):
    flow.upload(report_zip(commit=HEAD, suite="desk"))
    done = flow.privileged(suite="shop")
    assert done.returncode == 1, done.stdout + done.stderr
    assert flow.check_runs == [(HEAD, "failure")]
    assert "its results are of suite 'desk', this is suite 'shop'" in flow.comments[0]


def test_an_attempt_that_left_nothing_is_not_published_from_the_one_before(flow):
    """All jobs run again: the second attempt dies before it uploads, and GitHub says success."""
    flow.upload(report_zip(commit=HEAD, run=str(flow.run.id), attempt=1))
    flow.attempt = 2
    done = flow.privileged()
    assert done.returncode == 1, done.stdout + done.stderr
    assert flow.check_runs == [(HEAD, "failure")]
    assert "attempt 2 left no results" in flow.comments[0]
    flow.upload(report_zip(commit=HEAD, run=str(flow.run.id), attempt=2))
    assert flow.privileged().returncode == 0
    assert [conclusion for _, conclusion in flow.check_runs][-1] == "success"


def test_results_of_a_later_attempt_are_left_to_it(flow):
    flow.attempt = 2
    flow.unprivileged(SUITE.replace("PASSES", "True"))
    flow.attempt = 1
    assert (
        "the artifact is from attempt 2, but attempt 1 is being published"
        in flow.privileged().stderr
    )
    flow.assert_only_the_refusal_is_published()


def test_a_hand_off_without_an_episode_fails(flow):
    """Results were deleted before the upload, and what is left are passing tests."""
    files = report_files(commit=HEAD)
    flow.upload(zipped({name: files[name] for name in ("session.json", "junit.xml")}))
    done = flow.privileged()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the run left no results.json" in flow.comments[0]
    session = json.loads(files["session.json"]) | {"selected": 0, "exit_status": 0}
    empty = '{"schema_version":"1","suite":"default","episodes":[]}'
    junit = junit_xml(junit_case())
    members = {"session.json": json.dumps(session), "results.json": empty, "junit.xml": junit}
    flow.upload(zipped(members))
    done = flow.privileged()
    assert done.returncode == 1, done.stdout + done.stderr
    assert {conclusion for _, conclusion in flow.check_runs} == {"failure"}


def test_a_fault_of_ours_fails_the_check_too(flow):
    """Whatever breaks: here what draws the page, in the place of which there is another module."""
    (flow.base / "jinja2.py").write_text("raise RecursionError")
    flow.environ["PYTHONPATH"] = str(flow.base)
    flow.upload(report_zip(commit=HEAD))
    assert flow.privileged().returncode == 3
    flow.assert_only_the_refusal_is_published()
    (run,) = flow.github.check_runs(REPO)
    assert "an unexpected RecursionError ended the job" in run.summary


def test_judging_without_a_checkout_is_said(flow):
    flow.upload(report_zip(commit=HEAD))
    assert "no agent-eval.toml was found" in flow.privileged().stdout
    (flow.base / "agent-eval.toml").write_text("[gate]\n")
    assert "no agent-eval.toml was found" not in flow.privileged().stdout


def test_the_pull_request_is_the_fork_s_own(flow):
    """Others are at the same commit, or come from a branch of the same name."""
    for number, sha, repo in [(8, HEAD, REPO), (9, "e" * 40, FORK), (10, HEAD, "eve/shop")]:
        flow.github.add_pull(REPO, number, sha, head_repo=repo, head_ref="main")
    flow.upload(report_zip(commit=HEAD))
    flow.privileged()
    assert len(flow.comments) == 1
    assert all(not flow.github.comments(REPO, number) for number in (8, 9, 10))


# A process each, so not every case there is: test_take_over has the others.
@pytest.mark.parametrize("case", ["bomb", "wrong schema"])
def test_a_hostile_hand_off_is_refused(flow, case):
    data, sentence = HOSTILE[case]
    flow.upload(data)
    done = flow.privileged()
    assert done.returncode == 2, done.stdout + done.stderr
    assert sentence in done.stderr
    flow.assert_only_the_refusal_is_published()
    (run,) = flow.github.check_runs(REPO)
    assert run.title == "The results were refused"
    assert sentence in run.summary


def test_nothing_handed_over_is_refused(flow):
    done = flow.privileged()
    assert (done.returncode, "left no artifact" in done.stderr) == (2, True)
    flow.assert_only_the_refusal_is_published()


def test_a_token_without_actions_read_is_told_so(flow):
    flow.upload(report_zip(commit=HEAD))
    flow.github.token("ghs_narrow", can_read_actions=False)
    done = flow.privileged(token="ghs_narrow")
    assert done.returncode == 3
    assert "Add `permissions: actions: read` to the job" in done.stderr
    flow.assert_only_the_refusal_is_published()


def test_a_refusal_that_cannot_be_published_either(flow):
    flow.github.faults.add("unprocessable", on="POST */check-runs", times=None)
    done = flow.privileged()
    assert done.returncode == 3
    assert "left no artifact" in done.stderr
    assert "And this could not be published" in done.stderr


def test_without_a_token_nothing_is_done(flow):
    done = flow.privileged(token="")
    assert (done.returncode, "there is no token" in done.stderr) == (2, True)
    assert flow.github.requests == []
