"""Fork hand-off: a privileged job publishes the results of an unprivileged run.

The run's code, workflow file and artifacts are untrusted. Trusted is only GitHub's information
about the run and its commit. Artifacts are data: only files of a suite's run are read, and they
are validated, judged and rendered again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ci_agent_eval.analysis.summary import Summary
from ci_agent_eval.config.options import Settings
from ci_agent_eval.contract.base import describe_validation_error
from ci_agent_eval.contract.findings import Finding
from ci_agent_eval.contract.results import SESSION_NAME, Session
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate.report import Report
from ci_agent_eval.github.api_errors import (
    CommentsRefusedError,
    NotAllowedError,
    make_printable_line,
)
from ci_agent_eval.github.artifacts import fetch_artifacts, is_run_data, list_artifacts
from ci_agent_eval.github.check_run import CheckRunContent, publish_check_run
from ci_agent_eval.github.comment import upsert_comment
from ci_agent_eval.github.event import Event, SourceRun
from ci_agent_eval.github.publish import find_pulls_at_head
from ci_agent_eval.github.retries import Log
from ci_agent_eval.render.escape import code_span
from ci_agent_eval.render.links import quote_url
from ci_agent_eval.render.markdown.phrases import render_link
from ci_agent_eval.render.markdown.report import render_marker
from ci_agent_eval.render.sentences import describe_finding
from ci_agent_eval.results.json_text import parse_json

if TYPE_CHECKING:
    from ci_agent_eval.github.client import GitHubApi


_LARGEST_SESSION = 16 * 1024 * 1024
_TITLE = "The results were refused"


def get_source_run(event: Event) -> SourceRun:
    """Return the run to publish; raises InputError if there is none."""
    if event.source is None:
        raise InputError(
            f"mode publish: this run was started by {event.name}; it publishes what another "
            "workflow run left, so start it `on: workflow_run` (docs/forks.md)"
        )
    if event.source.conclusion is None:
        raise InputError(
            f"mode publish: run {event.source.id} has not ended; start this workflow "
            "with `types: [completed]`"
        )
    return event.source


def download_results(api: GitHubApi, event: Event, *, name: str, into: Path) -> tuple[Session, ...]:
    """Write the result files of the source run's artifacts to `into`, an empty folder.

    Returns their sessions in path order. Raises InputError, with a publishable message, if a file
    is not as expected; then no file may be used. Raises PublishError if the download fails.
    """
    source = get_source_run(event)
    artifacts = list_artifacts(api, source.id, name)
    if not artifacts:
        raise InputError(
            f"run {source.id} left no artifact {name}; see what it says, and let it upload the "
            "report folder with `if: always()`"
        )
    expired = next((one for one in artifacts if one.is_expired), None)
    if expired is not None:
        expired_name = make_printable_line(expired.name)
        raise InputError(f"artifact {expired_name} of run {source.id} has expired; run it again")
    fetch_artifacts(
        api, artifacts, into, run_id=source.id, head_sha=event.head_sha, wanted=is_run_data
    )
    return _check_sessions(into, source, event.head_sha)


def find_handoff_findings(
    source: SourceRun, sessions: Sequence[Session], report: Report
) -> Iterator[Finding]:
    """Yield findings where GitHub's state of the run contradicts the report of its results.

    A hand-over must contain judged episodes, and a failed run must contain a reason.
    """
    if report.passed and not report.summary.tally.judged:
        message = "no episode that was handed over passed or failed, so nothing is proven; "
        yield Finding("no_results", "", f"{message}check which tests the run selects")
    yield from find_unexplained_failure(f"run {source.id}", str(source.conclusion), report)
    yield from _find_stale_attempts(source, sessions)


def find_unexplained_failure(where: str, conclusion: str, report: Report) -> Iterator[Finding]:
    """Yield a finding if the job that ran the tests did not succeed and no result failed.

    A failure that does not gate, of an advisory scenario for example, explains it too.
    """
    if conclusion != "success" and report.passed and not _has_failures(report.summary):
        ended = make_printable_line(conclusion).replace("_", " ")
        message = (
            f"GitHub says that it ended in {ended}, and its results do not say why; a test file "
            "may not have loaded: see its log, and let it do nothing but run the suite"
        )
        yield Finding("failed_job", where, message)


def _has_failures(summary: Summary) -> bool:
    return any(tally.failed or tally.error for tally in (summary.tally, summary.tests.tally))


def _find_stale_attempts(source: SourceRun, sessions: Sequence[Session]) -> Iterator[Finding]:
    """Yield findings for results of earlier attempts at the run.

    "Re-run failed jobs" keeps the shards that passed. An attempt without any results did not run
    the suite, or died before the upload.
    """
    latest: dict[int | None, int] = {}
    for session in sessions:
        if session.run is not None:  # otherwise the attempt is unknown, too
            index = None if session.shard is None else session.shard.index
            latest[index] = max(latest.get(index, 0), session.attempt)
    if source.attempt is None or not latest:
        return
    where, now = f"run {source.id}", source.attempt
    if max(latest.values()) < now:
        message = f"attempt {now} left no results, these are of an attempt before; run all jobs"
        yield Finding("handover", where, f"{message} again")
        return
    for index, attempt in sorted((i, a) for i, a in latest.items() if i is not None and a < now):
        message = f"attempt {now} did not run shard {index} again: its results are of {attempt}"
        yield Finding("handover", where, message, blocking=False)


def _check_sessions(folder: Path, source: SourceRun, head_sha: str) -> tuple[Session, ...]:
    """Check each session against GitHub's run and commit; return the sessions."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    if not files:
        raise InputError("the artifact holds no results; upload the report folder as it is")
    for file in files:
        owner = file.parent.parent if file.suffix == ".jsonl" else file.parent
        if not (owner / SESSION_NAME).is_file():
            name = _name_file(file, folder)
            raise InputError(f"{name}: no {SESSION_NAME} says which commit it is about")
    return tuple(
        _check_session(file, _name_file(file, folder), source, head_sha)
        for file in files
        if file.name == SESSION_NAME
    )


