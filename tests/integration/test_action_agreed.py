"""The action over several jobs and days: shards, comment modes, what was agreed."""

from __future__ import annotations

import json

from ci_agent_eval.contract.results import Session, Shard
from tests.builders import episode, write_run
from tests.integration.test_action import HEAD, github, workspace  # noqa: F401 - fixtures


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
