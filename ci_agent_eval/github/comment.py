"""One comment per pull request and suite, updated in place, and unchanged if equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api import Comment
from ci_agent_eval.github.api_errors import NotFoundError
from ci_agent_eval.github.publication import PublishedPart, Status
from ci_agent_eval.github.retries import Log, retry_ambiguous

if TYPE_CHECKING:
    from ci_agent_eval.github.client import GitHubApi

APP_LOGIN = "github-actions[bot]"
"""Login of a workflow's own token, which may not read its login."""


FindSkipReason = Callable[[Comment | None], str | None]
"""Returns why no comment is written, given our existing comment; None: write it."""


def upsert_comment(
    api: GitHubApi,
    issue: int,
    *,
    body: str,
    marker: str,
    author: str | None,
    log: Log,
    why_not: FindSkipReason = lambda _: None,
) -> PublishedPart:
    """Create or update our comment on a pull request.

    Our comments start with the line `marker` and are written by `author`, or by the token's own
    account if that is None. The oldest one is updated and others are deleted, so that concurrent
    publishers agree. Raises PublishError.
    """
    comments = _OwnComments(api, issue, marker, author, log)
    done: Status = "unchanged"
    posted: Comment | None = None

    def write(ours: Comment | None) -> PublishedPart:
        nonlocal done, posted
        if ours is not None and _normalize_text(ours.body) == _normalize_text(body):
            return _build_part(issue, done, ours)
        if (reason := why_not(ours)) is not None:
            return _build_withheld_part(issue, reason, ours)
        if ours is not None:
            done = "updated"
            return _build_part(issue, done, comments.update(ours, body))
        done = "created"
        posted = api.create_comment(issue, body)
        _check_author(posted, author, log)
        return _build_part(issue, done, posted)

    def attempt(_number: int) -> PublishedPart:
        # Reading all comments first also shows a second attempt the result of the first.
        ours = comments.ours()
        try:
            part = write(ours[0] if ours else None)
        except NotFoundError:
            if not ours:
                raise
            # Somebody deleted the comment after it was read.
            ours = comments.ours()
            part = write(ours[0] if ours else None)
        comments.delete(ours[1:])
        return part

    part = retry_ambiguous(attempt, api.wait)
    return part if posted is None else comments.settle(posted) or part


@dataclass(frozen=True, slots=True)
class _OwnComments:
    """Our comments on one pull request."""

    api: GitHubApi
    issue: int
    marker: str
    author: str | None
    log: Log

    def ours(self) -> list[Comment]:
        """Return our comments, oldest first; the token's login is requested only if needed."""
        found = self.api.comments(self.issue)
        marked = [one for one in found if _normalize_text(one.body).split("\n")[0] == self.marker]
        if not marked:
            return []
        login = (self.author or self.api.login() or APP_LOGIN).casefold()
        ours = [one for one in marked if one.author.casefold() == login]
        foreign = len(marked) - len(ours)
        _log_strangers(foreign, "by others that carry our marker: left alone", self.issue, self.log)
        return sorted(ours, key=lambda one: one.id)

    def settle(self, posted: Comment) -> PublishedPart | None:
        """Merge comments that were posted concurrently into the oldest one.

        It gets the newest text, as if they had been published in sequence. Returns None if `posted`
        itself remains.
        """
        try:
            ours = self.ours()
        except PublishError as error:
            sentence = "It is not known whether another job posted the same comment now."
            self.log("notice", f"{sentence} {error}")
            return None
        if not ours or ours[0].id == posted.id:
            self.delete(ours[1:])
            return None
        kept = ours[0]
        if ours[-1].id <= posted.id:
            kept = retry_ambiguous(lambda _: self.update(kept, posted.body), self.api.wait)
        self.delete([*(one for one in ours[1:] if one.id != posted.id), posted])
        return _build_part(self.issue, "updated", kept)

    def update(self, ours: Comment, body: str) -> Comment:
        """Replace a comment's text."""
        return self.api.update_comment(self.issue, ours.id, body)

    def delete(self, duplicates: Sequence[Comment]) -> None:
        """Delete comments; failures are logged, and the next run retries them."""
        for one in duplicates:
            try:
                retry_ambiguous(self._delete(one), self.api.wait)
            except PublishError as error:
                self.log("warning", f"#{self.issue} has a second comment of ours. {error}")
            else:
                self.log("notice", f"Deleted comment {one.id} on #{self.issue}: a duplicate.")

    def _delete(self, one: Comment) -> Callable[[int], None]:
        def attempt(_number: int) -> None:
            # Another publisher may have been faster.
            with suppress(NotFoundError):
                self.api.delete_comment(self.issue, one.id)

        return attempt


def _log_strangers(number: int, which: str, issue: int, log: Log) -> None:
    if number > 0:
        log("notice", f"#{issue} has {number} comment{'s' * (number > 1)} {which}.")


def _check_author(posted: Comment, author: str | None, log: Log) -> None:
    """Warn if the next run would not recognize this comment as ours."""
    expected = author or (APP_LOGIN if posted.author.endswith("[bot]") else posted.author)
    if posted.author.casefold() != expected.casefold():
        log(
            "warning",
            f"The comment was posted as {posted.author}, not {expected}, so the next run would not "
            f"find it and post another. Set the comment author to {posted.author}.",
        )


_SENTENCES: dict[Status, str] = {
    "created": "Posted the comment on #{issue}.",
    "updated": "Updated the comment on #{issue}.",
    "unchanged": "The comment on #{issue} already says this; it was not written again.",
}


def _build_withheld_part(issue: int, reason: str, ours: Comment | None) -> PublishedPart:
    left = f"Left the comment on #{issue} as it is" if ours else f"No comment on #{issue}"
    url = ours.url if ours else ""
    return PublishedPart(f"comment on #{issue}", "withheld", f"{left}: {reason}.", url or None)


def _build_part(issue: int, status: Status, comment: Comment) -> PublishedPart:
    sentence = _SENTENCES[status].format(issue=issue)
    return PublishedPart(f"comment on #{issue}", status, sentence, comment.url or None)


def _normalize_text(text: str) -> str:
    """Normalize line endings and trailing spaces, which GitHub may change."""
    return "\n".join(
        _strip_lines(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    ).strip()


def _strip_lines(lines: Iterable[str]) -> Iterable[str]:
    return (line.rstrip() for line in lines)
