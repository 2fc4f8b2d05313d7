"""The command line: parse, build, call. The only package that imports click.

Commands import lazily, so that `--help` and `schema` start fast.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import datetime as dt
import io
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ci_agent_eval import __version__
from ci_agent_eval.app.cli.settings_options import (
    SettingsCommand,
    add_format_option,
    settings_file_option,
)
from ci_agent_eval.errors import AgentEvalError
from ci_agent_eval.github.signals import Terminated

if TYPE_CHECKING:
    from ci_agent_eval.app.pipeline import Job
    from ci_agent_eval.app.progress import ProgressLine
    from ci_agent_eval.config.options import Settings
    from ci_agent_eval.gate.report import Report
    from ci_agent_eval.render.links import Links

EXIT_CODES = """\b
Exit codes:
  0    the gate passed
  1    the gate failed
  2    usage, configuration or input error
  3    unexpected error, or a requested publication failed
  130  interrupted
  143  ended by SIGTERM
"""


_MODULES = {
    "acknowledge": ("acknowledge", "acknowledge"),
    "brief": ("brief", "brief"),
    "doctor": ("setup", "doctor"),
    "init": ("setup", "init"),
    "judge": ("judge", "judge"),
    "publish": ("publish", "publish"),
    "scenarios": ("scenarios", "update_scenarios"),
    "steer": ("steer", "steer"),
}
"""The module of each command that is not in this one, and its function there."""


class SummaryGroup(click.Group):
    """A group whose help wraps the commands' summaries; click's own cuts them off."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its whole summary."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(200)) for name, command in commands if command]
            )


class _LazyGroup(SummaryGroup):
    """A group that imports a command's module when the command is listed or run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_MODULES})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return super().get_command(ctx, cmd_name)
        module, function = _MODULES[cmd_name]
        command: click.Command = getattr(import_module(f"ci_agent_eval.app.cli.{module}"), function)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; code of others that calls `sys.exit` does not choose the exit code."""
        try:
            return super().invoke(ctx)
        except SystemExit as error:
            raise RuntimeError(f"SystemExit: {error}") from error


@click.group(
    cls=_LazyGroup, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="agent-eval")
def cli() -> None:
    """Agent tests as a required status check.

    Run a suite of agent episodes, judge it, report it. Start with `agent-eval init`.
    """


def load_cli_settings(config: Path | None, flags: Mapping[str, object]) -> Settings:
    """Return the settings; `flags` are options by their names."""
    from ci_agent_eval.config.settings import load_settings

    named = {key.replace("_", "-"): value for key, value in flags.items()}
    return load_settings(root=Path.cwd(), environ=os.environ, flags=named, config=config)


def get_today() -> dt.date:
    """Return the day in UTC."""
    return dt.datetime.now(dt.UTC).date()


def build_job(config: Path | None, flags: Mapping[str, object]) -> Job:
    """Return the job of the settings; `flags` are options by their names."""
    from ci_agent_eval.app.pipeline import Job
    from ci_agent_eval.config.settings import load_manifest, load_waivers

    settings, root = load_cli_settings(config, flags), Path.cwd()
    agreed = load_waivers(root, settings, get_today(), config)
    manifest = load_manifest(root, settings)
    return Job(
        settings,
        root=root,
        environ=os.environ,
        links=_build_links(settings),
        waivers=agreed,
        manifest=manifest,
        started_by=os.environ.get("GITHUB_EVENT_NAME"),
    )


def _build_links(settings: Settings) -> Links:
    """Return the link targets: the repository inside a workflow, none on a laptop."""
    from ci_agent_eval.render.links import Links

    if os.environ.get("GITHUB_ACTIONS") != "true":
        return Links()
    from ci_agent_eval.app.report_publication import build_links
    from ci_agent_eval.github.runner_files import load_event

    return build_links(load_event(os.environ), settings)


