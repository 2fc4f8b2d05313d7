"""`agent-eval why`: why a scenario runs, or is carried over."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ci_agent_eval.app.cli.settings_options import add_format_option, add_settings_options

if TYPE_CHECKING:
    from ci_agent_eval.app.explanation import ScenarioExplanation, SelectionExplanation

EXIT_CODES = """\b
Exit codes:
  0    the answer was printed
  2    usage, configuration or input error; the suite cannot be collected
  3    unexpected error
  130  interrupted
  143  ended by SIGTERM
"""


@click.command(epilog=EXIT_CODES)
@click.argument("scenario", required=False)
@click.option(
    "--path", "paths", multiple=True, help="Path of the suite; default: those of the settings."
)
@click.option("--python", help="Interpreter of the suite; default: the active virtual environment.")
@add_format_option("text", "json")
@add_settings_options(
    publishing=False,
    without=("formats", "mapping", "score-thresholds", "quarantine", "scenario-manifest"),
)
@click.pass_obj
def why(
    pytest_args: tuple[str, ...],
    /,
    scenario: str | None,
    *,
    paths: tuple[str, ...],
    python: str | None,
    format_: str,
    config: Path | None,
    **flags: object,
) -> int:
    """Explain why SCENARIO would run with --affected, or why its earlier result is carried over.

    \b
    agent-eval why refund --baseline baseline/
    agent-eval why --baseline git:main:evals

    Without SCENARIO all are listed. pytest collects the suite; no test runs. Arguments after --
    are passed to pytest.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    from ci_agent_eval.app.cli import build_job
    from ci_agent_eval.app.explanation import explain_selection
    from ci_agent_eval.errors import InputError
    from ci_agent_eval.runner.interpreter import find_suite_python

    job = build_job(config, flags)
    if job.settings.compare.baseline is None:
        raise InputError("why: there is no baseline; set --baseline to the results of main")
    found = explain_selection(
        job,
        paths=paths,
        pytest_args=pytest_args,
        python=python or find_suite_python(os.environ),
        emit=click.echo,
    )
    if scenario is not None and all(one.scenario_id != scenario for one in found.scenarios):
        raise InputError(f"why: no scenario {scenario!r} was collected; leave it out to list all")
    chosen = [one for one in found.scenarios if scenario in {None, one.scenario_id}]
    if format_ == "json":
        click.echo(_format_json(found, chosen))
    else:
        _print_text(found, chosen)
    return 0


def _format_json(found: SelectionExplanation, chosen: list[ScenarioExplanation]) -> str:
    full_run = found.full_run
    document = {
        "full_run": None
        if full_run is None
        else {"cause": full_run.cause, "detail": full_run.detail},
        "scenarios": [
            {"scenario_id": one.scenario_id, "selected": one.is_selected, "reason": one.text}
            for one in chosen
        ],
    }
    return json.dumps(document, indent=2, sort_keys=True)


def _print_text(found: SelectionExplanation, chosen: list[ScenarioExplanation]) -> None:
    from ci_agent_eval.render.escape import escape_terminal
    from ci_agent_eval.render.selection import describe_full_run

    if found.full_run is not None:
        click.echo(escape_terminal(f"everything runs: {describe_full_run(found.full_run)}", 2_000))
    for one in chosen:
        verb = "runs" if one.is_selected else "is carried over"
        click.echo(escape_terminal(f"{one.scenario_id} {verb}: {one.text}", 2_000))
