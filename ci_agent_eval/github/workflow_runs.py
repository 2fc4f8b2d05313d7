"""What a baseline and a hand-off need of GitHub: workflow runs, their artifacts, their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ci_agent_eval.github.api import Api


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """A workflow run as GitHub has it now."""

    id: int
    workflow_id: int
    event: str
    """What started it, such as `push`."""
    conclusion: str | None
    head_sha: str
    head_branch: str
    """Chosen by whoever made it: a fork may call its branch `main`."""
    head_repository: str | None
    """`owner/name` of where its commit comes from; None where that is gone."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A zip archive that a workflow run left; GitHub says whose, the run's jobs say what."""

    id: int
    name: str
    size_bytes: int
    """Packed."""
    is_expired: bool
    run_id: int | None
    """The run it belongs to; None where GitHub does not say."""
    head_sha: str | None
    """That run's commit; None where GitHub does not say."""
    digest: str | None = None
    """`sha256:` and the archive's hash; None for older artifacts."""


class RunsApi(Api, Protocol):
    """GitHub with what only workflow runs know; all of it takes `actions: read`.

    Every method raises PublishError; see `failures` for its kinds. All of them retry.
    """

    def workflow_run(self, run_id: int) -> WorkflowRun:
        """Return a workflow run."""

    def completed_runs(self, workflow_id: int, branch: str, *, limit: int) -> Sequence[WorkflowRun]:
        """Return the last runs of a workflow on a branch of that name that ended, newest first.

        However they ended. Those of a fork's branch of the same name are among them.
        """

    def artifacts_of_run(self, run_id: int, *, limit: int) -> Sequence[Artifact]:
        """Return the artifacts of a run, in GitHub's order."""

    def download_artifact(self, artifact: Artifact, into: Path, *, largest: int) -> None:
        """Write an artifact's archive to a file, of `largest` bytes at most.

        Raises GoneError for one that has expired.
        """