class _SuiteCommand(SettingsCommand):
    """A command that takes pytest's options behind its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; the error about an unknown option says where pytest's stand."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            text = f"{error.message} Write options of pytest after `--`."
            raise click.NoSuchOption(error.option_name, text, error.possibilities, ctx) from None


@cli.command(cls=_SuiteCommand, epilog=EXIT_CODES)
@click.argument("paths", nargs=-1)
@settings_file_option
@click.option("--python", help="Interpreter of the suite; default: the active virtual environment.")
@click.option(
    "--shard", help="Run one shard of the suite, such as 2/4; report on all of them later."
)
@click.option(
    "--scenario", "scenarios", multiple=True, help="Run only this scenario. Can be repeated."
)
@click.option(
    "--affected",
    is_flag=True,
    help="Leave out the scenarios that declare, by depends_on, none of the changed files.",
)
@click.option(
    "--base",
    help="Branch or commit that --affected compares with. Default: the pull request's base branch, "
    "else the default branch.",
)
@click.option(
    "--iterations",
    type=click.IntRange(1, 1_000),
    help="Run each episode this often, whatever it says itself.",
)
@click.option(
    "--install",
    multiple=True,
    help="Command that installs the suite's dependencies into its virtual environment; with "
    "--confirm also for the base. Can be repeated; runs without a shell.",
)
@click.option(
    "--save-baseline",
    is_flag=True,
    help="Copy the results of a whole run to evals/results.json, to commit as the baseline.",
)
@click.pass_obj
def run(
    pytest_args: tuple[str, ...],
    /,
    *,
    paths: tuple[str, ...],
    config: Path | None,
    python: str | None,
    shard: str | None,
    scenarios: tuple[str, ...],
    affected: bool,
    base: str | None,
    iterations: int | None,
    install: tuple[str, ...],
    save_baseline: bool,
    **flags: object,
) -> int:
    """Run the suite at PATHS with pytest, judge it, and write a report.

    \b
    agent-eval run tests/episodes
    agent-eval run tests/episodes --scenario refund --iterations 5
    agent-eval run tests/episodes --affected --base main
    agent-eval run tests/episodes -- -k refund -n 4

    Arguments after -- are passed to pytest. The exit code is the gate's, not pytest's.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    from ci_agent_eval.app.report_folder import PAGE_NAME, copy_to_baseline
    from ci_agent_eval.app.suite_job import AffectedFlags, run_and_report
    from ci_agent_eval.config.inputs import split_commands
    from ci_agent_eval.errors import InputError
    from ci_agent_eval.runner.interpreter import find_suite_python
    from ci_agent_eval.storage.sharding import normalize_shard

    if {"--pdb", "--trace"}.intersection(pytest_args):
        raise click.UsageError(
            "pytest has no terminal below `agent-eval run`; debug with `pytest --pdb PATHS`"
        )
    job = build_job(config, flags)
    color = _wants_color(pytest_args)
    max_cost = job.settings.budgets.total_cost_usd
    progress = _build_progress(
        color=color, max_cost_usd=None if max_cost is None else max_cost.limit
    )
    suite, built = run_and_report(
        job,
        paths=paths,
        pytest_args=(*_build_selection(scenarios, iterations), *pytest_args),
        shard=normalize_shard(shard, "option --shard"),
        python=python or find_suite_python(os.environ),
        install=split_commands("option --install", "\n".join(install)),
        color=color,
        affected=AffectedFlags(affected, base),
        echo=progress.echo,
        on_progress=progress.show,
    )
    progress.end()
    if suite.usage_error is not None:
        remedy = "correct the paths or the arguments after --"
        raise InputError(f"pytest: {suite.usage_error}; {remedy}")
    _print_report(built, "text", job.links, color=color, paths=paths)
    click.echo(f"Report: {os.path.relpath(job.folder / PAGE_NAME)}")
    if save_baseline:
        click.echo(copy_to_baseline(job.folder, built, job.root))
    if suite.interrupted_by is not None:
        return 128 + suite.interrupted_by
    return 0 if built.passed else 1


def _build_progress(*, color: bool, max_cost_usd: float | None = None) -> ProgressLine:
    from ci_agent_eval.app.progress import ProgressLine, is_live

    live = is_live(sys.stderr, os.environ)
    return ProgressLine(sys.stdout, sys.stderr, live=live, color=color, max_cost_usd=max_cost_usd)


def _build_selection(scenarios: tuple[str, ...], iterations: int | None) -> tuple[str, ...]:
    """Return the plugin's options for some scenarios, and for the number of iterations."""
    chosen = tuple(f"--episode-scenario={scenario}" for scenario in scenarios)
    return chosen if iterations is None else (*chosen, f"--episode-iterations={iterations}")


@cli.command(cls=SettingsCommand, epilog=EXIT_CODES)
@click.option(
    "--results",
    multiple=True,
    help="Report folder, file or glob, in our JSON format or another supported runner's.",
)
@click.option("--junit", multiple=True, help="File or glob of JUnit XML from any producer.")
@add_format_option("text", "json", "markdown", "html")
@settings_file_option
def report(
    results: tuple[str, ...],
    junit: tuple[str, ...],
    format_: str,
    config: Path | None,
    **flags: object,
) -> int:
    """Judge existing result files, and write a report.

    \b
    agent-eval report --results agent-eval-report
    agent-eval report --junit 'build/test-results/**/*.xml' --format json
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    from ci_agent_eval.app.pipeline import report_files

    job = build_job(config, flags)
    built = report_files(
        job, results=results or job.settings.results, junit=junit or job.settings.junit
    )
    if format_ == "html":
        _print_page(job)
    else:
        _print_report(built, format_, job.links)
    return 0 if built.passed else 1


@cli.command(
    cls=SettingsCommand,
    tables=("compare",),
    without=("baseline", "baseline-artifact", "confirm", "confirm-base"),
    epilog=EXIT_CODES,
)
@click.argument("base", metavar="A")
@click.argument("results", metavar="B")
@add_format_option("text", "json", "markdown")
@settings_file_option
def compare(base: str, results: str, format_: str, config: Path | None, **flags: object) -> int:
    """Compare the results B with the baseline A, and judge them; nothing is written.

    \b
    agent-eval compare baseline/ agent-eval-report
    agent-eval compare git:main:evals/results.json agent-eval-report

    A accepts the values of the setting `baseline`; B is a report folder, a file or a pattern. The
    gate's requirements are those of the configuration file.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    from ci_agent_eval.app.pipeline import compare_files

    job = build_job(config, flags)
    built = compare_files(job, base=base, results=(results,))
    _print_report(built, format_, job.links)
    return 0 if built.passed else 1


