"""Every decision that depends on the event and the token, as a pure function of plain values."""

from __future__ import annotations

from dataclasses import dataclass

from ci_agent_eval.github.api import Comment
from ci_agent_eval.github.event import DEPENDABOT, Event
from ci_agent_eval.github.publication import CommentMode, Publication
from ci_agent_eval.render.comment_state import parse_state


@dataclass(frozen=True, slots=True)
class Activity:
    """What to do on GitHub for one event."""

    comment_on: tuple[int, ...] = ()
    """Pull requests to comment on."""
    look_up_pulls: bool = False
    """Whether the commit's pull requests are to be found first, and commented on."""
    check_run: bool = False
    """Whether to create a check run on the head commit."""
    notices: tuple[str, ...] = ()
    """What was asked for and will not be done, each with its reason."""

    @property
    def needs_network(self) -> bool:
        """Whether GitHub is to be called at all."""
        return bool(self.comment_on) or self.look_up_pulls or self.check_run


def decide_activity(event: Event, *, comment: bool, check_run: bool, has_token: bool) -> Activity:
    """Decide what to do for an event, given what the user asked for."""
    if not has_token:
        return Activity(notices=_missing_token(asked=comment or check_run))
    if not comment:
        return Activity(check_run=check_run)
    return Activity(
        comment_on=event.pulls or (),
        look_up_pulls=event.pulls is None,
        check_run=check_run,
    )


def find_skip_reason(mode: CommentMode, shown: Publication, ours: Comment | None) -> str | None:
    """Say why a comment is not to be written; None: it is. `ours` is the one that is there.

    A failure that our comment tells is always corrected: nobody is to act on a stale one.
    """
    if mode == "on-failure" and ours is None and shown.conclusion == "success":
        return "the gate passed, and comments are posted only on failure"
    if mode == "on-change":
        if ours is not None and parse_state(ours.body) == shown.comment_state:
            return "what it says has not changed"
        if ours is None and shown.differs is False:
            return "nothing differs from the baseline"
    return None


def _missing_token(*, asked: bool) -> tuple[str, ...]:
    if not asked:
        return ()
    notice = (
        "No comment and no check run: there is no token. Pass one as the input `github-token` "
        "(the default is the job's own), or set GITHUB_TOKEN."
    )
    return (notice,)


def should_emit_commands(*, check_run_published: bool, in_workflow: bool) -> bool:
    """Decide whether annotations go out as workflow commands instead of in a check run."""
    return in_workflow and not check_run_published


def explain_refusal(event: Event, permission: str) -> str:
    """Say why a token may have been refused, and what to do; `permission` is GitHub's name."""
    if event.name == "pull_request" and event.is_fork:
        who = "This pull request comes from a fork"
    elif event.actor == DEPENDABOT:
        who = "Dependabot started this run"
    else:
        return f"Add `permissions: {permission}: write` to the workflow's job."
    return (
        f"{who}, and GitHub gives such a run a read-only token. To publish all the same, "
        "upload the report folder here and publish it from a `workflow_run` job (docs/forks.md)."
    )
