"""The workflows that the documents show are files, linted as such, and keep their promises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from ruamel.yaml import YAML

from ci_agent_eval.app.setup.first_files import build_workflow
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
WORKFLOWS = {
    path.stem: path.read_text() for path in sorted((ROOT / "docs/workflows").glob("*.yml"))
}
PAGES = {path.name: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}
BLOCKS = [
    (name, block)
    for text in PAGES.values()
    for name, block in re.findall(r"^```yaml *(\S*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
]
"""The name after `yaml`, if it has one, and the text of each block of a page."""


def parsed(text):
    return YAML(typ="safe").load(text)


def steps(name):
    return [step for job in parsed(WORKFLOWS[name])["jobs"].values() for step in job["steps"]]


def uses(name, action):
    return next(step for step in steps(name) if step.get("uses", "").startswith(action))


def test_the_first_one_is_written_by_init():
    assert WORKFLOWS["baseline"] == build_workflow()


@each_row("name", WORKFLOWS)
def test_a_page_shows_or_links_it_and_quotes_it_word_for_word(name):
    quoted = [block for title, block in BLOCKS if title == f"workflows/{name}.yml"]
    assert quoted
    depths = [" " * depth for depth in range(0, 12, 2)]
    assert all(any(indent(block, depth) in WORKFLOWS[name] for depth in depths) for block in quoted)
    linked = any(f"](workflows/{name}.yml)" in text for text in PAGES.values())
    assert linked or WORKFLOWS[name] in quoted


def test_the_action_has_the_inputs_that_workflows_and_pages_give_it():
    known = set(parsed((ROOT / "action.yml").read_text())["inputs"])
    texts = [*WORKFLOWS.values(), *(block for _, block in BLOCKS if "agent-eval-action" in block)]
    given = [set(step["with"]) for text in texts for step in list_action_steps(parsed(text))]
    assert len(given) > len(WORKFLOWS)
    assert [inputs - known for inputs in given if inputs - known] == []


def list_action_steps(node) -> Iterator[dict]:
    if isinstance(node, list):
        for entry in node:
            yield from list_action_steps(entry)
    elif isinstance(node, dict):
        if "org/agent-eval-action" in str(node.get("uses", "")):
            yield node
        yield from list_action_steps(list(node.values()))


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
