"""`agent-eval init`: a workflow, a configuration and a first test for the repository's agent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ci_agent_eval.app.setup.repository import FoundAgent, ProjectRepository
from ci_agent_eval.app.setup.workflows import WorkflowPlan, build_workflows

CONFIG_NAME = "agent-eval.toml"

_CONFIG = """\
# Settings of agent-eval; all are in its docs/reference.md.
[gate]
# The share of a scenario's iterations that must pass.
min_pass_rate = 1.0
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


def plan_workflow(
    repository: ProjectRepository, *, baseline: bool, forks: bool, shards: int, docker: bool
) -> WorkflowPlan:
    """Return the workflow's plan with the facts of the repository."""
    framework, prefix = repository.framework, repository.prefix
    # Pull requests of forks get no secrets.
    key = None if forks else repository.key
    return WorkflowPlan(
        paths=repository.test_folder,
        install=repository.install_commands,
        extras=() if framework is None else ("pytest", framework.extra),
        branch=repository.default_branch,
        config=f"{prefix}{CONFIG_NAME}" if prefix else None,
        baseline=baseline,
        forks=forks,
        shards=shards,
        docker=docker,
        environment=() if key is None else (key,),
    )


def build_first_files(repository: ProjectRepository, plan: WorkflowPlan) -> dict[str, str]:
    """Return the texts of workflows, configuration and first test by their paths.

    Without workflows if another one uses agent-eval already.
    """
    workflows = {f".github/workflows/{name}": text for name, text in build_workflows(plan).items()}
    if repository.own_workflow not in {None, *workflows}:
        workflows = {}
    return {
        **workflows,
        f"{repository.prefix}{CONFIG_NAME}": _CONFIG,
        f"{plan.paths}/test_first_episode.py": build_first_test(repository.agent),
    }


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
