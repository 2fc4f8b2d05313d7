"""Publish a report: files first, so that they exist even if the network fails.

Then the check run is opened, then the comment, which links to it, then the annotations, which may
be many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api import Comment, Json, Pull
from ci_agent_eval.github.api_errors import CommentsRefusedError, NotAllowedError
from ci_agent_eval.github.check_run import (
    OTHER_JOB_FAILED,
    CheckRunContent,
    OnOpen,
    publish_check_run,
)
from ci_agent_eval.github.comment import upsert_comment
from ci_agent_eval.github.event import DEPENDABOT, Event
from ci_agent_eval.github.publication import (
    CommentMode,
    Publication,
    PublishedPart,
    PublishOptions,
    PublishResult,
)
from ci_agent_eval.github.retries import Log
from ci_agent_eval.github.runner_files import RunnerFiles, append_outputs, append_step_summary
from ci_agent_eval.render.comment_state import parse_state
from ci_agent_eval.render.formats.annotations import Annotation, render_commands
from ci_agent_eval.render.links import DetailsPage, quote_url
from ci_agent_eval.render.markdown.guard import find_foreign_elements

if TYPE_CHECKING:
    from ci_agent_eval.github.client import GitHubApi

_SKIPPED = (
    "No comment and no check run: there is no token. Pass one as the input `github-token` "
    "(the default is the job's own), or set GITHUB_TOKEN."
)

Connect = Callable[[], AbstractContextManager["GitHubApi"]]
"""Opens GitHub's API; called only if there is something to send."""


@dataclass(frozen=True, slots=True)
class PublishEnvironment:
    """The outputs of publishing other than GitHub's API."""

    files: RunnerFiles
    log: Log
    """Receives notes that no result contains: waits, comments of other authors."""
    emit: Callable[[str], None]
    """Receives workflow commands for standard output."""
    token: Callable[[], str]
    """Returns random words for delimiters."""


def publish_to_github(
    publication: Publication,
    event: Event,
    settings: PublishOptions,
    *,
    connect: Connect | None,
    around: PublishEnvironment,
) -> PublishResult:
    """Publish all requested parts that are possible; `connect` is None without a token.

    Failures are part of the result and raise nothing.
    """
    result = PublishResult(_write_files(publication, around))
    if settings.comment != "off" or settings.check_run:
        if connect is None:
            skipped = PublishedPart("publishing to GitHub", "skipped", _SKIPPED)
            result = PublishResult((*result.files, skipped))
        else:
            with connect() as api:
                target = _Target(api, publication, event, settings, around)
                result = PublishResult(result.files, *target.publish())
    published = result.check_run is not None and result.check_run.is_published
    # Without a check run the annotations are sent as workflow commands.
    use_commands = settings.in_workflow and not published
    if use_commands and publication.annotations:
        around.emit(render_commands(publication.annotations))
    if publication.left_out and (use_commands or published):
        around.log("notice", publication.left_out)
    return result


def find_pulls(api: GitHubApi, event: Event) -> Sequence[Pull]:
    """Return the pull requests that may have the event's commit as head; raises PublishError.

    GitHub does not know a fork's commit in this repository, so a fork's pull requests are found by
    branch. All results are from the event's own repository or fork.
    """
    source = event.source
    if source is None or source.head_repository is None:
        return api.pulls_of_commit(event.head_sha)
    if event.is_fork:
        owner = source.head_repository.partition("/")[0]
        found = api.pulls_of_branch(owner, source.head_branch)
    else:
        found = api.pulls_of_commit(event.head_sha)
    return [one for one in found if one.head_repository == source.head_repository]


def find_pulls_at_head(api: GitHubApi, event: Event) -> list[int]:
    """Return the open pull requests with the event's commit as head; raises PublishError."""
    pulls = [one for one in find_pulls(api, event) if one.is_open]
    return sorted(one.number for one in pulls if one.head_sha == event.head_sha)


def _write_files(publication: Publication, around: PublishEnvironment) -> tuple[PublishedPart, ...]:
    files, parts = around.files, []
    if files.step_summary is not None and publication.step_summary:
        short = f"### {publication.headline}"
        parts.append(append_step_summary(files.step_summary, publication.step_summary, short=short))
    if files.outputs is not None and publication.outputs:
        parts.append(append_outputs(files.outputs, publication.outputs, around.token))
    return tuple(parts)


def _add_details(publication: Publication, page: DetailsPage | None) -> Publication:
    """Add the link to a page of details, unless the comment already links to conversations."""
    if page is None or publication.render_with_details is None:
        return publication
    return replace(
        publication,
        comment_body=publication.render_with_details(page),
        link_prefixes=(*publication.link_prefixes, quote_url(page.url)),
    )


