"""`agent-eval init` and `agent-eval doctor`: set a repository up, and check its set-up."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ci_agent_eval.app.setup.repository import ProjectRepository

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
@click.option("--no-baseline", is_flag=True, help="Do not compare with runs of the default branch.")
@click.option(
    "--forks", is_flag=True, help="Publish for pull requests from forks in a second workflow."
)
@click.option(
    "--shards",
    type=click.IntRange(1, MAX_SHARDS),
    default=1,
    help="Number of jobs that run the suite side by side. Default: 1.",
)
@click.option(
    "--no-docker",
    is_flag=True,
    help="Run the suite in steps of the job, not in the action's container.",
)
def init(*, no_baseline: bool, forks: bool, shards: int, no_docker: bool) -> int:
    """Write a workflow, a configuration and a first test for this project.

    Finds the agent and its framework, the test folder and how the project is installed. In a
    folder of a larger repository it sets up that folder. Existing files are left as they are.
    """
    from ci_agent_eval.app.setup.first_files import build_first_files, plan_workflow, write_missing
    from ci_agent_eval.app.setup.repository import ProjectRepository

    if forks and shards > 1:
        raise click.UsageError(
            "--forks and --shards are set up by hand together: see docs/forks.md and "
            "docs/faster-runs.md"
        )
    if forks and no_docker:
        raise click.UsageError(
            "--forks needs the action, which reads the artifacts of other workflows; leave out "
            "--no-docker"
        )
    repository = ProjectRepository.find(Path.cwd())
    if repository.prefix:
        click.echo(f"folder: {repository.prefix}")
    if repository.framework is not None:
        click.echo(f"framework: {repository.framework.name}")
    if (found := repository.agent) is not None:
        click.echo(f"agent: {found.agent.name} in {repository.prefix}{found.file}")
    plan = plan_workflow(
        repository, baseline=not no_baseline, forks=forks, shards=shards, docker=not no_docker
    )
    written = write_missing(repository.root, files := build_first_files(repository, plan))
    for name in files:
        click.echo(f"{'wrote' if name in written else 'left as it is'}: {name}")
    if repository.own_workflow not in {None, *files}:
        click.echo(f"left as it is: {repository.own_workflow}, which runs agent-eval already")
    _describe_next_steps(repository, plan.environment)
    return 0


def _describe_next_steps(repository: ProjectRepository, keys: Sequence[str]) -> None:
    here = repository.test_folder.removeprefix(repository.prefix)
    steps = [f"set {key} here, and as a secret of the repository" for key in keys]
    steps.append(f"run the suite: agent-eval run {here} (or: python -m pytest {here})")
    if repository.agent is None:
        steps.append(f"put your agent in the place of `answer` in {here}/")
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
    from ci_agent_eval.app.setup.doctor import (
        count_problems,
        diagnose,
        format_diagnoses,
        read_github_settings,
    )
    from ci_agent_eval.app.setup.repository import ProjectRepository

    repository = ProjectRepository.find(Path.cwd())
    github = read_github_settings(repository, os.environ)
    found = diagnose(repository, os.environ, github)
    for line in format_diagnoses(found):
        click.echo(line)
    return 1 if count_problems(found) else 0
