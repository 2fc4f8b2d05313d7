"""The calls of GitHub's API for publishing, as a protocol, and their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ci_agent_eval.github.writes import Write


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a pull request."""

    id: int
    author: str
    """Login of its author; empty for a deleted account."""
    body: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The current state of a check run."""

    id: int
    name: str
    status: str
    conclusion: str | None
    external_id: str
    annotations_count: int
    url: str = ""
    app_id: int | None = None
    """The app whose token created it; None if unknown."""


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request that contains a commit."""

    number: int
    is_open: bool
    head_sha: str
    head_repository: str | None = None
    """`owner/name` of its branch's repository; None if that is deleted."""
    base_branch: str | None = None


class Api(Protocol):
    """GitHub's API for one repository. Methods raise PublishError; see `api_errors` for its kinds.

    Reads are retried automatically. Writes are retried only if GitHub certainly did nothing;
    otherwise they raise AmbiguousWriteError, and the caller must read before it writes again.
    """

    def login(self) -> str | None:
        """Return the token's login; None for an app's token, which may not read it."""

    def comments(self, issue: int) -> Sequence[Comment]:
        """Return every comment of a pull request, oldest first."""

    def pulls_of_commit(self, sha: str) -> Sequence[Pull]:
        """Return the pull requests that contain a commit."""

    def pulls_of_branch(self, owner: str, branch: str) -> Sequence[Pull]:
        """Return the open pull requests from a branch of any repository of `owner`."""

    def pull_head(self, number: int) -> str | None:
        """Return the current head commit of a pull request; None if the token may not read it."""

    def check_runs_of(self, sha: str, name: str) -> Sequence[CheckRun]:
        """Return every check run of this name on a commit."""

    def check_run(self, run_id: int) -> CheckRun:
        """Return the current state of a check run."""

    def send_comment(self, write: Write) -> Comment:
        """Create or update a comment."""

    def delete_comment(self, write: Write) -> None:
        """Delete a comment; raises NotFoundError if it is already deleted."""

    def send_check_run(self, write: Write) -> CheckRun:
        """Create or update a check run."""

    def wait(self, seconds: float, why: str) -> None:
        """Wait before reading the result of a write; raises OutOfPatienceError at the limit."""
