"""`agent-eval publish`: publish a report folder to GitHub."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import os
from pathlib import Path

import click

from ci_agent_eval.app.cli import EXIT_CODES, load_cli_settings
from ci_agent_eval.app.cli.settings_options import SettingsCommand, settings_file_option


@click.command(cls=SettingsCommand, tables=("publish",), epilog=EXIT_CODES)
@settings_file_option
@click.option("--report-dir", help="Folder of the report. [AGENT_EVAL_REPORT_DIR]")
@click.option("--dry-run", is_flag=True, help="Print what would be published.")
def publish(config: Path | None, *, dry_run: bool, **flags: object) -> int:
    """Publish a report to GitHub: comment, check run, step summary, outputs.

    Reads the token from GITHUB_TOKEN, and the event from the variables of GitHub's runner. The exit
    code is the gate's, or 3 if publishing failed.
    """
    from ci_agent_eval.app.action import compute_exit_code
    from ci_agent_eval.app.report_folder import load_report, require_publishable
    from ci_agent_eval.app.report_publication import publish_report, show_publication
    from ci_agent_eval.github.runner_files import list_missing_variables, load_event

    settings = load_cli_settings(config, flags)
    folder = Path(settings.report_dir)
    built = load_report(folder)
    settings = settings.model_copy(update={"suite": built.summary.suite})
    missing = list_missing_variables(os.environ, "GITHUB_TOKEN")
    is_laptop = dry_run and bool(set(missing) - {"GITHUB_TOKEN"})
    event = None if is_laptop else load_event(os.environ)
    if event is not None:
        require_publishable(built, event.head_sha, folder)
    if event is None or dry_run:
        show_publication(built, event, settings, folder=folder, echo=click.echo)
        if missing:
            click.echo(f"To publish, set {', '.join(missing)}, as GitHub's workflows do.")
        return 0 if built.passed else 1
    result = publish_report(
        built,
        event,
        settings,
        folder=folder,
        token=os.environ.get("GITHUB_TOKEN", ""),
        environ=os.environ,
        echo=click.echo,
    )
    return compute_exit_code(built, result)
