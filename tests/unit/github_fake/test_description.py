"""Requests and replies off GitHub's description are refused or recorded."""

import pytest

from tests.github_fake import spec
from tests.tables import each_row
from tests.unit.github_fake.rig import COMMENTS, HEAD, REPO, RUNS, annotation, output, raw, run_body


@pytest.mark.parametrize(
    ("method", "path", "body", "named"),
    [
        ("POST", COMMENTS, {"text": "x"}, "'body' is a required property"),
        ("POST", COMMENTS, {"body": 3}, "3 is not of type 'string'"),
        ("POST", COMMENTS, None, "body: None is not of type 'object'"),
        ("POST", COMMENTS, "{", "body: Expecting property name"),
        ("POST", RUNS, run_body(heads="x"), "'heads' was unexpected"),
        ("POST", RUNS, run_body(status="done"), "'done' is not one of"),
        ("POST", RUNS, run_body(started_at="yesterday"), "'yesterday' is not a 'date-time'"),
        ("POST", RUNS, run_body(output={"summary": "s"}), "'title' is a required property"),
        ("POST", RUNS, run_body(output=output(annotation(line=3))), "'line' was unexpected"),
        ("POST", RUNS, run_body(output=output(*[annotation()] * 51)), "is too long"),
        ("POST", RUNS, run_body(output=output(summary="s" * 65_536)), "is too long"),
        ("PATCH", f"{RUNS}/1", {"status": "completed"}, "is not valid under any of"),
        ("GET", f"{COMMENTS}?per_page=many", None, "'many' is not of type 'integer'"),
        ("GET", f"{COMMENTS}?perpage=9", None, "no such parameter"),
        ("GET", f"/repos/{REPO}/commits/{HEAD}/check-runs?filter=new", None, "'new' is not one of"),
        ("GET", f"/repos/{REPO}/pulls/seven", None, "'seven' is not of type 'integer'"),
        ("GET", f"/repos/{REPO}/pulls/7", {"a": 1}, "takes none"),
    ],
)
def test_a_request_off_the_description_is_422_and_recorded(fake, method, path, body, named):
    status, answer, _ = raw(fake, method, path, body)
    assert (status, answer["message"]) == (422, "Invalid request.")
    assert [one for one in fake.violations if named in one]
    assert all(one.startswith(f"{method} {path.partition('?')[0]}: ") for one in fake.violations)
    assert not fake.requests[0].worked


def test_an_unknown_route_is_404_and_recorded(fake):
    assert raw(fake, "DELETE", f"/repos/{REPO}/issues/1")[0] == 404
    assert fake.violations == [f"DELETE /repos/{REPO}/issues/1: not an operation this fake serves"]


@each_row("place", ["status", "uri", "extra"])
def test_replies_are_held_against_status_formats_and_names(place):
    operation, _ = spec.find("GET", f"/repos/{REPO}/issues/comments/1") or pytest.fail("no route")
    body = spec.filled("issue-comment", {"body": "x"})
    assert operation.reply_errors(200, body) == []
    status = 204 if place == "status" else 200
    changed = {"uri": {"html_url": "nowhere"}, "extra": {"bodee": "x"}}.get(place, {})
    assert len(operation.reply_errors(status, body | changed)) == 1
