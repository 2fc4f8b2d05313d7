import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from github import Auth, BadCredentialsException, Github, GithubException, UnknownObjectException

from scripts.renew_github_openapi import OPERATIONS, cut
from tests.github_fake import FakeGitHub, spec
from tests.github_fake.routes import HANDLERS

REPO = "octo/shop"
HEAD = "a" * 40
COMMENTS = f"/repos/{REPO}/issues/7/comments"
RUNS = f"/repos/{REPO}/check-runs"


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with FakeGitHub() as server:
        server.token("ghs_bot")
        server.token("ghp_mona", "mona")
        server.token("ghs_reader", can_write=False)
        server.add_repo(REPO)
        server.add_pull(REPO, 7, HEAD, head_ref="fix", merge_commit_sha="d" * 40)
        yield server


def client(fake, token="ghs_bot", base=None):
    return Github(
        base_url=base or fake.url,
        auth=Auth.Token(token),
        retry=None,
        per_page=100,
        seconds_between_requests=0,
        seconds_between_writes=0,
    )


def raw(fake, method, path, body=None, token="ghs_bot"):
    connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=10)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    payload = body if body is None or isinstance(body, str) else json.dumps(body)
    try:
        connection.request(method, path, payload, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read()), response.headers
    finally:
        connection.close()


def annotation(**fields):
    return {
        "path": "tests/test_refund.py",
        "start_line": 3,
        "end_line": 3,
        "annotation_level": "failure",
        "message": "refund was not issued",
        **fields,
    }


def output(*annotations, **fields):
    return {"title": "t", "summary": "s", "annotations": list(annotations), **fields}


def run_body(**fields):
    return {"name": "agent-eval", "head_sha": HEAD, "status": "in_progress", **fields}


# PyGithub's whole path


def test_every_operation_of_the_cut_has_a_handler_and_the_other_way_round():
    assert sorted(HANDLERS) == sorted(operation.key for operation in spec.operations())


def test_the_cut_is_what_its_script_makes_of_it():
    document = json.loads(Path(spec.__file__).with_name("openapi.json").read_text("utf-8"))
    assert cut(document, OPERATIONS) == document
    assert document["x-source"]["license"] == "MIT"


def test_the_cut_keeps_what_is_named_like_prose_and_every_reference():
    document = {
        "openapi": "3.0.3",
        "info": {"title": "t", "version": "1", "license": {"name": "MIT"}, "description": "d"},
        "paths": {
            "/a": {
                "get": {"summary": "s", "responses": {"200": {"$ref": "#/components/responses/r"}}}
            },
            "/b": {"get": {}},
        },
        "components": {
            "responses": {"r": {"schema": {"$ref": "#/components/schemas/title"}, "x-note": "n"}},
            "schemas": {
                "title": {
                    "title": "prose",
                    "properties": {"title": {"$ref": "#/components/schemas/title", "example": 1}},
                    "required": ["title"],
                    "maxProperties": 3,
                },
                "unused": {},
            },
        },
    }
    made = cut(document, [("get", "/a")])
    assert made["paths"] == {
        "/a": {"get": {"responses": {"200": {"$ref": "#/components/responses/r"}}}}
    }
    assert made["components"] == {
        "responses": {"r": {"schema": {"$ref": "#/components/schemas/title"}}},
        "schemas": {
            "title": {
                "properties": {"title": {"$ref": "#/components/schemas/title"}},
                "required": ["title"],
                "maxProperties": 3,
            }
        },
    }
    with pytest.raises(KeyError):
        cut(document, [("post", "/a")])


@pytest.mark.parametrize("prefix", ["", "/api/v3"])
def test_pygithub_reads_and_writes_everything_without_a_violation(fake, prefix):
    fake.add_artifact(REPO, 42, "agent-eval-report", size_in_bytes=10)
    hub = client(fake, base=fake.url + prefix)
    repo = hub.get_repo(REPO)
    pull = repo.get_pull(7)
    made = pull.create_issue_comment("first")
    made.edit("second")
    run = repo.create_check_run(**run_body(external_id="run-1"))
    run.edit(output=output(*[annotation() for _ in range(50)]))
    run.edit(output=output(annotation(title="last")))
    run.edit(status="completed", conclusion="failure", output=output())

    assert repo.full_name == REPO
    assert (pull.head.sha, pull.head.ref, pull.base.ref) == (HEAD, "fix", "main")
    assert [(c.body, c.user.login) for c in pull.get_issue_comments()] == [
        ("second", "github-actions[bot]")
    ]
    assert pull.get_issue_comment(made.id).updated_at > made.created_at
    again = repo.get_check_run(run.id)
    assert (again.status, again.conclusion, again.external_id) == ("completed", "failure", "run-1")
    assert again.output.annotations_count == 51
    assert [a.title for a in again.get_annotations()][-1] == "last"
    assert made.url.startswith(f"{fake.url}{prefix}/repos/")
    assert hub.get_rate_limit().rate.limit == 5000
    assert raw(fake, "GET", f"{prefix}/repos/{REPO}/commits/{HEAD}/pulls")[1][0]["number"] == 7
    assert raw(fake, "GET", f"{prefix}/repos/{REPO}/commits/fix/check-runs")[1]["total_count"] == 1
    found = raw(fake, "GET", f"{prefix}/repos/{REPO}/actions/runs/42/artifacts")[1]
    assert [one["name"] for one in found["artifacts"]] == ["agent-eval-report"]
    assert fake.violations == []


