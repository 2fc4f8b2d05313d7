"""`agent-eval init`: a workflow, a configuration and a first test for the repository's agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

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


@dataclass(frozen=True, slots=True)
class FirstFiles:
    """The files of a repository by their paths, in the order in which they are shown."""

    files: Mapping[str, str]
    own_workflow: str | None = None
    """A workflow that uses agent-eval already; no other one is written."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What happened to each file."""

    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that exist with another content and were left as they are."""


def plan_workflow(repository: ProjectRepository) -> WorkflowPlan:
    """Return the workflow's plan with the facts of the repository."""
    framework = repository.framework
    config = repository.folder / CONFIG_NAME
    return WorkflowPlan(
        paths=repository.test_folder,
        install=repository.install_commands,
        extras=() if framework is None else ("pytest", framework.extra),
        branch=repository.default_branch,
        config=config.relative_to(repository.root).as_posix() if repository.prefix else None,
        environment=() if repository.key is None else (repository.key,),
    )


def build_first_files(repository: ProjectRepository, plan: WorkflowPlan) -> FirstFiles:
    """Build the files: workflows, a configuration, a first test for the agent that was found."""
    own = repository.own_workflow
    files: dict[str, str] = {}
    if plan.forks:
        # Pull requests of forks get no secrets.
        plan = replace(plan, environment=())
    workflows = {f".github/workflows/{name}": text for name, text in build_workflows(plan).items()}
    if own is None or own in workflows:
        files |= workflows
        own = None
    files[f"{repository.prefix}{CONFIG_NAME}"] = _CONFIG
    files[f"{plan.paths}/test_first_episode.py"] = build_first_test(repository.agent)
    return FirstFiles(files, own)


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


def write_first_files(repository: ProjectRepository, planned: FirstFiles) -> WriteResult:
    """Write the files that are missing; a file with another content is left as it is."""
    written, unchanged, kept = [], [], []
    for name, text in planned.files.items():
        path = repository.root / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            written.append(name)
        elif path.is_file() and path.read_text("utf-8", errors="replace") == text:
            unchanged.append(name)
        else:
            kept.append(name)
    return WriteResult(tuple(written), tuple(unchanged), tuple(kept))
