from __future__ import annotations

import pytest

from ci_agent_eval.app.setup.workflow_file import parse_workflow

WORKFLOW = """
on: pull_request
jobs:
  gate:
    steps:
      - uses: {}
"""


@pytest.mark.parametrize(
    ("action", "mode"),
    [("org/agent-eval-action@v1", "run"), ("org/agent-eval-action/report@v1", "report")],
)
def test_each_action_has_its_default_mode(action, mode):
    (job,) = parse_workflow("ci.yml", WORKFLOW.format(action)).jobs
    assert [(step.mode, step.version) for step in job.steps] == [(mode, "v1")]


def test_an_expression_of_github_is_one_word():
    text = "agent-eval run tests --shard ${{ matrix.shard }}/3 more"
    (job,) = parse_workflow("ci.yml", WORKFLOW.replace("uses: {}", f"run: {text}")).jobs
    assert [step.inputs for step in job.steps] == [
        {"paths": "tests more", "shard": "${{ matrix.shard }}/3"}
    ]


def test_permissions_of_the_workflow_hold_for_jobs_without_their_own():
    shared = "permissions: {checks: write}\n" + WORKFLOW.format("org/agent-eval-action@v1")
    (job,) = parse_workflow("ci.yml", shared).jobs
    assert job.permissions == {"checks": "write"}
    (job,) = parse_workflow("ci.yml", f"{shared}    permissions: read-all\n").jobs
    assert job.permissions == {"*": "read"}


def test_a_file_that_is_uploaded_without_an_archive_is_none():
    upload = "      - {uses: actions/upload-artifact@v4, with: {name: page, archive: %s}}\n"
    text = WORKFLOW.format("org/agent-eval-action@v1")
    (job,) = parse_workflow("ci.yml", text + upload % "true" + upload % "false").jobs
    assert job.artifacts == ("page",)
