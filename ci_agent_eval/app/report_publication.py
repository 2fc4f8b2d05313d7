"""Publication of a report on GitHub: its rendered content, and the call that sends it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ci_agent_eval.config.options import Settings
from ci_agent_eval.contract.wording import pluralize, without_commands
from ci_agent_eval.gate.report import Report
from ci_agent_eval.github.event import Event
from ci_agent_eval.github.publication import Publication, PublishOptions, PublishResult
from ci_agent_eval.github.publish import PublishEnvironment, publish_to_github
from ci_agent_eval.github.retries import Level, Log
from ci_agent_eval.github.runner_files import RunnerFiles, append_outputs
from ci_agent_eval.github.signals import raise_on_termination
from ci_agent_eval.render.comment_state import compute_state, differs_from_baseline
from ci_agent_eval.render.formats.annotations import format_workflow_command, list_by_importance
from ci_agent_eval.render.headline import render_headline
from ci_agent_eval.render.links import DetailsPage, Links
from ci_agent_eval.render.markdown.report import (
    describe_left_out_annotations,
    render_check_summary,
    render_comment,
    render_headline_comment,
    render_marker,
    render_step_summary,
)
from ci_agent_eval.render.report_view import build_report_view

if TYPE_CHECKING:
    from ci_agent_eval.github.client import GitHubApi


Echo = Callable[[str], None]
"""Writes one line to standard output."""


def build_links(event: Event, settings: Settings) -> Links:
    """Return the link targets of an event's report."""
    return Links(
        server_url=event.server_url,
        repository=event.repository,
        sha=event.head_sha,
        run_url=event.run_url,
        artifact_url=f"{event.run_url}#artifacts" if event.run_url else None,
        report_url=settings.publish.report_url,
    )


def build_publication(
    report: Report, links: Links, settings: Settings, folder: Path
) -> Publication:
    """Render a report's content for GitHub."""
    view = build_report_view(report, links)

    def render_with_details(page: DetailsPage) -> str:
        return render_comment(build_report_view(report, replace(links, details=page)))

    found, limit = list_by_importance(view), settings.publish.max_annotations
    left_out = describe_left_out_annotations(len(found), limit)
    return Publication(
        headline=view.headline,
        marker=render_marker(view.suite),
        comment_body=render_comment(view),
        render_with_details=None if links.report_url else render_with_details,
        fallback_body=render_headline_comment(view),
        comment_state=compute_state(view),
        differs=differs_from_baseline(view),
        link_prefixes=links.prefixes,
        check_name=settings.check_name,
        check_title=view.headline,
        check_summary=render_check_summary(view, left_out=left_out),
        conclusion=view.conclusion,
        annotations=found[:limit],
        left_out=left_out,
        step_summary=render_step_summary(view),
        outputs=build_outputs(report, folder),
    )


def build_outputs(report: Report, folder: Path) -> dict[str, str]:
    """Return the action's outputs, except the addresses that are known only after publishing."""
    required = report.required_scenarios
    violations = sum(1 for _ in report.list_violations()) + len(report.summary.suite_violations)
    return {
        "conclusion": report.verdict.conclusion,
        "headline": render_headline(report),
        "report-dir": folder.as_posix(),
        "scenarios": str(len(required)),
        "scenarios-passing": str(sum(1 for item in required if item.is_passing)),
        "episodes": str(report.summary.tally.total),
        "budget-violations": str(violations),
        "conversations": str(report.summary.evaluations.conversations),
        "conversations-passed": str(report.summary.evaluations.passed),
        "average-score": _format_score(report.summary.evaluations.mean_score),
    }


def _format_score(value: float | None) -> str:
    """Format a score as in `eval-results.json`; empty if not measured."""
    return "" if value is None else f"{value:.6f}".rstrip("0").rstrip(".")


