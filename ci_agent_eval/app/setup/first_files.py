"""`agent-eval init`: a workflow, a configuration and a first test for the repository's agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import indent

from ci_agent_eval.app.setup.repository import FoundAgent, ProjectRepository

CONFIG_NAME = "agent-eval.toml"
PACKAGE = "git+https://github.com/org/agent-eval-action@v1"
WORKFLOW = ".github/workflows/agent-eval.yml"

_CONFIG = """\
# Settings of agent-eval; all are in its docs/reference.md.
[gate]
# The share of a scenario's iterations that must pass.
min_pass_rate = 1.0
"""

_PYTEST_INI = """\
[pytest]
pythonpath = .
"""

_SCRIPTED_TEST = '''\
"""A first agent episode: replace `answer` by your agent."""

import pytest


def answer(message):
    """Stand in for your agent: a script, until you call the real one here."""
    return f"You said: {message}"


@pytest.mark.episode(scenario_id="greets_back", budgets={"max_turns": 1, "latency_ms": 2000})
def test_greets_back(episode):
    with episode.turn("hello") as turn:
        turn.reply(answer("hello"), source="scripted")
    assert "hello" in episode.turns[-1].content
'''

_WORKFLOW = """\
# Compares each pull request with the last runs of the branch it goes to.
name: agent-eval
on:
  pull_request:
  merge_group:
  push:
    branches: [BRANCH] # runs on it are the baseline

permissions: {}

concurrency:
  group: ${{ github.workflow }}-${{ github.ref }}
  cancel-in-progress: ${{ github.event_name == 'pull_request' }}

jobs:
  episodes:
    name: Agent episodes
    runs-on: ubuntu-latest
    timeout-minutes: 30
    permissions:
      contents: read # to read the suite
      actions: read # to download the artifacts of earlier runs
      pull-requests: write # to post the comment
      checks: write # to create the check run
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
        with:
          persist-credentials: false
      - id: run
        uses: org/agent-eval-action@v1 # zizmor: ignore[unpinned-uses] - pin it by its commit
        with:
RUN
          baseline: artifact
          publish: "false" # a later step does, with links to the uploaded page
ENVIRONMENT
      - id: page
        uses: actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0
        if: always()
        with:
          path: agent-eval-report/report.html
          archive: false # one file as it is, which the browser opens
          overwrite: true # when the run is run again
      - if: always() && steps.run.outcome != 'skipped'
        uses: org/agent-eval-action@v1 # zizmor: ignore[unpinned-uses] - pin it by its commit
        with:
          mode: publish
CONFIG
          report-url: ${{ steps.page.outputs.artifact-url }}
      - uses: actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0
        if: always()
        with:
          name: agent-eval-report
          path: agent-eval-report/
          overwrite: true # when the run is run again
"""


def build_workflow(
    *,
    paths: str = "tests/episodes",
    install: Sequence[str] = ("pip install -r requirements.txt",),
    branch: str = "main",
    config: str | None = None,
    key: str | None = None,
) -> str:
    """Return the workflow; without arguments it is docs/workflows/baseline.yml.

    `config` is a configuration file outside the repository's root, `key` the name of a secret.
    """
    configured = [] if config is None else [f"config: {config}"]
    commands = ["install: |", *(f"  {command}" for command in install)] if install else []
    environment = [] if key is None else ["env:", f"  {key}: ${{{{ secrets.{key} }}}}"]
    lines = {
        "RUN": ([*commands, f"paths: {paths}", *configured], 10),
        "ENVIRONMENT": (environment, 8),
        "CONFIG": (configured, 10),
    }
    text = _WORKFLOW.replace("BRANCH", branch)
    for name, (values, depth) in lines.items():
        block = "".join(f"{line}\n" for line in values)
        text = text.replace(f"\n{name}\n", f"\n{indent(block, ' ' * depth)}")
    return text


def build_first_files(repository: ProjectRepository) -> dict[str, str]:
    """Return the texts of workflow, configuration and first test by their paths.

    Without a workflow if another one uses agent-eval already.
    """
    prefix, tests = repository.prefix, repository.test_folder
    files = {
        f"{prefix}{CONFIG_NAME}": _CONFIG,
        f"{tests}/test_first_episode.py": build_first_test(repository.agent),
    }
    if repository.own_workflow in {None, WORKFLOW}:
        files[WORKFLOW] = build_workflow(
            paths=tests,
            install=_list_install_commands(repository),
            branch=repository.default_branch,
            config=f"{prefix}{CONFIG_NAME}" if prefix else None,
            key=repository.key,
        )
    if repository.is_flat and repository.pytest_file is None:
        files[f"{prefix}pytest.ini"] = _PYTEST_INI
    return dict(sorted(files.items()))


def _list_install_commands(repository: ProjectRepository) -> Sequence[str]:
    """Return the commands for the suite environment of the action, which has no extras of ours."""
    if repository.framework is None:
        return repository.install_commands
    pip = "uv pip" if repository.uses_uv else "pip"
    return (*repository.install_commands, f"{pip} install '{name_package(repository)}'")


def name_package(repository: ProjectRepository) -> str:
    """Return our package as a requirement, with the extras that the project needs."""
    extra = "" if repository.framework is None else f",{repository.framework.extra}"
    return f"ci-agent-eval[pytest{extra}] @ {PACKAGE}"


def build_first_test(found: FoundAgent | None) -> str:
    """Return a test of the agent; without one a scripted test, which needs no model."""
    if found is None:
        return _SCRIPTED_TEST
    name = agent = found.agent.name
    imported = comment = ""
    if found.agent.has_deps:
        imported = "\n\nfrom ci_agent_eval.engine import LoopAgent"
        comment = f"    # {name} has a `deps_type`: replace None by its dependencies.\n"
        agent = f"LoopAgent({name}, deps=None)"
    return f'''\
"""A first episode of {name}: replace the message and the assertions by your own."""

import pytest
from {found.module} import {name}{imported}


@pytest.mark.episode("answers_a_greeting", budgets={{"max_turns": 5, "tool_calls": 10}})
async def test_answers_a_greeting(aitest_run):
{comment}    result = await aitest_run({agent}, "Hello, what can you do for me?")
    assert result.success
    assert result.final_response
'''


def write_missing(root: Path, files: Mapping[str, str]) -> list[str]:
    """Write the files that do not exist, and return their names."""
    missing = [name for name in files if not (root / name).exists()]
    for name in missing:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(files[name], encoding="utf-8", newline="\n")
    return missing
