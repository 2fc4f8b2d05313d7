"""Limits GitHub documents or enforces beyond its API description, as pure checks.

Each check yields GitHub's error items (``resource``, ``field``, ``code``, ``message``); none
means the request stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

COMMENT_CHARACTERS = 65_536
"""Longest comment body, in characters, as GitHub's own refusal words it."""

OUTPUT_BYTES = 65_535
"""Longest ``summary`` and ``text`` of a check run: characters by the docs, bytes in practice."""

ANNOTATIONS = 50
"""Most annotations in one request."""

ANNOTATION_BYTES = 64 * 1024
"""Longest ``message`` and ``raw_details`` of an annotation."""

TITLE_CHARACTERS = 255
"""Longest ``title`` of an annotation."""

Item = dict[str, str]
_SHA = re.compile(r"[0-9a-f]{40}", re.ASCII)


def _item(resource: str, field: str, message: str) -> Item:
    return {"resource": resource, "field": field, "code": "custom", "message": message}


def comment_errors(body: str) -> Iterator[Item]:
    """Yield what GitHub refuses in the text of a comment."""
    if not body.strip():
        yield _item("IssueComment", "body", "body cannot be blank")
    if len(body) > COMMENT_CHARACTERS:
        message = f"body is too long (maximum is {COMMENT_CHARACTERS} characters)"
        yield _item("IssueComment", "body", message)


def check_run_errors(sent: Mapping[str, Any], status: str | None) -> Iterator[Item]:
    """Yield what GitHub refuses in a new (``status`` None) or existing check run's fields."""
    sha = sent.get("head_sha")
    if sha is not None and not _SHA.fullmatch(sha):
        yield _item("CheckRun", "head_sha", f"No commit found for SHA: {sha}")
    if sent.get("status") == "completed" and "conclusion" not in sent:
        yield _item("CheckRun", "conclusion", "is required with the status completed")
    if "completed_at" in sent and "conclusion" not in sent:
        yield _item("CheckRun", "conclusion", "is required with completed_at")
    if sent.get("conclusion") == "stale":
        yield _item("CheckRun", "conclusion", "only GitHub can set stale")
    if status == "completed" and sent.get("status", "completed") != "completed":
        yield _item("CheckRun", "status", "a completed check run cannot be opened again")
    yield from _output_errors(sent.get("output") or {})


def _output_errors(output: Mapping[str, Any]) -> Iterator[Item]:
    for name in ("summary", "text"):
        if _bytes(output.get(name)) > OUTPUT_BYTES:
            message = f"{name} exceeds a maximum bytesize of {OUTPUT_BYTES}"
            yield _item("CheckRun", name, message)
    annotations = output.get("annotations", ())
    if len(annotations) > ANNOTATIONS:
        message = f"No more than {ANNOTATIONS} items are allowed; {len(annotations)} were supplied."
        yield _item("CheckRun", "annotations", message)
    for index, annotation in enumerate(annotations):
        for name, message in _annotation_errors(annotation):
            yield _item("CheckAnnotation", f"annotations[{index}].{name}", message)


def _annotation_errors(sent: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("message", "raw_details"):
        if _bytes(sent.get(name)) > ANNOTATION_BYTES:
            yield name, f"is too long (maximum is {ANNOTATION_BYTES} bytes)"
    if len(sent.get("title", "")) > TITLE_CHARACTERS:
        yield "title", f"is too long (maximum is {TITLE_CHARACTERS} characters)"
    for name in ("message", "path"):
        if not sent[name].strip():
            yield name, "cannot be blank"
    if sent["path"].startswith("/"):
        yield "path", "must be relative to the repository"
    if sent["start_line"] < 1:
        yield "start_line", "line numbers start at 1"
    if sent["end_line"] < sent["start_line"]:
        yield "end_line", "cannot stand before start_line"
    columns = sent.keys() & {"start_column", "end_column"}
    if columns and sent["start_line"] != sent["end_line"]:
        yield "start_column", "columns are only for annotations of one line"


def _bytes(text: str | None) -> int:
    return len((text or "").encode("utf-8", "surrogatepass"))
