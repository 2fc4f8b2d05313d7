"""`agent-eval acknowledge`: accept a scenario's regression until a date."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import click

from ci_agent_eval.app.cli.settings_options import settings_file_option

EXIT_CODES = """\b
Exit codes:
  0    the entry was written
  2    usage, configuration or input error; nothing was written
  3    unexpected error
"""


@click.command("acknowledge", epilog=EXIT_CODES)
@click.argument("scenario", metavar="ID")
@click.option(
    "--until",
    required=True,
    metavar="DATE",
    help="Last day, YYYY-MM-DD in UTC, or a number of days such as 30d; at most 180 days.",
)
@click.option("--reason", required=True, help="Why the change is wanted; reviewers read it.")
@click.option("--agent", help="Accept the regression of this agent only; default: any.")
@click.option(
    "--acknowledge",
    "file",
    help="File of acknowledged regressions; default: agent-eval-acknowledged.toml. "
    "[AGENT_EVAL_ACKNOWLEDGE]",
)
@settings_file_option
def acknowledge(
    scenario: str,
    *,
    until: str,
    reason: str,
    agent: str | None,
    file: str | None,
    config: Path | None,
) -> int:
    """Accept the regression of scenario ID until a date.

    \b
    agent-eval acknowledge tone --until 2027-01-31 --reason "the new prompt is terse"

    Adds an entry to a reviewed file; commit it with the change. The regression is then a warning
    until that day. A scenario below its own pass rate, or over its own budget, fails all the same.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    from ci_agent_eval.app.acknowledgement import acknowledge_scenario, resolve_last_day
    from ci_agent_eval.config.settings import load_settings

    root = Path.cwd()
    settings = load_settings(
        root=root, environ=os.environ, flags={"acknowledge": file}, config=config
    )
    today = dt.datetime.now(dt.UTC).date()
    last_day = resolve_last_day(until, today)
    name = acknowledge_scenario(
        root, settings, scenario, agent=agent, until=last_day, reason=reason, today=today
    )
    click.echo(f"wrote {name}: {scenario} is accepted until {last_day}; commit the file")
    return 0
