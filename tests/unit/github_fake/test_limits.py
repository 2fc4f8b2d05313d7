"""Limits that GitHub documents."""

import pytest

from tests.unit.github_fake.rig import COMMENTS, HEAD, REPO, RUNS, annotation, output, raw, run_body


@pytest.mark.parametrize(
    ("path", "body", "field", "message"),
    [
        (COMMENTS, {"body": "é" * 65_537}, "body", "maximum is 65536 characters"),
        (COMMENTS, {"body": " \n"}, "body", "blank"),
        (RUNS, run_body(output=output(summary="é" * 40_000)), "summary", "bytesize of 65535"),
        (RUNS, run_body(output=output(text="é" * 40_000)), "text", "bytesize of 65535"),
        (RUNS, run_body(status="completed"), "conclusion", "required"),
        (RUNS, run_body(head_sha="main"), "head_sha", "No commit found for SHA: main"),
        (
            RUNS,
            run_body(output=output(annotation(), annotation(message="é" * 32_769))),
            "annotations[1].message",
            "maximum is 65536 bytes",
        ),
        (
            RUNS,
            run_body(output=output(annotation(raw_details="x" * 65_537))),
            "annotations[0].raw_details",
            "maximum is 65536 bytes",
        ),
        (
            RUNS,
            run_body(output=output(annotation(title="x" * 256))),
            "annotations[0].title",
            "maximum is 255 characters",
        ),
        (
            RUNS,
            run_body(output=output(annotation(start_line=0, end_line=0))),
            "annotations[0].start_line",
            "start at 1",
        ),
        (
            RUNS,
            run_body(output=output(annotation(end_line=2))),
            "annotations[0].end_line",
            "before start_line",
        ),
        (
            RUNS,
            run_body(output=output(annotation(end_line=4, end_column=1))),
            "annotations[0].start_column",
            "one line",
        ),
        (
            RUNS,
            run_body(output=output(annotation(path="/etc/passwd"))),
            "annotations[0].path",
            "relative",
        ),
    ],
)
def test_a_broken_limit_refuses_the_whole_request_and_is_recorded(fake, path, body, field, message):
    status, answer, _ = raw(fake, "POST", path, body)
    assert (status, answer["message"]) == (422, "Validation Failed")
    assert [(error["field"], error["code"]) for error in answer["errors"]] == [(field, "custom")]
    assert message in answer["errors"][0]["message"]
    assert len(fake.violations) == 1
    assert fake.comments(REPO, 7) == []
    assert fake.check_runs(REPO) == []


def test_what_just_fits_is_taken(fake):
    full = annotation(message="x" * 65_536, title="é" * 255, raw_details="é" * 32_768)
    body = run_body(output=output(*[full] * 50, summary="s" * 65_535, text="t" * 65_535))
    assert raw(fake, "POST", RUNS, body)[0] == 201
    assert raw(fake, "POST", COMMENTS, {"body": "é" * 65_536})[0] == 201
    assert len(fake.check_runs(REPO)[0].annotations) == 50
    assert fake.violations == []


def test_a_completed_check_run_stays_completed_but_takes_annotations(fake):
    run = raw(fake, "POST", RUNS, {"name": "a", "head_sha": HEAD, "conclusion": "failure"})[1]
    assert (run["status"], run["conclusion"]) == ("completed", "failure")
    assert raw(fake, "PATCH", f"{RUNS}/{run['id']}", {"output": output(annotation())})[0] == 200
    assert fake.violations == []
    status, answer, _ = raw(fake, "PATCH", f"{RUNS}/{run['id']}", {"status": "in_progress"})
    assert (status, answer["errors"][0]["field"]) == (422, "status")
    assert fake.check_runs(REPO)[0].status == "completed"
    assert len(fake.violations) == 1


def test_a_check_run_belongs_to_its_app(fake):
    run = raw(fake, "POST", RUNS, run_body())[1]
    fake.token("ghs_other", "other-app[bot]")
    status, _, _ = raw(fake, "PATCH", f"{RUNS}/{run['id']}", {"name": "b"}, token="ghs_other")
    assert (status, fake.check_runs(REPO)[0].name) == (403, "agent-eval")
