"""The values of GitHub's API: comments, check runs, pull requests, workflow runs, artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]


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
