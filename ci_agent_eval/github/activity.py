"""Decisions that depend on the event and the token, as pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from ci_agent_eval.github.api import Comment
from ci_agent_eval.github.event import DEPENDABOT, Event
from ci_agent_eval.github.publication import CommentMode, Publication
from ci_agent_eval.render.comment_state import parse_state


@dataclass(frozen=True, slots=True)
class Activity:
    """The actions on GitHub for one event."""

    comment_on: tuple[int, ...] = ()
    """Numbers of the pull requests to comment on."""
    look_up_pulls: bool = False
    """Whether to comment on the commit's pull requests, which must be looked up first."""
    check_run: bool = False
    """Whether to create a check run on the head commit."""
    notices: tuple[str, ...] = ()
    """Requested actions that are impossible, each with its reason."""

    @property
    def needs_network(self) -> bool:
        """Whether any action calls GitHub."""
        return bool(self.comment_on) or self.look_up_pulls or self.check_run


def decide_activity(event: Event, *, comment: bool, check_run: bool, has_token: bool) -> Activity:
    """Decide the actions for an event, given the requested ones."""
    if not has_token:
        return Activity(notices=_missing_token(requested=comment or check_run))
    if not comment:
        return Activity(check_run=check_run)
    return Activity(
        comment_on=event.pulls or (),
        look_up_pulls=event.pulls is None,
        check_run=check_run,
    )


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


def _missing_token(*, requested: bool) -> tuple[str, ...]:
    if not requested:
        return ()
    notice = (
        "No comment and no check run: there is no token. Pass one as the input `github-token` "
        "(the default is the job's own), or set GITHUB_TOKEN."
    )
    return (notice,)


def should_emit_commands(*, check_run_published: bool, in_workflow: bool) -> bool:
    """Decide whether annotations are sent as workflow commands instead of in a check run."""
    return in_workflow and not check_run_published


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