def test_tokens_have_identities(fake):
    assert client(fake, "ghp_mona").get_user().login == "mona"
    status, body, _ = raw(fake, "GET", "/user")
    assert (status, body["message"]) == (403, "Resource not accessible by integration")
    assert raw(fake, "GET", "/user", token="")[0] == 401
    with pytest.raises(BadCredentialsException):
        client(fake, "ghp_stolen").get_repo(REPO)
    status, body, _ = raw(fake, "POST", RUNS, run_body(), token="ghp_mona")
    assert (status, body["message"]) == (403, "You must authenticate via a GitHub App.")
    assert fake.violations == []


def test_a_read_only_token_reads_and_is_refused_every_write(fake):
    assert raw(fake, "GET", COMMENTS, token="ghs_reader")[0] == 200
    for method, path, body in [
        ("POST", COMMENTS, {"body": "x"}),
        ("POST", RUNS, run_body()),
        ("PATCH", f"{RUNS}/1", {"output": output()}),
        ("PATCH", f"/repos/{REPO}/issues/comments/1", {"body": "x"}),
    ]:
        status, answer, _ = raw(fake, method, path, body, token="ghs_reader")
        assert (status, answer["message"]) == (403, "Resource not accessible by integration")
        assert raw(fake, method, path, body, token="")[0] == 401
    assert fake.comments(REPO, 7) == []
    assert fake.check_runs(REPO) == []
    assert [r.worked for r in fake.writes] == [False] * 8
    assert fake.violations == []


def test_what_does_not_exist_is_404_and_issues_off_is_410(fake):
    with pytest.raises(UnknownObjectException):
        client(fake).get_repo("octo/nothing")
    for path in ("pulls/8", "issues/8/comments", "issues/comments/1", "check-runs/1"):
        assert raw(fake, "GET", f"/repos/{REPO}/{path}")[0] == 404
    fake.add_repo("octo/quiet", has_issues=False)
    fake.add_pull("octo/quiet", 1, HEAD)
    with pytest.raises(GithubException) as refused:
        client(fake).get_repo("octo/quiet").get_pull(1).create_issue_comment("x")
    assert refused.value.status == 410
    assert fake.violations == []


def test_the_fork_of_a_pull_request_is_another_repository(fake):
    fake.add_pull(REPO, 9, "e" * 40, head_repo="mona/shop")
    pull = client(fake).get_repo(REPO).get_pull(9)
    assert (pull.head.repo.full_name, pull.base.repo.full_name) == ("mona/shop", REPO)
    assert fake.violations == []


# Pages


def test_comments_come_in_pages_with_links(fake):
    for number in range(230):
        fake.add_comment(REPO, 7, "mona", f"comment {number}")
    status, first, headers = raw(fake, "GET", COMMENTS)
    assert (status, len(first)) == (200, 30)
    assert headers["Link"] == (
        f'<{fake.url}{COMMENTS}?page=2>; rel="next", <{fake.url}{COMMENTS}?page=8>; rel="last"'
    )
    _, last, headers = raw(fake, "GET", f"{COMMENTS}?per_page=1000&page=3")
    assert (len(last), last[-1]["body"]) == (30, "comment 229")
    assert 'rel="prev"' in headers["Link"]
    assert 'rel="next"' not in headers["Link"]
    pull = client(fake, base=fake.ghes_url).get_repo(REPO).get_pull(7)
    assert [c.body for c in pull.get_issue_comments()] == [f"comment {n}" for n in range(230)]
    assert [r.query for r in fake.requests[-3:]] == [
        {"per_page": "100"},
        {"per_page": "100", "page": "2"},
        {"per_page": "100", "page": "3"},
    ]
    assert fake.violations == []


