"""`agent-eval experiments …`: the recorded experiments of tests with @llm_unit."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import os
from pathlib import Path

import click

from ci_agent_eval.app.cli.settings_options import add_format_option


@click.group()
def experiments() -> None:
    """Show the recorded experiments of tests with @llm_unit."""


_store_option = click.option(
    "--store",
    type=click.Path(path_type=Path),
    default=".agent-eval/experiments.sqlite3",
    show_default=True,
    help="File of the experiments.",
)
_format_option = add_format_option("text", "json")


@experiments.command("list")
@_store_option
@_format_option
def list_experiments(store: Path, format_: str) -> int:
    """List all experiments, latest first."""
    from ci_agent_eval.opik.experiments.commands import run_list_command

    click.echo(run_list_command(store, as_json=format_ == "json"), nl=False)
    return 0


@experiments.command("show")
@click.argument("experiment", default="latest")
@_store_option
@_format_option
def show_experiment(experiment: str, store: Path, format_: str) -> int:
    """Show EXPERIMENT and its results: a name, an id or its prefix, or `latest`."""
    from ci_agent_eval.opik.experiments.commands import run_show_command

    click.echo(run_show_command(store, experiment, as_json=format_ == "json"), nl=False)
    return 0


@experiments.command("compare")
@click.argument("base")
@click.argument("other", default="latest")
@_store_option
@_format_option
def compare_experiments(base: str, other: str, store: Path, format_: str) -> int:
    """Show the differences of OTHER from BASE, by test."""
    from ci_agent_eval.opik.experiments.commands import run_compare_command

    click.echo(run_compare_command(store, base, other, as_json=format_ == "json"), nl=False)
    return 0


@experiments.command("push")
@click.argument("named", nargs=-1, metavar="[EXPERIMENT]...")
@_store_option
def push_experiments(named: tuple[str, ...], store: Path) -> int:
    """Send each EXPERIMENT to Opik; default: all that could not be sent before."""
    from ci_agent_eval.opik.experiments.commands import run_push_command

    click.echo(run_push_command(store, named, environ=os.environ, home=Path.home()), nl=False)
    return 0