def publish_report(
    report: Report,
    event: Event,
    settings: Settings,
    *,
    folder: Path,
    token: str,
    environ: Mapping[str, str],
    echo: Echo,
) -> PublishResult:
    """Publish a report, print the result of each part, and set the outputs with addresses."""
    files, log = _find_runner_files(environ), create_log(echo, environ)
    with raise_on_termination():
        result = publish_to_github(
            build_publication(report, build_links(event, settings), settings, folder),
            event,
            _build_publish_options(report, settings, in_workflow=_in_workflow(environ)),
            connect=create_github_connector(event, token, log),
            around=PublishEnvironment(files=files, log=log, emit=echo, token=_random_word),
        )
    for part in result.parts:
        level: Level = "warning" if part.status == "failed" else "notice"
        log(level, part.sentence) if not part.is_published else echo(part.sentence)
    _write_addresses(result, files)
    return result


def show_publication(
    report: Report, event: Event | None, settings: Settings, *, folder: Path, echo: Echo
) -> None:
    """Print the Markdown of comment and check run, and send nothing; `event` None: unknown."""
    links = Links() if event is None else build_links(event, settings)
    publication = build_publication(report, links, settings, folder)
    options = _build_publish_options(report, settings, in_workflow=False)
    if options.comment != "off":
        # In GitHub's log, unlike on its page, a fenced line of output could be a command.
        echo(without_commands(f"Comment:\n\n{publication.comment_body}"))
    if options.check_run:
        annotations = pluralize(len(publication.annotations), "annotation")
        echo(f"Check run {publication.check_name}, {publication.conclusion}, {annotations}:\n")
        echo(without_commands(f"{publication.check_title}\n\n{publication.check_summary}"))
    echo("Dry run: nothing was sent.")


def write_outputs(report: Report, folder: Path, environ: Mapping[str, str]) -> None:
    """Set the action's outputs, for a report that a later step publishes."""
    path = _find_runner_files(environ).outputs
    if path is not None:
        append_outputs(path, build_outputs(report, folder), _random_word)


def _build_publish_options(
    report: Report, settings: Settings, *, in_workflow: bool
) -> PublishOptions:
    """Return the requested publications; a shard publishes only files."""
    if report.summary.shard is not None:
        return PublishOptions(comment="off", check_run=False, in_workflow=False)
    return PublishOptions(
        comment=settings.publish.comment,
        check_run=settings.publish.check_run,
        comment_author=settings.publish.comment_author,
        in_workflow=in_workflow,
    )


def _in_workflow(environ: Mapping[str, str]) -> bool:
    return environ.get("GITHUB_ACTIONS") == "true"


def create_log(echo: Echo, environ: Mapping[str, str]) -> Log:
    """Return a log that prints workflow commands, or plain text outside of a workflow."""
    in_workflow = _in_workflow(environ)

    def log(level: Level, sentence: str) -> None:
        echo(format_workflow_command(level, sentence) if in_workflow else f"{level}: {sentence}")

    return log


def _find_runner_files(environ: Mapping[str, str]) -> RunnerFiles:
    summary, outputs = environ.get("GITHUB_STEP_SUMMARY"), environ.get("GITHUB_OUTPUT")
    return RunnerFiles(Path(summary) if summary else None, Path(outputs) if outputs else None)


def _random_word() -> str:
    return secrets.token_hex(16)


def create_github_connector(
    event: Event, token: str, log: Log
) -> Callable[[], AbstractContextManager[GitHubApi]] | None:
    """Return a function that opens GitHub for an event's repository; None without a token."""
    if not token:
        return None

    def connect() -> AbstractContextManager[GitHubApi]:
        # Importing PyGithub takes a third of a second, so only publishing does it.
        from ci_agent_eval.github import client  # noqa: PLC0415 - see above

        connection = client.Connection(event.repository, token, event.api_url)
        return client.open_api(connection, sleep=time.sleep, clock=time.time, log=log)

    return connect


def _write_addresses(result: PublishResult, files: RunnerFiles) -> None:
    """Set the outputs with the addresses of published parts."""
    parts = {"comment-url": result.comment, "check-run-url": result.check_run}
    found = {name: part.url for name, part in parts.items() if part is not None and part.url}
    if files.outputs is not None and found:
        append_outputs(files.outputs, found, _random_word)
