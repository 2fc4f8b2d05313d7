"""The calls of GitHub's API, as protocols, and their values: writes, comments, runs, artifacts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from ci_agent_eval.github.api_errors import Purpose

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Write:
    """A write request."""

    method: Literal["POST", "PATCH", "DELETE"]
    path: str
    """Below the repository, such as `/check-runs/7`."""
    body: Json | None
    """None: no body."""
    purpose: Purpose


def create_comment(issue: int, body: str) -> Write:
    """Return the request that posts a comment on a pull request."""
    purpose = Purpose(f"post the comment on #{issue}", "pull-requests")
    return Write("POST", f"/issues/{issue}/comments", {"body": body}, purpose)


def update_comment(issue: int, comment_id: int, body: str) -> Write:
    """Return the request that changes a comment's text."""
    purpose = Purpose(f"update the comment on #{issue}", "pull-requests")
    return Write("PATCH", f"/issues/comments/{comment_id}", {"body": body}, purpose)


def delete_comment(issue: int, comment_id: int) -> Write:
    """Return the request that deletes a comment."""
    purpose = Purpose(f"delete a duplicate of the comment on #{issue}", "pull-requests")
    return Write("DELETE", f"/issues/comments/{comment_id}", None, purpose)


def create_check_run(
    name: str, head_sha: str, external_id: str, output: Json, details_url: str | None
) -> Write:
    """Return the request that opens a check run in progress."""
    body: dict[str, Any] = {
        "name": name,
        "head_sha": head_sha,
        "status": "in_progress",
        "external_id": external_id,
        "output": output,
    }
    if details_url is not None:
        body["details_url"] = details_url
    return Write("POST", "/check-runs", body, Purpose("create the check run", "checks"))


def add_annotations(run_id: int, output: Json, annotations: Sequence[Json]) -> Write:
    """Return the request that appends up to 50 annotations to a check run."""
    body = {"output": {**output, "annotations": list(annotations)}}
    purpose = Purpose("add annotations to the check run", "checks")
    return Write("PATCH", f"/check-runs/{run_id}", body, purpose)


def complete_check_run(
    run_id: int, external_id: str, output: Json, conclusion: Literal["success", "failure"]
) -> Write:
    """Return the request that completes a check run; it is idempotent."""
    body = {
        "status": "completed",
        "conclusion": conclusion,
        "external_id": external_id,
        "output": output,
    }
    purpose = Purpose("complete the check run", "checks")
    return Write("PATCH", f"/check-runs/{run_id}", body, purpose)


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


def list_required_checks(
    branch: Mapping[str, Any], rules: Iterable[Mapping[str, Any]]
) -> tuple[str, ...]:
    """Return the names of the checks that a branch's protection and its rulesets require.

    Raises KeyError, TypeError or AttributeError for answers of another shape.
    """
    protected = branch["protection"].get("required_status_checks") or {}
    return tuple(sorted({*protected.get("contexts", ()), *_list_ruled_checks(rules)}))


def _list_ruled_checks(rules: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for rule in rules:
        if rule["type"] == "required_status_checks":
            for check in rule["parameters"]["required_status_checks"]:
                yield check["context"]


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """The current state of a workflow run."""

    id: int
    workflow_id: int
    event: str
    """Name of the event that started it, such as `push`."""
    conclusion: str | None
    head_sha: str
    head_branch: str
    """Untrusted: a fork may name its branch `main`."""
    head_repository: str | None
    """`owner/name` of the commit's repository; None if that is deleted."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A zip archive of a workflow run. The run is known from GitHub; the content is untrusted."""

    id: int
    name: str
    size_bytes: int
    """Packed."""
    is_expired: bool
    run_id: int | None
    """The run it belongs to; None if GitHub does not report it."""
    head_sha: str | None
    """The run's commit; None if GitHub does not report it."""
    created_at: str = ""
    """In UTC, as ISO 8601; sorts by time."""
    digest: str | None = None
    """The archive's hash, prefixed by `sha256:`; None for older artifacts."""


class RunsApi(Api, Protocol):
    """GitHub's API with workflow runs; they require the permission `actions: read`.

    Methods raise PublishError; see `api_errors` for its kinds. All of them are retried.
    """

    def workflow_run(self, run_id: int) -> WorkflowRun:
        """Return a workflow run."""

    def completed_runs(self, workflow_id: int, branch: str, *, limit: int) -> Sequence[WorkflowRun]:
        """Return the last completed runs of a workflow on a branch name, newest first.

        Includes all conclusions, and runs of forks with a branch of the same name.
        """

    def artifacts_of_run(self, run_id: int, *, limit: int) -> Sequence[Artifact]:
        """Return the artifacts of a run, in GitHub's order."""

    def download_artifact(self, artifact: Artifact, into: Path, *, largest: int) -> None:
        """Write an artifact's archive, of at most `largest` bytes, to a file.

        Raises GoneError if it has expired.
        """
