"""`agent-eval mutate`: changes of recorded episodes that the suite does not notice."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from ci_agent_eval.app.cli.settings_options import add_format_option, add_settings_options
from ci_agent_eval.config.options import OPTIONS

_SETTINGS = {"report-dir"}

EXIT_CODES = """\b
Exit codes:
  0    the changes were played; with --min-score: enough were noticed
  1    the mutation score is below --min-score
  2    usage, configuration or input error; no recorded run, or the playback did not finish
  3    unexpected error
  130  interrupted
  143  ended by SIGTERM
"""


@click.command(epilog=EXIT_CODES)
@click.argument("paths", nargs=-1)
@click.option(
    "--scenario", "scenarios", multiple=True, help="Change only this scenario. Can be repeated."
)
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    help="Required share of noticed changes, 0 to 1; default: none is required.",
)
@add_format_option("text", "json")
@click.option("--python", help="Interpreter of the suite; default: the active virtual environment.")
@add_settings_options(
    publishing=False, without=[o.name for o in OPTIONS if o.name not in _SETTINGS]
)
@click.pass_obj
def mutate(
    pytest_args: tuple[str, ...],
    /,
    *,
    paths: tuple[str, ...],
    scenarios: tuple[str, ...],
    min_score: float | None,
    format_: str,
    python: str | None,
    config: Path | None,
    **flags: object,
) -> int:
    """List the changes of recorded episodes that no check of the suite at PATHS notices.

    \b
    agent-eval run tests/episodes
    agent-eval mutate tests/episodes
    agent-eval mutate tests/episodes --scenario refund --min-score 0.8

    Reads the run in the report folder, changes its episodes (a tool call left out, an answer
    contradicted, a secret leaked), plays them to the unchanged tests without an agent or a model,
    and writes mutations.json. Arguments after -- are passed to pytest.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    from ci_agent_eval.app.mutation import mutate_suite
    from ci_agent_eval.config.settings import load_settings
    from ci_agent_eval.contract.canonical import canonical_json
    from ci_agent_eval.contract.wording import without_commands
    from ci_agent_eval.render.terminal.layout import TerminalStyle
    from ci_agent_eval.render.terminal.mutations import render_mutations
    from ci_agent_eval.runner import SuiteCommand
    from ci_agent_eval.steering.suite_collection import find_suite_python

    root, named = Path.cwd(), {key.replace("_", "-"): value for key, value in flags.items()}
    settings = load_settings(root=root, environ=os.environ, flags=named, config=config)
    command = SuiteCommand(
        report_dir=root / settings.report_dir,
        paths=paths,
        pytest_args=pytest_args,
        suite_paths=settings.paths,
        suite_args=settings.pytest_args,
        python=python or find_suite_python(os.environ),
        cwd=root,
    )
    report = mutate_suite(
        command,
        scenarios=scenarios,
        environ=os.environ,
        echo=lambda line: click.echo(without_commands(line), err=True),
    )
    if format_ == "json":
        click.echo(canonical_json(report))
    else:
        color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        width = shutil.get_terminal_size((100, 24)).columns
        style = TerminalStyle(width, color)
        click.echo(render_mutations(report, style=style), nl=False)
    is_enough = min_score is None or (report.score is not None and report.score >= min_score)
    return 0 if is_enough else 1