def _check_session(file: Path, name: str, source: SourceRun, head_sha: str) -> Session:
    session = _read_session(file, name)
    if session.commit is None:
        raise InputError(f"{name}: it names no commit; use the same version in both workflows")
    if session.commit != head_sha:
        other = make_printable_line(session.commit)
        raise InputError(f"{name}: it is about commit {other}, the run about {head_sha}")
    if session.run not in {None, str(source.id)}:
        raise InputError(
            f"{name}: it is from run {make_printable_line(str(session.run))}, not {source.id}"
        )
    if source.attempt is not None and session.attempt > source.attempt:
        raise InputError(
            f"{name}: the artifact is from attempt {session.attempt}, but attempt "
            f"{source.attempt} is being published; use attempt {session.attempt}'s report"
        )
    return session


def _read_session(file: Path, name: str) -> Session:
    with file.open("rb") as opened:
        text = opened.read(_LARGEST_SESSION)
    try:
        return Session.model_validate(parse_json(text))
    except ValueError as error:  # includes pydantic's ValidationError
        raise InputError(
            f"{name}: {make_printable_line(describe_validation_error(error))}"
        ) from None


def _name_file(file: Path, folder: Path) -> str:
    """Return a file's name relative to the artifacts' folder."""
    return make_printable_line(file.relative_to(folder).as_posix())


def require_readable_files(findings: Iterable[Finding]) -> None:
    """Raise InputError if a downloaded file could not be read completely."""
    for finding in findings:
        if finding.kind == "unreadable_file":
            raise InputError(make_printable_line(f"{finding.where}: {describe_finding(finding)}"))


def publish_refusal(
    api: GitHubApi, event: Event, sentence: str, *, settings: Settings, log: Log
) -> None:
    """Publish a refusal as a failed check run, and in existing comments.

    Raises PublishError after trying both.
    """
    quoted = code_span(sentence, limit=900)
    try:
        if settings.publish.comment != "off":
            _correct_comments(api, event, quoted, settings, log)
    finally:
        if settings.publish.check_run:
            content = CheckRunContent(
                name=settings.check_name,
                head_sha=event.head_sha,
                title=_TITLE,
                summary=f"{_TITLE}, and nothing of them is published: {quoted}",
                conclusion="failure",
                details_url=event.run_url,
            )
            publish_check_run(api, content, log)


def _correct_comments(
    api: GitHubApi, event: Event, quoted: str, settings: Settings, log: Log
) -> None:
    """Replace the comments of earlier results on the commit's pull requests by the refusal."""
    mark = render_marker(settings.suite)
    run = f" ({render_link('run', quote_url(event.run_url))})" if event.run_url else ""
    head = f"{mark}\n### ❌ Agent evals failed: the results were refused"
    body = f"{head}\n\nNothing of them is published: {quoted}{run}\n"
    try:
        for number in find_pulls_at_head(api, event):
            upsert_comment(
                api,
                number,
                body=body,
                marker=mark,
                author=settings.publish.comment_author,
                log=log,
                why_not=lambda ours: None if ours else "there is none of earlier results",
            )
    except (NotAllowedError, CommentsRefusedError) as error:
        log("warning", f"A comment of earlier results may stand. {error}")
