"""`agent-eval scenarios`: the scenarios that every run of the suite must contain."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ci_agent_eval.app.cli.settings_options import settings_file_option

if TYPE_CHECKING:
    from ci_agent_eval.app.scenario_update import FoundScenarios, ManifestUpdate
    from ci_agent_eval.config.options import Settings

EXIT_CODES = """\b
Exit codes:
  0    the manifest has the scenarios of the suite, or was written
  1    the manifest differs from the suite
  2    usage, configuration or input error; the suite cannot be collected
  3    unexpected error
  130  interrupted
  143  ended by SIGTERM
"""


@click.command("scenarios", epilog=EXIT_CODES)
@click.argument("paths", nargs=-1)
@click.option("--write", is_flag=True, help="Update the manifest.")
@click.option(
    "--results",
    multiple=True,
    help="Report folder, file or glob of results to read the scenarios from; default: pytest "
    "collects the suite. Required for scenarios that tests name at run time.",
)
@click.option(
    "--scenario-manifest",
    help="Scenario manifest; default: agent-eval-scenarios.toml. [AGENT_EVAL_SCENARIO_MANIFEST]",
)
@settings_file_option
@click.option("--python", help="Interpreter of the suite; default: the active virtual environment.")
@click.pass_obj
def update_scenarios(
    pytest_args: tuple[str, ...],
    /,
    paths: tuple[str, ...],
    *,
    results: tuple[str, ...],
    scenario_manifest: str | None,
    config: Path | None,
    python: str | None,
    write: bool,
) -> int:
    """Show how the scenario manifest differs from the suite at PATHS, or update it.

    \b
    agent-eval scenarios tests/episodes
    agent-eval scenarios --write tests/episodes
    agent-eval scenarios --write --results agent-eval-report

    The manifest is a reviewed file; a run that lacks a required scenario fails the gate. No test is
    run. Arguments after -- are passed to pytest.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    from ci_agent_eval.app.scenario_update import plan_update, write_manifest
    from ci_agent_eval.config.settings import load_manifest_or_empty, load_settings
    from ci_agent_eval.contract.scenario_manifest import UPDATE_COMMAND
    from ci_agent_eval.render.escape import escape_terminal

    root, flags = Path.cwd(), {"scenario-manifest": scenario_manifest}
    settings = load_settings(root=root, environ=os.environ, flags=flags, config=config)
    found = (
        _load_from_results(results, root, os.environ, settings)
        if results
        else _collect_scenarios(settings, paths, pytest_args, python)
    )
    update = plan_update(load_manifest_or_empty(root, settings), found)
    for line in _format_update(update):
        click.echo(escape_terminal(line, _LINE_LIMIT))
    name = settings.scenario_manifest
    if write:
        is_new = write_manifest(update, root / name)
        click.echo(f"wrote {name}" if is_new else f"{name} is up to date")
        return 0
    if update.changes:
        click.echo(f"{name} differs; `{UPDATE_COMMAND}` updates it")
        return 1
    click.echo(f"{name} is up to date: {len(update.after.entries)} scenarios")
    return 0


_LINE_LIMIT = 2_000


def _format_update(update: ManifestUpdate) -> tuple[str, ...]:
    return (*update.changes, *(f"note: {note}" for note in update.notes))


def _load_from_results(
    results: tuple[str, ...], root: Path, environ: Mapping[str, str], settings: Settings
) -> FoundScenarios:
    from ci_agent_eval.app.scenario_update import find_result_scenarios
    from ci_agent_eval.config.settings import load_import_policy
    from ci_agent_eval.redaction import Redactor
    from ci_agent_eval.results.load import load_results

    redact, imports = Redactor.from_environ(environ).text, load_import_policy(root, settings)
    loaded = load_results(results, (), root=root, redact=redact, imports=imports)
    return find_result_scenarios(loaded)


def _collect_scenarios(
    settings: Settings, paths: tuple[str, ...], pytest_args: tuple[str, ...], python: str | None
) -> FoundScenarios:
    from ci_agent_eval.app.scenario_update import find_listed_scenarios
    from ci_agent_eval.runner.interpreter import find_suite_python
    from ci_agent_eval.runner.process import SuiteCommand
    from ci_agent_eval.runner.suite import list_scenarios

    command = SuiteCommand(
        report_dir=Path(settings.report_dir),
        paths=paths,
        pytest_args=pytest_args,
        suite_paths=settings.paths,
        suite_args=settings.pytest_args,
        python=python or find_suite_python(os.environ),
    )
    listing = list_scenarios(command, environ=os.environ, emit=click.echo)
    return find_listed_scenarios(listing)
