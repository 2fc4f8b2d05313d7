"""How a call to GitHub can fail, and GitHub's refusals as sentences. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.contract.wording import one_line
from ci_agent_eval.errors import PublishError

_MAX_MESSAGE = 300
"""Most characters of a message of GitHub's that are repeated."""


class AmbiguousWriteError(PublishError):
    """A write went wrong in a way that does not tell whether it took effect."""


class NotAllowedError(PublishError):
    """The token may not do this, and no retry will change that."""

    def __init__(self, message: str, permission: str = "") -> None:
        super().__init__(message)
        self.permission = permission
        """GitHub's name of the missing permission, such as `checks`; empty if unknown."""


class IssuesDisabledError(PublishError):
    """The repository has Issues switched off, and with them comments."""


class NotFoundError(PublishError):
    """GitHub answered 404: it is not there, or the token may not see it."""


class UnfinishedAnswerError(PublishError):
    """The connection broke in the middle of an answer; a read can be repeated."""


class GoneError(PublishError):
    """What was asked for was there once, and is not any more."""


class OutOfPatienceError(PublishError):
    """GitHub asked for more waiting than a run may spend."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a request is for, as errors say it."""

    what: str
    """Reads after "could not", such as `post the comment on #7`."""
    permission: str = ""
    """GitHub's name of the permission it takes, such as `checks`."""


def build_error(purpose: Purpose, status: int, data: object, *, secret: str = "") -> PublishError:
    """Turn GitHub's refusal, its status and JSON body, into an error with a sentence.

    `secret` is struck out of whatever GitHub says.
    """
    said = make_printable_line(_join_messages(data), secret=secret)
    start = f"Could not {purpose.what}: GitHub answered {status}{said and f' ({said})'}."
    if status == 401:
        return PublishError(f"{start} Pass a token that is valid and not expired.")
    if _is_issues_disabled(status, said):
        return IssuesDisabledError(
            f"Could not {purpose.what}: the repository has Issues switched off, and comments on "
            "pull requests with them. Switch Issues on, or switch the comment off."
        )
    if status == 403:
        return _build_forbidden_error(purpose, start, said)
    if status == 404:
        return NotFoundError(
            f"{start} Check the repository's name, and that the token may see the repository."
        )
    return PublishError(f"{start} {_ADVICE.get(status // 100, '')}".rstrip())


_ADVICE = {
    4: "The request was refused as it stands; if this lasts, please report it as a bug.",
    5: "GitHub has trouble; see its status page and run the job again later.",
}


def _is_issues_disabled(status: int, said: str) -> bool:
    """Recognise both answers GitHub gives for it; 410 alone also means a deleted issue."""
    words = said.lower()
    return status in {403, 410} and "issue" in words and "disabled" in words


def _build_forbidden_error(purpose: Purpose, start: str, said: str) -> PublishError:
    words = said.lower()
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
        shown = [error.get("field"), error.get("message") or error.get("code")]
        return " ".join(part for part in shown if isinstance(part, str))
    return error if isinstance(error, str) else ""


def make_printable_line(text: str, *, secret: str = "") -> str:
    """Make foreign text safe to repeat in a sentence: one line, printable, bounded, no secret."""
    shown = text.replace(secret, "***") if secret else text
    flat = "".join(char if char.isprintable() else " " for char in shown)
    short = one_line(flat)
    return short if len(short) <= _MAX_MESSAGE else f"{short[:_MAX_MESSAGE]}…"


def build_no_answer_error(purpose: Purpose, error: Exception, *, secret: str) -> PublishError:
    """Say that no answer came."""
    return PublishError(
        f"Could not {purpose.what}: no answer from GitHub "
        f"({make_printable_line(str(error), secret=secret)}). "
        "Check the network, and GITHUB_API_URL where GitHub is your own server."
    )


def build_unreadable_error(purpose: Purpose, error: Exception, *, secret: str) -> PublishError:
    """Say that an answer came that is not GitHub's."""
    shown = make_printable_line(f"{type(error).__name__}: {error}", secret=secret)
    return PublishError(
        f"Could not {purpose.what}: the answer is not GitHub's ({shown}). "
        "Check GITHUB_API_URL and any proxy on the way."
    )
