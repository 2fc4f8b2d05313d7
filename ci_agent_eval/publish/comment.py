"""One comment per pull request and suite: found again, changed in place, left alone when equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ci_agent_eval.publish.api import Api, Comment
from ci_agent_eval.publish.plan import Part, Status
from ci_agent_eval.publish.waiting import Log, persist
from ci_agent_eval.publish.writes import create_comment, update_comment

APP_LOGIN = "github-actions[bot]"
"""Login behind a workflow's own token, which may not ask for it."""


WhyNot = Callable[[Comment | None], str | None]
"""Says why nothing is to be written, given our comment; None: it is to be written."""


def upsert_comment(
    api: Api,
    issue: int,
    *,
    body: str,
    marker: str,
    author: str | None,
    log: Log,
    why_not: WhyNot = lambda _: None,
) -> Part:
    """Leave one comment of ours on a pull request, with this text.

    Ours is a comment that starts with the line `marker` and was written by `author`, or by the
    token's own account where that is None. Of several the oldest is kept up to date.
    Raises PublishError.
    """
    done: Status = "unchanged"

    def attempt(_number: int) -> Part:
        nonlocal done
        # Reading all comments first is also the look that a second attempt needs.
        ours = _ours(api, issue, marker, author, log)
        if ours is not None and _normal(ours.body) == _normal(body):
            return _part(issue, done, ours)
        if (reason := why_not(ours)) is not None:
            return _withheld(issue, reason, ours)
        if ours is not None:
            done = "updated"
            return _part(issue, done, api.send_comment(update_comment(issue, ours.id, body)))
        done = "created"
        posted = api.send_comment(create_comment(issue, body))
        _check_author(posted, author, log)
        return _part(issue, done, posted)

    return persist(attempt, api.wait)


def _ours(api: Api, issue: int, marker: str, author: str | None, log: Log) -> Comment | None:
    """Return our oldest comment; whose token this is, is asked only where it matters."""
    marked = [one for one in api.comments(issue) if _normal(one.body).split("\n")[0] == marker]
    if not marked:
        return None
    login = (author or api.login() or APP_LOGIN).casefold()
    ours = [one for one in marked if one.author.casefold() == login]
    _mention(len(marked) - len(ours), "by others that carry our marker: left alone", issue, log)
    _mention(len(ours) - 1, "of ours besides the oldest, which is kept up to date", issue, log)
    return min(ours, key=lambda one: one.id, default=None)


def _mention(number: int, which: str, issue: int, log: Log) -> None:
    if number > 0:
        log("notice", f"#{issue} has {number} comment{'s' * (number > 1)} {which}.")


def _check_author(posted: Comment, author: str | None, log: Log) -> None:
    """Warn when the next run would not recognise this comment and post another."""
    wanted = author or (APP_LOGIN if posted.author.endswith("[bot]") else posted.author)
    if posted.author.casefold() != wanted.casefold():
        log(
            "warning",
            f"The comment was posted as {posted.author}, not {wanted}, so the next run would not "
            f"find it and post another. Set the comment author to {posted.author}.",
        )


_SENTENCES: dict[Status, str] = {
    "created": "Posted the comment on #{issue}.",
    "updated": "Updated the comment on #{issue}.",
    "unchanged": "The comment on #{issue} already says this; it was not written again.",
}


def _withheld(issue: int, reason: str, ours: Comment | None) -> Part:
    left = f"Left the comment on #{issue} as it is" if ours else f"No comment on #{issue}"
    url = ours.url if ours else ""
    return Part(f"comment on #{issue}", "withheld", f"{left}: {reason}.", url or None)


def _part(issue: int, status: Status, comment: Comment) -> Part:
    sentence = _SENTENCES[status].format(issue=issue)
    return Part(f"comment on #{issue}", status, sentence, comment.url or None)


def _normal(text: str) -> str:
    """Take out what GitHub may change in storing a text: line endings and trailing space."""
    return "\n".join(_stripped(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))).strip()


def _stripped(lines: Iterable[str]) -> Iterable[str]:
    return (line.rstrip() for line in lines)
