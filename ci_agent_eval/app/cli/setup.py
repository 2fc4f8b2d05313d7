"""`agent-eval init` and `agent-eval doctor`: set a repository up, and check its set-up."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import os
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


@click.command("init", epilog=INIT_EXIT_CODES)
def init() -> int:
    """Write a workflow, a configuration and a first test for this project.

    Finds the agent and its framework, the test folder and how the project is installed. In a
    folder of a larger repository it sets up that folder. Existing files are left as they are.
    """
    from ci_agent_eval.app.setup.first_files import build_first_files, write_missing
    from ci_agent_eval.app.setup.repository import ProjectRepository

    repository = ProjectRepository.find(Path.cwd())
    if repository.prefix:
        click.echo(f"folder: {repository.prefix}")
    if repository.framework is not None:
        click.echo(f"framework: {repository.framework.name}")
    if (found := repository.agent) is not None:
        click.echo(f"agent: {found.agent.name} in {repository.prefix}{found.file}")
    written = write_missing(repository.root, files := build_first_files(repository))
    for name in files:
        click.echo(f"{'wrote' if name in written else 'left as it is'}: {name}")
    if repository.own_workflow not in {None, *files}:
        click.echo(f"left as it is: {repository.own_workflow}, which runs agent-eval already")
    _describe_next_steps(repository)
    return 0


def _describe_next_steps(repository: ProjectRepository) -> None:
    from ci_agent_eval.app.setup.first_files import name_package

    here = repository.test_folder.removeprefix(repository.prefix)
    steps, run = [], ""
    if repository.uses_uv:
        steps.append(f"add agent-eval: uv add --dev '{name_package(repository)}'")
        run = "uv run "
    if repository.key is not None:
        steps.append(f"set {repository.key} here, and as a secret of the repository")
    steps.append(f"run the suite: {run}agent-eval run {here} (or: {run}python -m pytest {here})")
    if repository.agent is None:
        steps.append(f"put your agent in the place of `answer` in {here}/")
    steps += [
        "in the workflow replace org/agent-eval-action@v1 by the commit of the release",
        f"push, then check the set-up: {run}agent-eval doctor",
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
