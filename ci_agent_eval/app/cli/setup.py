"""`agent-eval init` and `agent-eval doctor`: set a repository up, and check its set-up."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ci_agent_eval.app.setup.first_files import WriteResult
    from ci_agent_eval.app.setup.repository import ProjectRepository
    from ci_agent_eval.app.setup.workflows import WorkflowPlan

INIT_EXIT_CODES = """\b
Exit codes:
  0    the files are there; those that existed were left as they are
  2    usage error, or no git repository
"""
DOCTOR_EXIT_CODES = """\b
Exit codes:
  0    no problem was found
  1    at least one problem
  2    usage error, or no git repository
"""
MAX_SHARDS = 100


@click.command("init", epilog=INIT_EXIT_CODES)
@click.option(
    "--baseline/--no-baseline",
    default=None,
    help="Compare pull requests with runs of the default branch. Default: yes.",
)
@click.option(
    "--forks/--no-forks",
    default=None,
    help="Publish for pull requests from forks in a second workflow. Default: no.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, MAX_SHARDS),
    help="Number of jobs that run the suite side by side. Default: 1.",
)
@click.option(
    "--docker/--no-docker",
    default=None,
    help="Run the suite in the action's container, or in steps of the job. Default: container.",
)
@click.option("--yes", is_flag=True, help="Ask nothing, and take the defaults of missing options.")
def init(
    *,
    baseline: bool | None,
    forks: bool | None,
    shards: int | None,
    docker: bool | None,
    yes: bool,
) -> int:
    """Write a workflow, a configuration and a first test for this project.

    Finds the agent and its framework, the test folder and how the project is installed. In a
    folder of a larger repository it sets up that folder. Existing files are left as they are.
    """
    from ci_agent_eval.app.setup.first_files import (
        build_first_files,
        plan_workflow,
        write_first_files,
    )
    from ci_agent_eval.app.setup.repository import ProjectRepository

    repository = ProjectRepository.find(Path.cwd())
    _describe_repository(repository)
    plan = plan_workflow(repository)
    asks = sys.stdin.isatty() and not yes
    plan = replace(
        plan,
        baseline=_choose(
            f"Compare pull requests with runs of {plan.branch!r}?", baseline, True, asks=asks
        ),
        forks=_choose("Do pull requests come from forks?", forks, False, asks=asks),
        docker=_choose("Run the suite in the action's container?", docker, True, asks=asks),
    )
    if shards is None:
        shards = 1
        if asks and not plan.forks:
            shards = click.prompt(
                "Number of jobs side by side", 1, type=click.IntRange(1, MAX_SHARDS)
            )
    plan = _require_possible(replace(plan, shards=shards))
    planned = build_first_files(repository, plan)
    _describe_result(write_first_files(repository, planned))
    if planned.own_workflow is not None:
        click.echo(f"left as it is: {planned.own_workflow}, which runs agent-eval already")
    _describe_next_steps(repository, plan)
    return 0


def _describe_result(result: WriteResult) -> None:
    for verb, names in (
        ("wrote", result.written),
        ("unchanged", result.unchanged),
        ("left as it is", result.kept),
    ):
        for name in names:
            click.echo(f"{verb}: {name}")


def _choose(question: str, given: bool | None, default: bool, *, asks: bool) -> bool:
    if given is not None:
        return given
    return click.confirm(question, default) if asks else default


def _require_possible(plan: WorkflowPlan) -> WorkflowPlan:
    """Return the plan. Raises a usage error for choices that do not fit together."""
    if plan.forks and plan.shards > 1:
        raise click.UsageError(
            "--forks and --shards are set up by hand together: see docs/forks.md and docs/shards.md"
        )
    if plan.forks and not plan.docker:
        raise click.UsageError(
            "--forks needs the action, which reads the artifacts of other workflows; leave out "
            "--no-docker"
        )
    return plan


def _describe_repository(repository: ProjectRepository) -> None:
    framework, agent = repository.framework, repository.agent
    if repository.prefix:
        click.echo(f"folder: {repository.prefix}")
    if framework is not None:
        click.echo(f"framework: {framework.name}")
    if agent is not None:
        click.echo(f"agent: {agent.agent.name} in {repository.prefix}{agent.file}")


def _describe_next_steps(repository: ProjectRepository, plan: WorkflowPlan) -> None:
    here = plan.paths.removeprefix(repository.prefix)
    steps = [f"run the suite: agent-eval run {here}"]
    if repository.agent is None:
        steps.append(f"put your agent in the place of `answer` in {here}/")
    if plan.environment:
        key = plan.environment[0]
        steps.insert(0, f"set {key} here, and as a secret of the repository")
    steps += [
        "in the workflow replace org/agent-eval-action@v1 by the commit of the release",
        "push, then check the set-up: agent-eval doctor",
    ]
    click.echo("next:")
    for number, step in enumerate(steps, 1):
        click.echo(f"  {number}. {step}")


@click.command("doctor", epilog=DOCTOR_EXIT_CODES)
def doctor() -> int:
    """Find problems of the set-up of this repository.

    Checks the settings, and the permissions of each job that uses agent-eval. With a token in
    GITHUB_TOKEN it asks GitHub which checks the default branch requires.
    """
    from ci_agent_eval.app.setup.doctor import count_problems, diagnose, format_diagnoses
    from ci_agent_eval.app.setup.github_settings import read_github_settings
    from ci_agent_eval.app.setup.repository import ProjectRepository

    repository = ProjectRepository.find(Path.cwd())
    github = read_github_settings(repository, os.environ)
    found = diagnose(repository, os.environ, github)
    for line in format_diagnoses(found):
        click.echo(line)
    return 1 if count_problems(found) else 0
