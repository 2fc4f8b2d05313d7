"""What breaks GitHub's description or a documented limit is refused and recorded."""

import http.client
import json
from collections.abc import Iterator

import pytest

from tests.github_fake import FakeGitHub, spec
from tests.tables import each_row

REPO = "octo/shop"
HEAD = "a" * 40
COMMENTS = f"/repos/{REPO}/issues/7/comments"
RUNS = f"/repos/{REPO}/check-runs"


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        server.token("ghs_bot")
        server.token("ghs_reader", can_write=False)
        server.add_repo(REPO)
        server.add_pull(REPO, 7, HEAD)
        yield server


def ask(fake, method, path, body=None, token="ghs_bot"):
    connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=120)
    try:
        headers = {"Authorization": f"Bearer {token}"}
        connection.request(method, path, json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def run_body(*annotations, **output):
    output = {"title": "t", "summary": "s", "annotations": list(annotations), **output}
    return {"name": "agent-eval", "head_sha": HEAD, "status": "in_progress", "output": output}


def annotation(**fields):
    lines = {"start_line": 3, "end_line": 3, "annotation_level": "failure"}
    return {"path": "tests/test_refund.py", "message": "no refund", **lines, **fields}


@each_row(
    ("method", "path", "body", "named"),
    [
        ("POST", COMMENTS, {"text": "x"}, "'body' is a required property"),
        ("POST", RUNS, run_body(annotation(line=3)), "'line' was unexpected"),
        ("POST", RUNS, run_body(*[annotation()] * 51), "is too long"),
        ("PATCH", f"{RUNS}/1", {"status": "completed"}, "is not valid under any of"),
        ("GET", f"{COMMENTS}?perpage=9", None, "no such parameter"),
        ("DELETE", f"/repos/{REPO}/issues/1", None, "not an operation this fake serves"),
        # Limits that the documentation alone states
        ("POST", COMMENTS, {"body": "é" * 65_537}, "maximum is 65536 characters"),
        ("POST", RUNS, run_body(text="é" * 40_000), "bytesize of 65535"),
        ("POST", RUNS, run_body(annotation(message="é" * 32_769)), "maximum is 65536 bytes"),
        ("POST", RUNS, run_body(annotation(title="x" * 256)), "maximum is 255 characters"),
        ("POST", RUNS, run_body(annotation(start_line=0, end_line=0)), "start at 1"),
    ],
)
def test_a_request_that_is_not_allowed_changes_nothing_and_is_recorded(
    fake, method, path, body, named
):
    fake.violations.clear()
    status, _ = ask(fake, method, path, body)
    assert status in {404, 422}
    assert [one for one in fake.violations if named in one]
    assert fake.comments(REPO, 7) == fake.check_runs(REPO) == []


@each_row("place", ["status", "uri", "extra"])
def test_replies_are_held_against_status_formats_and_names(place):
    operation, _ = spec.find("PATCH", f"/repos/{REPO}/issues/comments/1") or pytest.fail("no route")
    body = spec.filled("issue-comment", {"body": "x"})
    assert operation.reply_errors(200, body) == []
    status = 204 if place == "status" else 200
    changed = {"uri": {"html_url": "nowhere"}, "extra": {"bodee": "x"}}.get(place, {})
    assert len(operation.reply_errors(status, body | changed)) == 1
