"""Error types of GitHub calls, and GitHub's refusals as sentences. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.contract.wording import one_line
from ci_agent_eval.errors import PublishError

_MAX_MESSAGE = 300
"""Maximum length of a quoted message of GitHub."""


class AmbiguousWriteError(PublishError):
    """A failed write that may have taken effect."""


class NotAllowedError(PublishError):
    """The token lacks a permission; retries are useless."""

    def __init__(self, message: str, permission: str = "") -> None:
        super().__init__(message)
        self.permission = permission
        """GitHub's name of the missing permission, such as `checks`; empty if unknown."""


class CommentsRefusedError(PublishError):
    """The repository has Issues disabled, or the conversation is locked: no comment is possible."""


class NotFoundError(PublishError):
    """GitHub answered 404: it does not exist, or the token may not see it."""


class UnfinishedAnswerError(PublishError):
    """The connection broke during a response; reads can be retried."""


class GoneError(PublishError):
    """The requested object existed but was deleted or has expired."""


class OutOfPatienceError(PublishError):
    """The time limit for waiting is exhausted."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of a request, for error messages."""

    action: str
    """Completes "could not …", such as `post the comment on #7`."""
    permission: str = ""
    """GitHub's name of the required permission, such as `checks`."""


def build_error(purpose: Purpose, status: int, data: object, *, secret: str = "") -> PublishError:
    """Return the error for GitHub's refusal, from its status and JSON body.

    `secret` is removed from GitHub's message.
    """
    message = make_printable_line(_join_messages(data), secret=secret)
    start = f"Could not {purpose.action}: GitHub answered {status}{message and f' ({message})'}."
    if status == 401:
        return PublishError(f"{start} Pass a token that is valid and not expired.")
    if _is_issues_disabled(status, message):
        return CommentsRefusedError(
            f"Could not {purpose.action}: the repository has Issues switched off, and comments on "
            "pull requests with them. Switch Issues on, or switch the comment off."
        )
    if _is_locked(status, message):
        return CommentsRefusedError(
            f"Could not {purpose.action}: the conversation is locked. Unlock it, or switch the "
            "comment off."
        )
    if status == 403:
        return _build_forbidden_error(purpose, start, message)
    if status == 404:
        return NotFoundError(
            f"{start} Check the repository's name, and that the token may see the repository."
        )
    return PublishError(f"{start} {_ADVICE.get(status // 100, '')}".rstrip())


_ADVICE = {
    4: "The request was refused as it stands; if this lasts, please report it as a bug.",
    5: "GitHub has trouble; see its status page and run the job again later.",
}


def _is_issues_disabled(status: int, message: str) -> bool:
    """Recognize both answers for disabled Issues; 410 alone also means a deleted issue."""
    words = message.lower()
    return status in {403, 410} and "issue" in words and "disabled" in words


def _is_locked(status: int, message: str) -> bool:
    """Recognize the answer for a locked issue or pull request."""
    words = message.lower()
    return status in {403, 423} and "locked" in words and ("issue" in words or "pull" in words)


def _build_forbidden_error(purpose: Purpose, start: str, message: str) -> PublishError:
    words = message.lower()
    if "not accessible by" in words:
        return NotAllowedError(start, purpose.permission)
    if "authenticate via a github app" in words:
        return NotAllowedError(
            f"{start} Check runs take the workflow's own GITHUB_TOKEN or an app's token, "
            "never a personal one.",
        )
    return PublishError(f"{start} The token was understood and the request refused.")


def _join_messages(data: object) -> str:
    """Return GitHub's message and its details."""
    if not isinstance(data, Mapping):
        return ""
    parts = [data.get("message"), *(_format_detail(one) for one in _as_list(data.get("errors")))]
    return "; ".join(part for part in parts if isinstance(part, str) and part)


def _as_list(errors: object) -> list[Any]:
    return errors if isinstance(errors, list) else []


def _format_detail(error: object) -> str:
    """Return one item of GitHub's `errors`: a string, or field, code and message."""
    if isinstance(error, Mapping):
        parts = [error.get("field"), error.get("message") or error.get("code")]
        return " ".join(part for part in parts if isinstance(part, str))
    return error if isinstance(error, str) else ""


def make_printable_line(text: str, *, secret: str = "") -> str:
    """Make untrusted text safe to quote: one line, printable, truncated, without the secret."""
    visible = text.replace(secret, "***") if secret else text
    flat = "".join(char if char.isprintable() else " " for char in visible)
    short = one_line(flat)
    return short if len(short) <= _MAX_MESSAGE else f"{short[:_MAX_MESSAGE]}…"


def build_no_answer_error(purpose: Purpose, error: Exception, *, secret: str) -> PublishError:
    """Return the error for a request without a response."""
    return PublishError(
        f"Could not {purpose.action}: no answer from GitHub "
        f"({make_printable_line(str(error), secret=secret)}). "
        "Check the network, and GITHUB_API_URL where GitHub is your own server."
    )


def build_unreadable_error(purpose: Purpose, error: Exception, *, secret: str) -> PublishError:
    """Return the error for a response that is not GitHub's."""
    description = make_printable_line(f"{type(error).__name__}: {error}", secret=secret)
    return PublishError(
        f"Could not {purpose.action}: the answer is not GitHub's ({description}). "
        "Check GITHUB_API_URL and any proxy on the way."
    )
