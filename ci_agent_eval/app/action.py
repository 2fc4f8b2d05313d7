"""The GitHub Action: reads its inputs, does the whole job, returns the exit code."""

from __future__ import annotations

import ctypes
import datetime as dt
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ci_agent_eval.app.fork_handoff import (
    download_results,
    find_handoff_findings,
    find_unexplained_failure,
    get_source_run,
    publish_refusal,
    require_readable_files,
)
from ci_agent_eval.app.pipeline import Job, report_files
from ci_agent_eval.app.report_folder import VERDICT_NAME, load_report, require_publishable
from ci_agent_eval.app.report_publication import (
    build_links,
    create_github_connector,
    create_log,
    publish_report,
    write_outputs,
)
from ci_agent_eval.app.suite_job import run_and_report
from ci_agent_eval.config.inputs import ActionInputs, parse_inputs
from ci_agent_eval.config.settings import (
    CONFIG_NAME,
    has_settings_file,
    load_manifest,
    load_settings,
    load_waivers,
)
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.errors import AgentEvalError, InputError, PublishError
from ci_agent_eval.gate.report import Report
from ci_agent_eval.github.api_errors import NotAllowedError
from ci_agent_eval.github.event import Event
from ci_agent_eval.github.publication import PublishResult
from ci_agent_eval.github.retries import Log
from ci_agent_eval.github.runner_files import load_event
from ci_agent_eval.github.signals import raise_on_termination
from ci_agent_eval.redaction import Redactor
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.terminal.report import render_terminal
from ci_agent_eval.results.baselines.artifact import build_artifact_source
from ci_agent_eval.results.baselines.load import ARTIFACT
from ci_agent_eval.runner.interpreter import find_suite_python
from ci_agent_eval.runner.progress import RunProgress

if TYPE_CHECKING:
    from ci_agent_eval.github.client import GitHubApi


Echo = Callable[[str], None]

_PR_SET_DUMPABLE = 4

LOG_WIDTH = 120
"""Columns of a job's log, which has no terminal size."""


def run_action(
    environ: Mapping[str, str],
    *,
    today: dt.date,
    echo: Echo,
    on_progress: Callable[[RunProgress], None],
) -> int:
    """Do the job requested by the inputs in the environment; return the exit code.

    Waivers are evaluated for `today`, the day in UTC.
    """
    keep_environment_private()
    inputs = parse_inputs(environ)
    event = load_event(environ)
    log = create_log(echo, environ)
    job = _build_job(inputs, event, environ, log, today)
    folder = Path(job.settings.report_dir)
    with ExitStack() as stack:
        if inputs.mode == "publish" and inputs.publishes:
            stack.enter_context(publish_unexpected_errors(inputs.token, event, job, log))
        if inputs.mode == "publish" and event.source is None:
            report = _load_written_report(job, event)
        else:
            report = _build_report(inputs, event, job, log=log, echo=echo, progress=on_progress)
            echo(render_terminal(build_report_view(report), color=False, width=LOG_WIDTH))
        if not inputs.publishes:
            write_outputs(report, folder, environ)
            return 0 if report.passed else 1
        result = publish_report(
            report,
            event,
            job.settings.model_copy(update={"suite": report.summary.suite}),
            folder=folder,
            token=inputs.token,
            environ=environ,
            echo=echo,
        )
    return compute_exit_code(report, result)


def _build_report(
    inputs: ActionInputs,
    event: Event,
    job: Job,
    *,
    log: Log,
    echo: Echo,
    progress: Callable[[RunProgress], None],
) -> Report:
    """Run the suite or read results, and write the report folder."""
    if inputs.mode == "publish":
        return _report_handoff(inputs, event, job, log)
    if inputs.mode == "run":
        with _provide_suite_python(inputs, job, echo) as python:
            _, report = run_and_report(
                job,
                paths=inputs.paths,
                pytest_args=inputs.pytest_args,
                shard=inputs.shard,
                python=python,
                install=inputs.install,
                echo=echo,
                on_progress=progress,
            )
        return report
    return report_files(
        replace(
            job,
            find_extra=lambda r: find_unexplained_failure("jobs", inputs.jobs_result, r),
        ),
        results=inputs.results or job.settings.results,
        junit=inputs.junit or job.settings.junit,
    )


def _provide_suite_python(
    inputs: ActionInputs, job: Job, echo: Echo
) -> AbstractContextManager[str]:
    if inputs.python_version is None:
        return nullcontext(find_suite_python(job.environ))
    from ci_agent_eval.app.install import create_suite_environment  # noqa: PLC0415 - rarely needed

    return create_suite_environment(
        inputs.python_version, root=job.root, environ=job.environ, echo=echo
    )


