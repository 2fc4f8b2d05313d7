"""What publishing needs of GitHub: a few calls and the values they answer."""

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
    """A check run as GitHub has it now."""

    id: int
    name: str
    status: str
    conclusion: str | None
    external_id: str
    annotations_count: int
    url: str = ""
    app_id: int | None = None
    """The app whose token made it; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request that contains a commit."""

    number: int
    is_open: bool
    head_sha: str
    head_repository: str | None = None
    """`owner/name` of the repository its branch is in; None where that is gone."""
    base_branch: str | None = None


class Api(Protocol):
    """GitHub, for one repository. Every method raises PublishError; see `failures` for its kinds.

    Reads retry by themselves. Writes retry only where GitHub certainly did nothing, and raise
    AmbiguousWriteError where it may have: the caller then looks before it writes again.
    """

    def login(self) -> str | None:
        """Return the token's own login; None for an app's token, which may not ask."""

    def comments(self, issue: int) -> Sequence[Comment]:
        """Return every comment of a pull request, oldest first."""

    def pulls_of_commit(self, sha: str) -> Sequence[Pull]:
        """Return the pull requests that contain a commit."""

    def pulls_of_branch(self, owner: str, branch: str) -> Sequence[Pull]:
        """Return the open pull requests from a branch of any repository of `owner`."""

    def pull_head(self, number: int) -> str | None:
        """Return the commit a pull request is at now; None where the token may not ask."""

    def check_runs_of(self, sha: str, name: str) -> Sequence[CheckRun]:
        """Return every check run of that name on a commit."""

    def check_run(self, run_id: int) -> CheckRun:
        """Return a check run as it is now."""

    def send_comment(self, write: Write) -> Comment:
        """Create or change a comment."""

    def delete_comment(self, write: Write) -> None:
        """Delete a comment; NotFoundError where it is gone already."""

    def send_check_run(self, write: Write) -> CheckRun:
        """Create or change a check run."""

    def wait(self, seconds: float, why: str) -> None:
        """Wait before a look at what GitHub did; OutOfPatienceError after too much of it."""
