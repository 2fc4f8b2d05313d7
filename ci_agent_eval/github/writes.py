"""GitHub's write requests as values: sent by the client, printed by a dry run.

Paths and bodies follow GitHub's REST description, API version 2022-11-28.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
