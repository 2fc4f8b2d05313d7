"""`agent-eval judge`: judge stored transcripts again, and compare the judges with labels."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ci_agent_eval.app.cli.settings_options import add_format_option

if TYPE_CHECKING:
    from ci_agent_eval.engine.cassette.session import CassetteMode

EXIT_CODES = """\b
Exit codes:
  0    every transcript was judged
  1    a verdict is missing, or the stored results are not whole
  2    usage, configuration or input error
  3    unexpected error
  130  interrupted
"""


@click.command(epilog=EXIT_CODES)
@click.argument("checks", type=click.Path(path_type=Path))
@click.option(
    "--results",
    multiple=True,
    help="Report folder, file or glob of stored results; default: agent-eval-report. "
    "Can be repeated.",
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="Human labels of these transcripts, in CSV, to compare the judges with.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("agent-eval-judged"),
    help="Folder of the judged results; default: agent-eval-judged.",
)
@click.option(
    "--cassette",
    type=click.Choice(["off", "record", "replay", "auto"]),
    default="off",
    help="Record the judges' answers, or replay them without a model.",
)
@click.option(
    "--cassette-dir",
    type=click.Path(path_type=Path),
    help="Folder of the recordings; default: judge-cassettes, beside CHECKS.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 256),
    default=8,
    help="Transcripts that are judged at the same time; default: 8.",
)
@add_format_option("text", "json")
def judge(
    *,
    checks: Path,
    results: tuple[str, ...],
    labels: Path | None,
    output: Path,
    cassette: CassetteMode,
    cassette_dir: Path | None,
    concurrency: int,
    format_: str,
) -> int:
    """Judge stored transcripts by the CHECKS and BUDGETS of a Python file; no agent runs.

    \b
    agent-eval judge judges.py
    agent-eval judge judges.py --results labelled/ --labels labels.csv
    agent-eval judge judges.py --cassette replay

    The judged results are in the output folder; `agent-eval report` gates them.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    from ci_agent_eval.app.cli.settings_options import require_packages

    require_packages("agent-eval judge", "evals", "pydantic_ai", "pydantic_evals")
    from ci_agent_eval.app.judging.job import JudgeJob, judge_results
    from ci_agent_eval.render.terminal.report import render_judges

    job = JudgeJob(
        root=Path.cwd(),
        environ=os.environ,
        checks=checks,
        results=results or ("agent-eval-report",),
        output=output,
        concurrency=concurrency,
        labels=labels,
        cassette_mode=cassette,
        cassettes=cassette_dir or checks.parent / "judge-cassettes",
    )
    report = judge_results(job)
    if format_ == "json":
        click.echo(json.dumps(dataclasses.asdict(report), indent=2, sort_keys=True))
    else:
        text = render_judges(report.checks, report.reasons, report.errors, report.transcripts)
        click.echo(text, nl=False)
        click.echo(f"Judged results, for `agent-eval report --results {output}`: {output}")
    return 1 if report.reasons else 0