@dataclass(frozen=True, slots=True)
class _Target:
    """The publication of one report to one commit."""

    api: GitHubApi
    publication: Publication
    event: Event
    settings: PublishOptions
    around: PublishEnvironment

    def publish(self) -> tuple[PublishedPart | None, tuple[PublishedPart, ...]]:
        """Publish the check run and the comments.

        The comments follow when the check run is open: annotations may take minutes. If none could
        be opened, they link to the run's page, which has the step summary.
        """
        comments: list[tuple[PublishedPart, ...]] = []

        def publish_comments(page: DetailsPage | None) -> None:
            linked = replace(self, publication=_add_details(self.publication, page))
            comments.append(linked.comments())

        run = self.event.run_url
        summary = DetailsPage("summary", run) if run else None
        check_run = None
        if self.settings.check_run:

            def publish_beside(url: str, failed: bool) -> None:
                if failed and self.publication.conclusion == "success":
                    sentence = f"The comment of a failed job stays. {OTHER_JOB_FAILED}"
                    comments.append((PublishedPart("comment", "withheld", sentence),))
                else:
                    publish_comments(DetailsPage("check run", url) if url else summary)

            check_run = self.check_run(publish_beside)
        if not comments:
            publish_comments(summary)
        return check_run, comments[0]

    def check_run(self, on_open: OnOpen) -> PublishedPart:
        """Publish the check run."""
        report = self.publication
        content = CheckRunContent(
            name=report.check_name,
            head_sha=self.event.head_sha,
            title=report.check_title,
            summary=self._check_safety(
                report.check_summary, report.headline, "check run's summary"
            ),
            conclusion=report.conclusion,
            annotations=tuple(convert_annotation(one) for one in report.annotations),
            details_url=self.event.run_url,
            attempt=self._name_attempt(),
        )
        log = self.around.log
        return self._part("check run", lambda: publish_check_run(self.api, content, log, on_open))

    def _name_attempt(self) -> str:
        event = self.event
        known = event.run_id is not None and event.run_attempt
        return f"{event.run_id}.{event.run_attempt}" if known else ""

    def comments(self) -> tuple[PublishedPart, ...]:
        """Publish the comment on each of its pull requests."""
        if self.settings.comment == "off":
            return ()
        if self.event.pulls is None:
            try:
                return tuple(self._comment(number) for number in self._pulls())
            except PublishError as error:
                return (self._build_error_part("comment", error),)
        parts = [self._comment_at_head(number) for number in self.event.pulls]
        return tuple(part for part in parts if part is not None)

    def _pulls(self) -> list[int]:
        """Return the open pull requests with this commit as head."""
        pulls = [one for one in find_pulls(self.api, self.event) if one.is_open]
        heads = [one.number for one in pulls if one.head_sha == self.event.head_sha]
        if not heads:
            self.around.log("notice", "No open pull request has this commit as its head.")
        for moved in sorted({one.number for one in pulls} - set(heads)):
            self._log_moved_head(moved)
        return sorted(heads)

    def _log_moved_head(self, number: int) -> None:
        self.around.log("notice", f"#{number} has moved on to another commit: no comment there.")

    def _comment_at_head(self, number: int) -> PublishedPart | None:
        """Publish the comment, or return None if the pull request has another head commit.

        A run that ends late would otherwise overwrite the comment of a newer commit's run.
        """
        try:
            head = self.api.pull_head(number)
        except PublishError as error:
            return self._build_error_part(f"comment on #{number}", error)
        if head not in {None, self.event.head_sha}:
            self._log_moved_head(number)
            return None
        return self._comment(number)

    def _comment(self, number: int) -> PublishedPart:
        content = self.publication
        body = self._check_safety(content.comment_body, content.fallback_body, "comment")
        return self._part(
            f"comment on #{number}",
            lambda: upsert_comment(
                self.api,
                number,
                body=body,
                marker=content.marker,
                author=self.settings.comment_author,
                why_not=lambda ours: find_skip_reason(self.settings.comment, content, ours),
                log=self.around.log,
            ),
        )

    def _check_safety(self, text: str, fallback: str, part: str) -> str:
        """Return the text, or the fallback if the text contains foreign elements."""
        foreign = find_foreign_elements(text, self.publication.link_prefixes)
        if not foreign:
            return text
        self.around.log(
            "warning",
            f"The {part} was withheld and only the verdict published, because its last safety "
            f"check found foreign text ({len(foreign)} times, first: {foreign[0][:200]}). "
            "The report folder has all of it. Please report this as a bug.",
        )
        return fallback

    def _part(self, name: str, act: Callable[[], PublishedPart]) -> PublishedPart:
        try:
            return act()
        except PublishError as error:
            return self._build_error_part(name, error)

    def _build_error_part(self, name: str, error: PublishError) -> PublishedPart:
        """Return a skipped part if this run cannot change the cause, else a failed one."""
        if isinstance(error, NotAllowedError):
            reason = explain_refusal(self.event, error.permission) if error.permission else ""
            return PublishedPart(name, "skipped", f"{error} {reason}".rstrip())
        skipped = isinstance(error, CommentsRefusedError)
        return PublishedPart(name, "skipped" if skipped else "failed", str(error))


def convert_annotation(annotation: Annotation) -> Json:
    """Convert an annotation to the format of GitHub's API."""
    converted: dict[str, str | int] = {
        "path": annotation.path,
        "start_line": annotation.start_line,
        "end_line": annotation.end_line,
        "annotation_level": annotation.level,
        "title": annotation.title,
        "message": annotation.message,
    }
    if annotation.raw_details is not None:
        converted["raw_details"] = annotation.raw_details
    return converted


def find_skip_reason(
    mode: CommentMode, publication: Publication, ours: Comment | None
) -> str | None:
    """Return why a comment is not written; None if it is. `ours` is the existing comment.

    A comment that reports a failure is always updated, so that nobody acts on a stale one.
    """
    if mode == "on-failure" and ours is None and publication.conclusion == "success":
        return "the gate passed, and comments are posted only on failure"
    if mode == "on-change":
        if ours is not None and parse_state(ours.body) == publication.comment_state:
            return "what it says has not changed"
        if ours is None and publication.differs is False:
            return "nothing differs from the baseline"
    return None


def explain_refusal(event: Event, permission: str) -> str:
    """Return why a token may have been refused, and the remedy; `permission` is GitHub's name."""
    if event.name == "pull_request" and event.is_fork:
        cause = "This pull request comes from a fork"
    elif event.actor == DEPENDABOT:
        cause = "Dependabot started this run"
    else:
        return f"Add `permissions: {permission}: write` to the workflow's job."
    return (
        f"{cause}, and GitHub gives such a run a read-only token. To publish all the same, "
        "upload the report folder here and publish it from a `workflow_run` job (docs/forks.md)."
    )