def _load_written_report(job: Job, event: Event) -> Report:
    """Return the report that an earlier step of this job wrote. Raises InputError."""
    if not (job.folder / VERDICT_NAME).exists():
        raise InputError(
            f"mode publish: no earlier step of this job wrote a report to {job.settings.report_dir}"
            f", and this run was started by {event.name}; add a step with mode run before it, or "
            "start it `on: workflow_run` to publish what another run left (docs/forks.md)"
        )
    report = load_report(job.folder)
    require_publishable(report, event.head_sha, job.folder)
    return report


def keep_environment_private() -> None:
    """Prevent the suite from reading our environment, with the token, in /proc.

    See prctl(2), PR_SET_DUMPABLE; without effect if the suite may trace any process. Other systems
    than Linux have no /proc.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def compute_exit_code(report: Report, result: PublishResult) -> int:
    """Return the gate's exit code, or 3 if it passed but publishing failed."""
    if not report.passed:
        return 1
    return 3 if result.has_failures else 0


def _build_job(
    inputs: ActionInputs, event: Event, environ: Mapping[str, str], log: Log, today: dt.date
) -> Job:
    root = Path(environ.get("GITHUB_WORKSPACE") or Path.cwd())
    config = root / inputs.config if inputs.config else None
    settings = load_settings(root=root, environ=environ, flags=inputs.options, config=config)
    github = create_github_connector(event, inputs.token, log)
    sources = {ARTIFACT: build_artifact_source(github, event, name=settings.compare.artifact)}
    agreed = load_waivers(root, settings, today, config)
    return Job(
        settings,
        root=root,
        environ=environ,
        links=build_links(event, settings),
        sources=sources,
        waivers=agreed,
        manifest=load_manifest(root, settings),
        # The required check is about the whole suite.
        partial="fail",
        started_by=event.name if event.source is None else event.source.event,
    )


def _report_handoff(inputs: ActionInputs, event: Event, job: Job, log: Log) -> Report:
    """Report the results handed over by another run. Publishes a refusal, then raises its error."""
    source = get_source_run(event)
    github = create_github_connector(event, inputs.token, log)
    if github is None:
        raise InputError("mode publish: there is no token; pass one as the input github-token")
    with ExitStack() as stack:
        stack.enter_context(raise_on_termination())
        api = stack.enter_context(github())
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="agent-eval-")))
        try:
            sessions = download_results(api, event, name=inputs.artifact, into=folder)
            known = (*_find_missing_settings(inputs, job.root),)
            handed = replace(
                job, find_extra=lambda r: (*known, *find_handoff_findings(source, sessions, r))
            )
            report = report_files(handed, results=(".",), junit=(), root=folder)
            require_readable_files(report.summary.findings)
        except AgentEvalError as error:
            if not inputs.publishes:
                raise
            raise _publish_refusal(api, event, job, error, log) from None
    return report


def _find_missing_settings(inputs: ActionInputs, root: Path) -> Iterator[Finding]:
    """Yield a notice if there is no settings file: the checkout may have been forgotten."""
    if not has_settings_file(root, root / inputs.config if inputs.config else None):
        message = (
            f"no {CONFIG_NAME} was found, so this is judged by the defaults and the workflow's "
            "inputs; where the default branch has one, check that branch out before this step"
        )
        yield Finding("default_settings", CONFIG_NAME, message, blocking=False)


@contextmanager
def publish_unexpected_errors(token: str, event: Event, job: Job, log: Log) -> Iterator[None]:
    """Publish a failed check run if an unexpected error ends the job, then re-raise it.

    Otherwise the required check would be missing, or an earlier one would remain.
    """
    try:
        yield
    except AgentEvalError:
        raise
    except Exception as error:
        github = create_github_connector(event, token, log)
        if github is not None:
            sentence = f"an unexpected {type(error).__name__} ended the job; its log says more"
            with suppress(Exception), github() as api:  # the first error is raised
                publish_refusal(api, event, sentence, settings=job.settings, log=log)
        raise


def _publish_refusal(
    api: GitHubApi, event: Event, job: Job, error: AgentEvalError, log: Log
) -> AgentEvalError:
    """Publish that the results were refused; return the error to raise."""
    message = Redactor.from_environ(job.environ).text(str(error))
    if isinstance(error, NotAllowedError):
        message += " Add `permissions: actions: read` to the job that publishes."
    try:
        publish_refusal(api, event, message, settings=job.settings, log=log)
    except PublishError as second:
        return PublishError(f"{message} And this could not be published: {second}")
    return InputError(message) if isinstance(error, InputError) else PublishError(message)
