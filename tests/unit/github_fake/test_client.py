"""The fake as PyGithub sees it: reads, writes, tokens, pages."""

import pytest
from github import BadCredentialsException, GithubException, UnknownObjectException

from tests.unit.github_fake.rig import (
    COMMENTS,
    HEAD,
    REPO,
    RUNS,
    annotation,
    client,
    output,
    raw,
    run_body,
)


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
