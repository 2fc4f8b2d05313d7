"""The workflows that the documents show are files, linted as such, and keep their promises."""

from __future__ import annotations

from pathlib import Path

from ruamel.yaml import YAML

from scripts.reference import build_example_workflows
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
WORKFLOWS = {
    path.stem: path.read_text() for path in sorted((ROOT / "docs/workflows").glob("*.yml"))
}
PAGES = "\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))


def parsed(text):
    return YAML(typ="safe").load(text)


def steps(name):
    return [step for job in parsed(WORKFLOWS[name])["jobs"].values() for step in job["steps"]]


def uses(name, action):
    return next(step for step in steps(name) if step.get("uses", "").startswith(action))


def test_the_files_are_those_that_init_writes():
    assert {f"{name}.yml": text for name, text in WORKFLOWS.items()} == build_example_workflows()


@each_row("name", WORKFLOWS)
def test_a_page_shows_it_word_for_word(name):
    assert f"```yaml\n{WORKFLOWS[name]}```" in PAGES


@each_row("name", WORKFLOWS)
def test_it_gives_inputs_that_the_action_has(name):
    known = parsed((ROOT / "action.yml").read_text())["inputs"]
    given = [step["with"] for step in steps(name) if "agent-eval-action" in step.get("uses", "")]
    assert given or name == "no-docker"
    assert all(set(inputs) <= set(known) for inputs in given)


def test_the_run_of_a_fork_can_write_nothing():
    workflow = parsed(WORKFLOWS["fork-run"])
    (job,) = workflow["jobs"].values()
    assert (workflow["permissions"], job["permissions"]) == ({}, {"contents": "read"})
    assert "secrets" not in WORKFLOWS["fork-run"]
    inputs = uses("fork-run", "org/agent-eval-action")["with"]
    assert (inputs["comment"], inputs["check-run"]) == ("off", "false")


def test_what_publishes_runs_nothing_of_theirs():
    workflow = parsed(WORKFLOWS["fork-publish"])
    (job,) = workflow["jobs"].values()
    assert list(workflow["on"]) == ["workflow_run"]
    assert workflow["on"]["workflow_run"]["workflows"] == [parsed(WORKFLOWS["fork-run"])["name"]]
    assert workflow["permissions"] == {}
    assert job["permissions"] == {
        "contents": "read",
        "actions": "read",
        "pull-requests": "write",
        "checks": "write",
    }
    assert all("run" not in step for step in job["steps"])
    assert uses("fork-publish", "actions/checkout")["with"] == {"persist-credentials": False}
    assert uses("fork-publish", "org/agent-eval-action")["with"]["mode"] == "publish"
    assert "download-artifact" not in WORKFLOWS["fork-publish"]
    assert "github.event.workflow_run.head_branch" not in WORKFLOWS["fork-publish"]


def test_shards_are_reported_by_one_job_whatever_became_of_them():
    jobs = parsed(WORKFLOWS["shards"])["jobs"]
    shard, report = jobs["shard"], jobs["report"]
    (given,) = (s["with"] for s in shard["steps"] if "agent-eval" in s["uses"])
    count = len(shard["strategy"]["matrix"]["shard"])
    assert given["shard"] == f"${{{{ matrix.shard }}}}/{count}"
    assert shard["strategy"]["matrix"]["shard"] == list(range(1, count + 1))
    assert shard["strategy"]["fail-fast"] is False
    assert shard["permissions"] == {"contents": "read"}
    assert (report["needs"], report["if"]) == ("shard", "always()")
    uploaded = next(s for s in shard["steps"] if "upload-artifact" in s.get("uses", ""))
    fetched = uses("shards", "actions/download-artifact")["with"]
    assert (uploaded["if"], uploaded["with"]["overwrite"]) == ("always()", True)
    name = uploaded["with"]["name"]
    assert fetched["pattern"] == name.replace("${{ matrix.shard }}", "*")
    reporting = next(s["with"] for s in report["steps"] if "agent-eval-action" in s["uses"])
    assert reporting == {
        "mode": "report",
        "results": f"{fetched['path']}/*",
        "jobs-result": "${{ needs.shard.result }}",
        "publish": "false",
    }