def test_comments_are_listed_by_issue_and_by_when_they_changed(fake):
    fake.add_pull(REPO, 8, "c" * 40)
    fake.add_comment(REPO, 8, "mona", "elsewhere")
    fake.add_comment(REPO, 7, "mona", "early")
    late = fake.add_comment(REPO, 7, "mona", "late")
    assert [one["body"] for one in raw(fake, "GET", COMMENTS)[1]] == ["early", "late"]
    since = raw(fake, "GET", f"{COMMENTS}?since={late.updated_at}")[1]
    assert [one["body"] for one in since] == ["late"]
    assert fake.violations == []


def test_the_newest_check_run_of_a_name_is_the_latest(fake):
    old, new = (raw(fake, "POST", RUNS, run_body())[1]["id"] for _ in range(2))
    other = raw(fake, "POST", RUNS, run_body(name="lint"))[1]["id"]

    def ids(query):
        _, body, _ = raw(fake, "GET", f"/repos/{REPO}/commits/{HEAD}/check-runs?{query}")
        assert body["total_count"] == len(body["check_runs"])
        return [run["id"] for run in body["check_runs"]]

    assert ids("") == [other, new]
    assert ids("filter=all&check_name=agent-eval") == [new, old]
    assert ids("status=completed") == []
    assert ids("app_id=15368&check_name=lint") == [other]
    assert ids("app_id=1") == []
    assert fake.violations == []


# Checks against the description


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
    assert raw(fake, "DELETE", f"/repos/{REPO}/issues/comments/1")[0] == 404
    assert fake.violations == [
        f"DELETE /repos/{REPO}/issues/comments/1: not an operation this fake serves"
    ]


def test_a_reply_of_ours_off_the_description_is_recorded(fake):
    fake.add_comment(REPO, 7, "mona", "x").created_at = "yesterday"
    raw(fake, "GET", COMMENTS)
    assert len(fake.violations) == 1
    assert "reply 200[0]['created_at']: 'yesterday' is not a 'date-time'" in fake.violations[0]


def test_a_crash_of_the_fake_itself_is_recorded(fake):
    fake.world.repositories[REPO].comments = None
    with pytest.raises(http.client.RemoteDisconnected):
        raw(fake, "GET", COMMENTS)
    assert len(fake.violations) == 1
    assert fake.violations[0].startswith("the fake itself failed: AttributeError(")


@pytest.mark.parametrize("place", ["status", "uri", "extra"])
def test_replies_are_held_against_status_formats_and_names(place):
    operation, _ = spec.find("GET", f"/repos/{REPO}/issues/comments/1") or pytest.fail("no route")
    body = spec.filled("issue-comment", {"body": "x"})
    assert operation.reply_errors(200, body) == []
    status = 204 if place == "status" else 200
    changed = {"uri": {"html_url": "nowhere"}, "extra": {"bodee": "x"}}.get(place, {})
    assert len(operation.reply_errors(status, body | changed)) == 1


def test_without_validation_the_description_is_left_out_but_limits_stay():
    with FakeGitHub(validate=False) as fake:
        fake.token("ghs_bot")
        fake.add_repo(REPO)
        fake.add_pull(REPO, 7, HEAD)
        assert raw(fake, "POST", COMMENTS, {"body": "x", "unknown": 1})[0] == 201
        assert fake.violations == []
        assert raw(fake, "POST", COMMENTS, {"body": "x" * 65_537})[0] == 422


# Documented limits


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


# Faults


@pytest.mark.parametrize(
    ("kind", "status", "header", "done"),
    [
        ("forbidden_retry_after", 403, ("Retry-After", "5"), 0),
        ("too_many_no_retry_after", 429, ("Retry-After", None), 0),
        ("rate_limited_reset", 403, ("x-ratelimit-remaining", "0"), 0),
        ("rate_limited_reset", 403, ("x-ratelimit-reset", "99"), 0),
        ("server_error", 500, ("x-ratelimit-remaining", "4999"), 0),
        ("bad_gateway_after_work", 502, ("x-ratelimit-remaining", "4999"), 1),
        ("read_only", 403, ("Retry-After", None), 0),
        ("unprocessable", 422, ("Retry-After", None), 0),
    ],
)
def test_a_fault_answers_once_and_then_the_request_is_served(fake, kind, status, header, done):
    fake.faults.add(kind, on="POST */comments", retry_after=5, reset_at=99)
    assert raw(fake, "GET", COMMENTS)[0] == 200
    got, _, headers = raw(fake, "POST", COMMENTS, {"body": "x"})
    assert (got, headers[header[0]]) == (status, header[1])
    assert len(fake.comments(REPO, 7)) == done
    assert raw(fake, "POST", COMMENTS, {"body": "x"})[0] == 201
    assert [(r.status, r.fault, r.worked) for r in fake.writes] == [
        (status, kind, bool(done)),
        (201, None, True),
    ]
    assert fake.violations == []