def _print_page(job: Job) -> None:
    """Print the written page in chunks, as it may be large."""
    from ci_agent_eval.app.report_folder import PAGE_NAME

    with (job.folder / PAGE_NAME).open("rb") as page, _ignore_closed_stdout():
        shutil.copyfileobj(page, sys.stdout.buffer)
        sys.stdout.buffer.flush()


@contextmanager
def _ignore_closed_stdout() -> Iterator[None]:
    """Go on without stdout if its reader has ended: the exit code is the gate's."""
    try:
        yield
    except BrokenPipeError:
        # Python flushes stdout at its exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_report(
    built: Report,
    format_: str,
    links: Links,
    *,
    color: bool | None = None,
    paths: Sequence[str] = (),
) -> None:
    """Print the report; `color` None: in colour on a terminal. `paths`: those of the suite."""
    from ci_agent_eval.render.report_view import build_report_view

    if format_ == "json":
        from ci_agent_eval.render.formats.document import render_verdict

        text = render_verdict(built)
    elif format_ == "markdown":
        from ci_agent_eval.contract.wording import without_commands
        from ci_agent_eval.render.markdown.report import render_comment

        # In GitHub's log, unlike on its page, a fenced line of output could be a command.
        text = without_commands(render_comment(build_report_view(built, links)))
    else:
        from ci_agent_eval.app.report_folder import find_files_folder
        from ci_agent_eval.render.links import Links
        from ci_agent_eval.render.terminal.report import render_terminal

        width = shutil.get_terminal_size((100, 24)).columns
        color = _wants_color() if color is None else color
        view = build_report_view(built, Links(folder=find_files_folder(built, paths)))
        text = render_terminal(view, color=color, width=width)
    with _ignore_closed_stdout():
        click.echo(text, nl=False)


def _wants_color(pytest_args: Sequence[str] = ()) -> bool:
    """Return whether output is in colour: as pytest's `--color` says, by default on a terminal."""
    chosen = [arg.partition("=")[2] for arg in pytest_args if arg.startswith("--color=")]
    if chosen and chosen[-1] in {"yes", "no"}:
        return chosen[-1] == "yes"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


@cli.command()
def schema() -> int:
    """Print the JSON Schema of the result files."""
    from ci_agent_eval.contract.schema import render_schema

    click.echo(render_schema(), nl=False)
    return 0


@cli.command(epilog=EXIT_CODES)
def action() -> int:
    """Run the GitHub Action: read its inputs from the environment and do the whole job."""
    from ci_agent_eval.app.action import run_action

    progress = _build_progress(color=False)
    return run_action(
        os.environ,
        today=get_today(),
        echo=progress.echo,
        on_progress=progress.show,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; the only place that handles all errors."""
    words = list(sys.argv[1:] if argv is None else argv)
    _replace_unwritable_characters()
    before, after = _split_at_dashes(words)
    try:
        status = cli.main(before, prog_name="agent-eval", standalone_mode=False, obj=after)
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("agent-eval: interrupted", err=True)
        return 130
    except Terminated as error:
        notes = " ".join(getattr(error, "__notes__", ()))
        click.echo(f"agent-eval: ended by {error}. {notes}".rstrip(), err=True)
        return error.exit_code
    except AgentEvalError as error:
        _print_error(str(error))
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - no traceback by default
        return _handle_unexpected(error)
    return int(status or 0)


def _replace_unwritable_characters() -> None:
    """Write `?` for characters that an output's encoding lacks (cp1252 on Windows)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # a closed or replaced file keeps its own rule
                stream.reconfigure(errors="replace")


def _split_at_dashes(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Split the arguments at the first `--` of a command that runs pytest; the rest is for it."""
    if argv[:1] not in (["run"], ["scenarios"]) or "--" not in argv:
        return list(argv), ()
    at = list(argv).index("--")
    return list(argv[:at]), tuple(argv[at + 1 :])


def _print_error(sentence: str) -> None:
    """Print an error to stderr; inside a workflow also as a command, for the run's page."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from ci_agent_eval.render.formats.annotations import format_workflow_command

        click.echo(format_workflow_command("error", sentence))
    click.echo(f"agent-eval: {sentence}", err=True)


def _handle_unexpected(error: Exception) -> int:
    if os.environ.get("AGENT_EVAL_DEBUG"):
        raise error
    _print_error(
        f"unexpected {type(error).__name__}: {error}. "
        "This is a bug; set AGENT_EVAL_DEBUG=1 for the traceback."
    )
    return 3
