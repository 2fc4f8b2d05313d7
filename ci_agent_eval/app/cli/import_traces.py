"""`agent-eval import`: judge production traces, or turn one into a regression test."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ci_agent_eval.app.trace_import.records import ImportProblems
    from ci_agent_eval.app.trace_import.traces import ProductionTrace

EXIT_CODES = """\b
Exit codes:
  0    the traces were imported
  2    usage, configuration or input error; readable traces were imported all the same
  3    unexpected error
  130  interrupted
"""

_MAX_PROBLEMS = 20
_LINE_LIMIT = 2_000


@click.command("import", epilog=EXIT_CODES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--mapping", help="File that describes records in another format.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="Folder of the results; reports read it."
)
@click.option("--trace", "trace_id", help="Import only the trace with this id.")
@click.option(
    "--as-test",
    type=click.Path(path_type=Path),
    help="Write a regression test to this file, and its cassette beside it.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Configuration file with [traces]; default: agent-eval.toml, else pyproject.toml's "
    "[tool.ci_agent_eval].",
)
def import_traces(
    files: tuple[Path, ...],
    *,
    mapping: str | None,
    output: Path | None,
    trace_id: str | None,
    as_test: Path | None,
    config: Path | None,
) -> int:
    """Judge the production traces in FILES, or turn one into a regression test.

    \b
    agent-eval import traces.json --output traces-report
    agent-eval report --results traces-report
    agent-eval import traces.json --trace chat-17 --as-test tests/test_refund.py

    Reads OTLP JSON, OpenInference spans, logs of OpenAI's and Anthropic's messages, and with
    --mapping any JSON, JSON lines or CSV. Secrets and personal data are replaced.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    if (output is None) is (as_test is None):
        raise click.UsageError("give --output DIR to judge the traces, or --as-test FILE")
    from ci_agent_eval.app.trace_import.records import ImportProblems
    from ci_agent_eval.errors import missing_package_error

    problems = ImportProblems()
    traces = _load_traces(files, mapping, trace_id, problems)
    if as_test is not None:
        try:
            _write_test(traces, as_test)
        except ModuleNotFoundError as error:
            raise missing_package_error("--as-test", str(error.name), "traffic") from error
    elif output is not None:
        _write_results(traces, output, config, problems)
    _print_replaced(traces)
    _print_problems(problems)
    return 2 if problems.messages else 0


def _load_traces(
    files: tuple[Path, ...], mapping: str | None, trace_id: str | None, problems: ImportProblems
) -> list[ProductionTrace]:
    from ci_agent_eval.app.trace_import.records import read_records
    from ci_agent_eval.app.trace_import.traces import clean_traces, group_records, suggest_ids
    from ci_agent_eval.config.settings import load_trace_mappings
    from ci_agent_eval.errors import InputError
    from ci_agent_eval.redaction import Redactor

    redactor = Redactor.from_environ(os.environ)
    mappings = () if mapping is None else load_trace_mappings(Path.cwd(), mapping)
    sources = group_records(read_records(files, mappings, problems), problems)
    chosen = [one for one in sources if trace_id in (None, one.id)]
    if not chosen:
        _print_problems(problems)
        if trace_id is None or not sources:
            raise InputError("the files hold no trace; nothing was written")
        hint = suggest_ids(trace_id, sources, redactor)
        raise InputError(f"the files hold no trace {trace_id!r}, so nothing was written; {hint}")
    return list(clean_traces(chosen, redactor))


def _write_results(
    traces: list[ProductionTrace], output: Path, config: Path | None, problems: ImportProblems
) -> None:
    from ci_agent_eval.app.trace_import.judging import judge_traces, write_results
    from ci_agent_eval.config.settings import load_settings

    settings = load_settings(root=Path.cwd(), environ=os.environ, flags={}, config=config)
    episodes = judge_traces(traces, settings.trace_rules)
    path = write_results(output, settings.suite, episodes, complete=not problems.messages)
    click.echo(f"wrote {path}: {len(episodes)} traces; `agent-eval report --results {output}`")


def _write_test(traces: list[ProductionTrace], path: Path) -> None:
    from ci_agent_eval.app.trace_import.regression_test import (
        build_regression_test,
        write_regression_test,
    )

    if len(traces) > 1:
        raise click.UsageError(f"the files hold {len(traces)} traces; choose one with --trace ID")
    cassette = write_regression_test(build_regression_test(traces[0]), path)
    click.echo(f"wrote {path} and {cassette}; `agent-eval run {path} -- --cassette=replay`")


def _print_replaced(traces: list[ProductionTrace]) -> None:
    counts: Counter[str] = Counter()
    for trace in traces:
        counts.update(trace.replaced)
    if counts:
        found = ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
        click.echo(f"replaced personal data: {found}")


def _print_problems(problems: ImportProblems) -> None:
    from ci_agent_eval.render.escape import escape_terminal

    for message in problems.messages[:_MAX_PROBLEMS]:
        click.echo(escape_terminal(message, _LINE_LIMIT), err=True)
    more = len(problems.messages) - _MAX_PROBLEMS
    if more > 0:
        click.echo(f"and {more} more problems", err=True)
