"""Publishing in order: files first, so that they are there whatever the network does.

Then the comment, then the check run with its annotations, which may be many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.activity import (
    Activity,
    decide_activity,
    explain_refusal,
    find_skip_reason,
    should_emit_commands,
)
from ci_agent_eval.github.api import Api, Pull
from ci_agent_eval.github.api_errors import IssuesDisabledError, NotAllowedError
from ci_agent_eval.github.check_run import CheckRunContent, publish_check_run
from ci_agent_eval.github.comment import upsert_comment
from ci_agent_eval.github.event import Event
from ci_agent_eval.github.publication import (
    Publication,
    PublishedPart,
    PublishOptions,
    PublishResult,
)
from ci_agent_eval.github.retries import Log
from ci_agent_eval.github.runner_files import RunnerFiles, append_outputs, append_step_summary
from ci_agent_eval.github.writes import Json
from ci_agent_eval.render.formats.annotations import Annotation
from ci_agent_eval.render.formats.workflow_commands import render_commands
from ci_agent_eval.render.markdown.guard import foreign_elements

Connect = Callable[[], AbstractContextManager[Api]]
"""Opens GitHub; called only when there is something to do there."""


@dataclass(frozen=True, slots=True)
class PublishEnvironment:
    """What publishing reaches besides GitHub."""

    files: RunnerFiles
    log: Log
    """Takes what is worth knowing and stands in no result: waiting, strangers' comments."""
    emit: Callable[[str], None]
    """Takes workflow commands, ready to be written to standard output."""
    token: Callable[[], str]
    """Yields random words, for delimiters."""


def publish_to_github(
    publication: Publication,
    event: Event,
    settings: PublishOptions,
    *,
    connect: Connect | None,
    around: PublishEnvironment,
) -> PublishResult:
    """Publish everything that is wanted and possible; `connect` is None without a token.

    What could not be published stands in the result and raises nothing.
    """
    files = _write_files(publication, around)
    activity = decide_activity(
        event,
        comment=settings.comment != "off",
        check_run=settings.check_run,
        has_token=connect is not None,
    )
    result = PublishResult(files=(*files, *_build_skipped_parts(activity)))
    if connect is not None and activity.needs_network:
        with connect() as api:
            target = _Target(api, publication, event, settings, around)
            # Annotations may take minutes, and the comment is what people wait for.
            comments = target.comments(activity)
            check_run = target.check_run() if activity.check_run else None
            result = PublishResult(files, check_run, comments)
    published = result.check_run is not None and result.check_run.is_published
    wanted = should_emit_commands(check_run_published=published, in_workflow=settings.in_workflow)
    if wanted and publication.annotations:
        around.emit(render_commands(publication.annotations))
    if publication.left_out and (wanted or published):
        around.log("notice", publication.left_out)
    return result


def find_pulls(api: Api, event: Event) -> Sequence[Pull]:
    """Return the pull requests that an event's commit may be the head of; raises PublishError.

    GitHub does not know a fork's commit in this repository, so a fork's pull requests are
    found by its branch. All of them are from the event's own repository or fork.
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


def find_pulls_at_head(api: Api, event: Event) -> list[int]:
    """Return the open pull requests that an event's commit is the head of; raises PublishError."""
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


def _build_skipped_parts(activity: Activity) -> tuple[PublishedPart, ...]:
    return tuple(
        PublishedPart("publishing to GitHub", "skipped", notice) for notice in activity.notices
    )


