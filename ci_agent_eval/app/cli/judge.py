"""`agent-eval judge`: judge stored transcripts again, and measure the judges."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ci_agent_eval.app.cli.settings_options import add_format_option

if TYPE_CHECKING:
    from ci_agent_eval.engine.cassette.session import CassetteMode

EXIT_CODES = """\b
Exit codes:
  0    the gate passed
  1    the gate failed: a check, a budget, a score, an agreement, or a missing verdict
  2    usage, configuration or input error
  3    unexpected error
  130  interrupted
"""

_SHARE = click.FloatRange(0, 1, min_open=True)


@click.command(epilog=EXIT_CODES)
@click.argument("checks", type=click.Path(path_type=Path))
@click.option(
    "--results",
    multiple=True,
    help="Report folder, file or glob of stored results; default: agent-eval-report. "
    "Can be repeated.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1_000),
    default=1,
    help="Times that models judge each transcript; from 2 on the judge's variance is measured.",
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    help="Human labels of transcripts, CSV or JSON lines, that the judges are compared with.",
)
@click.option(
    "--labelled",
    multiple=True,
    help="Results that the labels are about; default: the judged ones. Can be repeated.",
)
@click.option("--min-score", type=_SHARE, help="Required mean score of each judged assertion.")
@click.option(
    "--min-pass-rate",
    type=_SHARE,
    help="Required share of passing verdicts of each judged assertion, corrected by the labels.",
)
@click.option(
    "--min-agreement",
    type=_SHARE,
    help="Agreement with the labels that each judge must prove, by its lower 95 % limit.",
)
@click.option(
    "--min-kappa",
    type=_SHARE,
    help="Cohen's kappa that each judge must prove, by its lower 95 % limit.",
)
@click.option(
    "--only-checks",
    is_flag=True,
    help="Leave out the stored assertions; default: those of other names stay.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("agent-eval-judged"),
    help="Folder of the judged results and the report of the judges; default: agent-eval-judged.",
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
    repeats: int,
    labels: Path | None,
    labelled: tuple[str, ...],
    min_score: float | None,
    min_pass_rate: float | None,
    min_agreement: float | None,
    min_kappa: float | None,
    only_checks: bool,
    output: Path,
    cassette: CassetteMode,
    cassette_dir: Path | None,
    concurrency: int,
    format_: str,
) -> int:
    """Judge stored transcripts by the CHECKS and BUDGETS of a Python file; no agent runs.

    \b
    agent-eval judge judges.py --repeats 5
    agent-eval judge judges.py --labels labels.csv --labelled labelled/ --min-kappa 0.6
    agent-eval judge judges.py --min-pass-rate 0.8 --cassette replay

    The judged results are in the output folder, for `agent-eval report` and `agent-eval compare`.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    from ci_agent_eval.app.cli import get_today, load_cli_settings
    from ci_agent_eval.app.judging.job import REPORT_NAME, JudgeJob, judge_results
    from ci_agent_eval.config.settings import load_waivers
    from ci_agent_eval.gate.judge_gate import JudgePolicy
    from ci_agent_eval.render.terminal.judges import render_judges

    if labelled and labels is None:
        raise click.UsageError("--labelled names the results of --labels; give both")
    settings, root = load_cli_settings(None, {}), Path.cwd()
    job = JudgeJob(
        root=root,
        environ=os.environ,
        checks=checks,
        results=results or ("agent-eval-report",),
        output=output,
        repeats=repeats,
        concurrency=concurrency,
        labels=labels,
        labelled=labelled,
        policy=JudgePolicy(min_score, min_pass_rate, min_agreement, min_kappa),
        settings=settings,
        quarantine=load_waivers(root, settings, get_today()).quarantine,
        cassette_mode=cassette,
        cassettes=cassette_dir or checks.parent / "judge-cassettes",
        keeps_stored=not only_checks,
    )
    report = judge_results(job)
    if format_ == "json":
        click.echo((output / REPORT_NAME).read_text("utf-8"), nl=False)
    else:
        text = render_judges(report.checks, report.gate, report.errors, report.transcripts)
        click.echo(text, nl=False)
        click.echo(f"Judged results: {output}")
    return 0 if report.gate.passed else 1
