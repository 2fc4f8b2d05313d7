"""GitHub's API for workflow runs and their artifacts, used for baselines and fork hand-off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ci_agent_eval.github.api import Api


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