@dataclass(frozen=True, slots=True)
class _Target:
    """One publication on its way to one commit."""

    api: Api
    publication: Publication
    event: Event
    settings: PublishOptions
    around: PublishEnvironment

    def check_run(self) -> PublishedPart:
        """Publish the check run."""
        shown = self.publication
        content = CheckRunContent(
            name=shown.check_name,
            head_sha=self.event.head_sha,
            title=shown.check_title,
            summary=self._safe(shown.check_summary, shown.headline, "check run's summary"),
            conclusion=shown.conclusion,
            annotations=tuple(convert_annotation(one) for one in shown.annotations),
            details_url=self.event.run_url,
        )
        log = self.around.log
        return self._part("check run", lambda: publish_check_run(self.api, content, log))

    def comments(self, activity: Activity) -> tuple[PublishedPart, ...]:
        """Publish the comment on every pull request it belongs to."""
        found: list[int] = []
        if activity.look_up_pulls:
            try:
                found = self._pulls()
            except PublishError as error:
                return (self._refused("comment", error),)
        parts = [self._comment_at_head(number) for number in activity.comment_on]
        return (
            *(part for part in parts if part is not None),
            *(self._comment(number) for number in found),
        )

    def _pulls(self) -> list[int]:
        """Return the open pull requests that this commit is the head of."""
        pulls = [one for one in find_pulls(self.api, self.event) if one.is_open]
        heads = [one.number for one in pulls if one.head_sha == self.event.head_sha]
        if not heads:
            self.around.log("notice", "No open pull request has this commit as its head.")
        for moved in sorted({one.number for one in pulls} - set(heads)):
            self._say_moved_on(moved)
        return sorted(heads)

    def _say_moved_on(self, number: int) -> None:
        self.around.log("notice", f"#{number} has moved on to another commit: no comment there.")

    def _comment_at_head(self, number: int) -> PublishedPart | None:
        """Publish the comment unless the pull request is at another commit: then return None.

        A run that ends late would otherwise overwrite what a newer commit's run has said.
        """
        try:
            head = self.api.pull_head(number)
        except PublishError as error:
            return self._refused(f"comment on #{number}", error)
        if head not in {None, self.event.head_sha}:
            self._say_moved_on(number)
            return None
        return self._comment(number)

    def _comment(self, number: int) -> PublishedPart:
        shown = self.publication
        body = self._safe(shown.comment_body, shown.fallback_body, "comment")
        return self._part(
            f"comment on #{number}",
            lambda: upsert_comment(
                self.api,
                number,
                body=body,
                marker=shown.marker,
                author=self.settings.comment_author,
                why_not=lambda ours: find_skip_reason(self.settings.comment, shown, ours),
                log=self.around.log,
            ),
        )

    def _safe(self, text: str, otherwise: str, what: str) -> str:
        """Return the text, or its stand-in where something in it is not ours."""
        foreign = foreign_elements(text, self.publication.link_prefixes)
        if not foreign:
            return text
        self.around.log(
            "warning",
            f"The {what} was withheld and only the verdict published, because its last safety "
            f"check found what is not ours ({len(foreign)} times, first: {foreign[0][:200]}). "
            "The report folder has all of it. Please report this as a bug.",
        )
        return otherwise

    def _part(self, name: str, act: Callable[[], PublishedPart]) -> PublishedPart:
        try:
            return act()
        except PublishError as error:
            return self._refused(name, error)

    def _refused(self, name: str, error: PublishError) -> PublishedPart:
        """Tell what this run cannot help from what failed."""
        if isinstance(error, NotAllowedError):
            reason = explain_refusal(self.event, error.permission) if error.permission else ""
            return PublishedPart(name, "skipped", f"{error} {reason}".rstrip())
        skipped = isinstance(error, IssuesDisabledError)
        return PublishedPart(name, "skipped" if skipped else "failed", str(error))


def convert_annotation(annotation: Annotation) -> Json:
    """Return an annotation as GitHub's API takes it."""
    shown: dict[str, str | int] = {
        "path": annotation.path,
        "start_line": annotation.start_line,
        "end_line": annotation.end_line,
        "annotation_level": annotation.level,
        "title": annotation.title,
        "message": annotation.message,
    }
    if annotation.raw_details is not None:
        shown["raw_details"] = annotation.raw_details
    return shown