@pytest.mark.parametrize(("kind", "done"), [("cut_before", 0), ("cut_after", 1)])
def test_a_cut_connection_says_nothing(fake, kind, done):
    fake.faults.add(kind)
    with pytest.raises(http.client.RemoteDisconnected):
        raw(fake, "POST", COMMENTS, {"body": "x"})
    assert len(fake.comments(REPO, 7)) == done
    assert [(r.method, r.status, r.fault, r.worked) for r in fake.requests] == [
        ("POST", None, kind, bool(done))
    ]
    assert fake.requests[0].body == {"body": "x"}


def test_a_fault_strikes_the_nth_match_as_often_as_it_says(fake):
    fault = fake.faults.add("server_error", on="GET *", nth=2, times=2)
    forever = fake.faults.add("read_only", on="POST *", times=None)
    reads = [raw(fake, "GET", COMMENTS)[0] for _ in range(4)]
    writes = [raw(fake, "POST", COMMENTS, {"body": "x"})[0] for _ in range(3)]
    assert (reads, writes) == ([200, 500, 500, 200], [403, 403, 403])
    assert (fault.seen, forever.seen) == (4, 3)
    fake.faults.clear()
    assert raw(fake, "POST", COMMENTS, {"body": "x"})[0] == 201
    with pytest.raises(ValueError, match="unknown fault 'flood'"):
        fake.faults.add("flood")


def test_a_request_off_the_description_is_recorded_even_when_a_fault_strikes(fake):
    fake.faults.add("server_error")
    assert raw(fake, "POST", COMMENTS, {"body": 3})[0] == 500
    assert len(fake.violations) == 1


def test_the_fault_an_enterprise_address_meets_is_the_same(fake):
    fake.faults.add("server_error", on=f"GET {COMMENTS}")
    assert raw(fake, "GET", f"/api/v3{COMMENTS}")[0] == 500


# Determinism and threads


def test_two_fakes_answer_the_same_bytes():
    def story():
        with FakeGitHub() as fake:
            fake.token("t")
            fake.add_repo(REPO)
            fake.add_pull(REPO, 7, HEAD)
            raw(fake, "POST", COMMENTS, {"body": "x"}, token="t")
            raw(fake, "POST", RUNS, run_body(), token="t")
            return json.dumps(fake.state())

    assert story() == story()


def test_concurrent_writers_get_ids_of_their_own(fake):
    def write(number):
        raw(fake, "POST", COMMENTS, {"body": f"{number}"})

    threads = [threading.Thread(target=write, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    comments = fake.comments(REPO, 7)
    assert sorted(int(c.body) for c in comments) == list(range(20))
    assert len({c.id for c in comments}) == 20


def test_closing_leaves_no_thread_and_no_open_socket():
    before = threading.active_count()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with FakeGitHub() as fake:
            fake.token("t")
            fake.add_repo(REPO)
            idle = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=10)
            idle.request("GET", "/rate_limit")
            idle.getresponse().read()
        idle.close()
    assert threading.active_count() == before


# As a process


def test_the_process_serves_its_configuration_and_dumps_its_state(tmp_path):
    config = {
        "tokens": [{"token": "t", "login": "mona"}],
        "repos": [
            {
                "full_name": "octo/shop",
                "issues": [3],
                "pulls": [{"number": 7, "head_sha": HEAD}],
                "comments": [{"issue": 7, "author": "octocat", "body": "hello"}],
                "artifacts": [{"run_id": 1, "name": "report"}],
            }
        ],
        "faults": [{"kind": "server_error", "on": "POST *"}],
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    port_file, state_file = tmp_path / "port", tmp_path / "state.json"
    root = Path(__file__).parents[2]
    arguments = ["--port-file", port_file, "--state-file", state_file]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.github_fake",
            *arguments,
            "--config",
            tmp_path / "config.json",
        ],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        assert int(port_file.read_text()) == port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {"Authorization": "token t"}
        for expected in (500, 201):
            connection.request("POST", COMMENTS, '{"body": "hi"}', headers)
            response = connection.getresponse()
            response.read()
            assert response.status == expected
        connection.request("GET", "/_fake/state")
        state = json.loads(connection.getresponse().read())
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    authors = [comment["author"] for comment in state["repositories"][REPO]["comments"]]
    assert authors == ["octocat", "mona"]
    assert [request["status"] for request in state["requests"]] == [500, 201]
    assert state["violations"] == []
    assert json.loads(state_file.read_text()) == state
