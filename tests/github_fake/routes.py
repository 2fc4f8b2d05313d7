"""What each operation does to the state: a table from the description's keys to functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlencode

from tests.github_fake import limits, views
from tests.github_fake.state import (
    Artifact,
    CheckRun,
    Comment,
    Repository,
    Token,
    WorkflowRun,
    World,
)

T = TypeVar("T")
NOT_ACCESSIBLE = "Resource not accessible by integration"
"""GitHub's words when a token may not do what was asked."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request that already fits the description."""

    base: str
    path: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    token: Token | None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: JSON body and headers besides the usual ones."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False
    """Whether the connection ends in the middle of the body."""


class RefusedError(Exception):
    """GitHub's refusal of a request; ``breach`` means the client broke a documented limit."""

    def __init__(
        self,
        status: int,
        message: str,
        errors: Sequence[Mapping[str, Any]] = (),
        *,
        breach: bool = False,
    ) -> None:
        super().__init__(message)
        self.breach = breach
        body: dict[str, Any] = {
            "message": message,
            "documentation_url": "https://docs.github.com/rest",
        }
        if errors:
            body["errors"] = list(errors)
        self.reply = Reply(status, body)


Handler = Callable[[World, Call], Reply]


def _refuse_if(items: Iterable[limits.Item]) -> None:
    """Raise GitHub's 422 when a documented limit was broken."""
    found = list(items)
    if found:
        raise RefusedError(422, "Validation Failed", found, breach=True)


def _repository(world: World, call: Call) -> Repository:
    name = f"{call.parameters['owner']}/{call.parameters['repo']}"
    if name not in world.repositories:
        raise RefusedError(404, "Not Found")
    return world.repositories[name]


def _commentable(world: World, call: Call) -> tuple[Repository, int]:
    """Return the repository and the number of the issue; 410 and 404 as GitHub answers them."""
    repo = _repository(world, call)
    if not repo.has_issues:
        raise RefusedError(410, "Issues are disabled for this repo")
    number = int(call.parameters["issue_number"])
    if number not in repo.issues:
        raise RefusedError(404, "Not Found")
    if repo.is_locked and call.body is not None:
        raise RefusedError(403, "Unable to create comment because issue is locked")
    return repo, number


def _comment(world: World, call: Call) -> tuple[Repository, Comment]:
    repo = _repository(world, call)
    found = repo.comments.get(int(call.parameters["comment_id"]))
    if found is None:
        raise RefusedError(404, "Not Found")
    return repo, found


def _check_run(world: World, call: Call) -> tuple[Repository, CheckRun]:
    repo = _repository(world, call)
    found = repo.check_runs.get(int(call.parameters["check_run_id"]))
    if found is None:
        raise RefusedError(404, "Not Found")
    return repo, found


def _page(call: Call, items: Sequence[T]) -> tuple[Sequence[T], dict[str, str]]:
    """Return one page of ``items`` and the Link header to the others; at most 100 a page."""
    size = min(max(int(call.query.get("per_page", "30")), 1), 100)
    page = max(int(call.query.get("page", "1")), 1)
    last = max(-(-len(items) // size), 1)
    targets = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
    shown = (["prev", "first"] if page > 1 else []) + (["next", "last"] if page < last else [])
    links = [
        f'<{call.base}{call.path}?{urlencode({**call.query, "page": targets[rel]})}>; rel="{rel}"'
        for rel in shown
    ]
    headers = {"Link": ", ".join(links)} if links else {}
    return items[(page - 1) * size : page * size], headers


def _user(_world: World, call: Call) -> Reply:
    if call.token is None:
        raise RefusedError(401, "Requires authentication")
    if not call.token.user_endpoint:
        raise RefusedError(403, NOT_ACCESSIBLE)
    return Reply(200, views.authenticated_user(call.token.login, call.base))


def _show_repository(world: World, call: Call) -> Reply:
    return Reply(200, views.repository(_repository(world, call), call.base))


def _list_comments(world: World, call: Call) -> Reply:
    repo, number = _commentable(world, call)
    since = call.query.get("since", "")
    found = [c for c in repo.comments.values() if c.issue == number and c.updated_at >= since]
    page, headers = _page(call, found)
    return Reply(200, [views.comment(repo, one, call.base) for one in page], headers)


def _create_comment(world: World, call: Call) -> Reply:
    repo, number = _commentable(world, call)
    _refuse_if(limits.comment_errors(call.body["body"]))
    author = call.token.login if call.token else ""
    made = world.add_comment(repo.full_name, number, author, call.body["body"])
    shown = views.comment(repo, made, call.base)
    return Reply(201, shown, {"Location": shown["url"]})


def _update_comment(world: World, call: Call) -> Reply:
    repo, one = _comment(world, call)
    _refuse_if(limits.comment_errors(call.body["body"]))
    one.body = call.body["body"]
    one.updated_at = world.tick()
    return Reply(200, views.comment(repo, one, call.base))


def _delete_comment(world: World, call: Call) -> Reply:
    repo, one = _comment(world, call)
    del repo.comments[one.id]
    return Reply(204, None)


def _app(call: Call) -> str:
    """Return the app behind the token: nothing else may write check runs."""
    if call.token is None or call.token.app is None:
        raise RefusedError(403, "You must authenticate via a GitHub App.")
    return call.token.app


def _create_check_run(world: World, call: Call) -> Reply:
    repo, app = _repository(world, call), _app(call)
    _refuse_if(limits.check_run_errors(call.body, None))
    run = world.add_check_run(repo.full_name, app, call.body["name"], call.body["head_sha"])
    _apply(world, run, call.body)
    return Reply(201, views.check_run(repo, run, call.base))


def _update_check_run(world: World, call: Call) -> Reply:
    repo, run = _check_run(world, call)
    if _app(call) != run.app:
        message = "Invalid app_id: check run can only be modified by the GitHub App that created it"
        raise RefusedError(403, message)
    _refuse_if(limits.check_run_errors(call.body, run.status))
    _apply(world, run, call.body)
    return Reply(200, views.check_run(repo, run, call.base))


def _apply(world: World, run: CheckRun, sent: Mapping[str, Any]) -> None:
    """Write the sent fields over the check run's; annotations are appended."""
    plain = ("name", "status", "conclusion", "external_id", "details_url", "started_at")
    for name in (*plain, "completed_at"):
        if name in sent:
            setattr(run, name, sent[name])
    if "conclusion" in sent:
        run.status = "completed"
        run.completed_at = run.completed_at or world.tick()
    output = sent.get("output", {})
    for name in ("title", "summary", "text"):
        if name in output:
            setattr(run, name, output[name])
    run.annotations.extend(output.get("annotations", ()))


def _show_check_run(world: World, call: Call) -> Reply:
    repo, run = _check_run(world, call)
    return Reply(200, views.check_run(repo, run, call.base))


def _commit(repo: Repository, ref: str) -> str:
    """Return the commit a branch names; a SHA names itself."""
    heads = {pull.head_ref: pull.head_sha for pull in repo.pulls.values()}
    return heads.get(ref.removeprefix("heads/"), ref)


def _latest(runs: Iterable[CheckRun]) -> list[CheckRun]:
    """Return the newest check run of each name and app, in the order given (newest first)."""
    newest: dict[tuple[str, str], CheckRun] = {}
    for run in runs:
        newest.setdefault((run.app, run.name), run)
    return list(newest.values())


def _list_check_runs(world: World, call: Call) -> Reply:
    repo, query = _repository(world, call), call.query
    sha = _commit(repo, call.parameters["ref"])
    found = [run for run in reversed(repo.check_runs.values()) if run.head_sha == sha]
    if query.get("filter", "latest") == "latest":
        found = _latest(found)
    found = [
        run
        for run in found
        if query.get("check_name", run.name) == run.name
        and query.get("status", run.status) == run.status
        and query.get("app_id", _app_id(run, call)) == _app_id(run, call)
    ]
    page, headers = _page(call, found)
    shown = [views.check_run(repo, run, call.base) for run in page]
    return Reply(200, {"total_count": len(found), "check_runs": shown}, headers)


def _app_id(run: CheckRun, call: Call) -> str:
    return str(views.app(run.app, call.base)["id"])


def _list_pulls_of_commit(world: World, call: Call) -> Reply:
    repo, sha = _repository(world, call), call.parameters["commit_sha"]
    found = [
        pull
        for pull in repo.pulls.values()
        if sha in (pull.head_sha, pull.merge_commit_sha, *pull.commits)
    ]
    page, headers = _page(call, found)
    shown = [views.pull(repo, one, call.base, "pull-request-simple") for one in page]
    return Reply(200, shown, headers)


def _show_pull(world: World, call: Call) -> Reply:
    repo = _repository(world, call)
    found = repo.pulls.get(int(call.parameters["pull_number"]))
    if found is None:
        raise RefusedError(404, "Not Found")
    return Reply(200, views.pull(repo, found, call.base))


def _list_pulls(world: World, call: Call) -> Reply:
    repo, query = _repository(world, call), call.query
    state, head = query.get("state", "open"), query.get("head")
    found = [
        pull
        for pull in repo.pulls.values()
        if state in (pull.state, "all")
        and head in (None, f"{pull.head_repo.partition('/')[0]}:{pull.head_ref}")
        and query.get("base", pull.base_ref) == pull.base_ref
    ]
    page, headers = _page(call, found[::-1])
    shown = [views.pull(repo, one, call.base, "pull-request-simple") for one in page]
    return Reply(200, shown, headers)


def _actions(world: World, call: Call) -> Repository:
    """Return the repository, where the token may look into its workflow runs."""
    if call.token is not None and not call.token.can_read_actions:
        raise RefusedError(403, NOT_ACCESSIBLE)
    return _repository(world, call)


def _show_workflow_run(world: World, call: Call) -> Reply:
    repo = _actions(world, call)
    found = repo.workflow_runs.get(int(call.parameters["run_id"]))
    if found is None:
        raise RefusedError(404, "Not Found")
    return Reply(200, views.workflow_run(repo, found, call.base))


def _list_workflow_runs(world: World, call: Call) -> Reply:
    repo = _actions(world, call)
    found = [run for run in repo.workflow_runs.values() if _is_asked_for(run, call)]
    page, headers = _page(call, sorted(found, key=lambda run: run.id, reverse=True))
    shown = [views.workflow_run(repo, one, call.base) for one in page]
    return Reply(200, {"total_count": len(found), "workflow_runs": shown}, headers)


def _is_asked_for(run: WorkflowRun, call: Call) -> bool:
    named = (str(run.workflow_id), run.path.rpartition("/")[2])
    query = call.query
    return (
        call.parameters["workflow_id"] in named
        and query.get("branch", run.head_branch) == run.head_branch
        and query.get("event", run.event) == run.event
        and query.get("status") in {None, run.conclusion, "completed" if run.conclusion else None}
    )


def _locate_artifact(world: World, call: Call) -> Reply:
    repo = _actions(world, call)
    if call.token is None:
        raise RefusedError(401, "Requires authentication")
    found = {one.id: one for one in repo.artifacts}.get(int(call.parameters["artifact_id"]))
    if found is None or call.parameters["archive_format"] != "zip":
        raise RefusedError(404, "Not Found")
    if found.expired:
        raise RefusedError(410, "Artifact has expired")
    return Reply(302, None, {"Location": f"{call.base}{STORAGE}{found.id}?{_signature(found)}"})


STORAGE = "/_storage/"
"""Where artifacts are kept: no part of the API, and no business of its tokens."""


def _signature(artifact: Artifact) -> str:
    return f"se=2026-01-01&sig=secret-{artifact.id}"


def stored(world: World, path: str, query: str) -> Reply:
    """Answer from the storage, as a cloud's would: XML where it refuses."""
    artifacts = [one for repo in world.repositories.values() for one in repo.artifacts]
    for one in artifacts:
        if path == f"{STORAGE}{one.id}" and query == _signature(one):
            return Reply(200, one.data, {"Content-Type": "application/zip"})
    return Reply(403, b"<Error><Code>AuthenticationFailed</Code></Error>")


def _show_branch(world: World, call: Call) -> Reply:
    repo = _repository(world, call)
    if call.parameters["branch"] != repo.default_branch:
        raise RefusedError(404, "Branch not found")
    return Reply(200, views.branch(repo, call.base))


def _list_branch_rules(world: World, call: Call) -> Reply:
    page, headers = _page(call, views.branch_rules(_repository(world, call)))
    return Reply(200, page, headers)


def _list_artifacts(world: World, call: Call) -> Reply:
    repo, run_id = _actions(world, call), int(call.parameters["run_id"])
    found = [one for one in repo.artifacts if one.run_id == run_id]
    found = [one for one in found if call.query.get("name", one.name) == one.name]
    if call.query.get("direction", "desc") == "desc":
        found.reverse()
    page, headers = _page(call, found)
    shown = [views.artifact(repo, one, call.base) for one in page]
    return Reply(200, {"total_count": len(found), "artifacts": shown}, headers)


_REPO = "/repos/{owner}/{repo}"
HANDLERS: dict[str, Handler] = {
    "GET /user": _user,
    f"GET {_REPO}": _show_repository,
    f"GET {_REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}": _locate_artifact,
    f"GET {_REPO}/actions/runs/{{run_id}}": _show_workflow_run,
    f"GET {_REPO}/actions/runs/{{run_id}}/artifacts": _list_artifacts,
    f"GET {_REPO}/actions/workflows/{{workflow_id}}/runs": _list_workflow_runs,
    f"GET {_REPO}/branches/{{branch}}": _show_branch,
    f"POST {_REPO}/check-runs": _create_check_run,
    f"GET {_REPO}/check-runs/{{check_run_id}}": _show_check_run,
    f"PATCH {_REPO}/check-runs/{{check_run_id}}": _update_check_run,
    f"GET {_REPO}/commits/{{commit_sha}}/pulls": _list_pulls_of_commit,
    f"GET {_REPO}/commits/{{ref}}/check-runs": _list_check_runs,
    f"DELETE {_REPO}/issues/comments/{{comment_id}}": _delete_comment,
    f"PATCH {_REPO}/issues/comments/{{comment_id}}": _update_comment,
    f"GET {_REPO}/issues/{{issue_number}}/comments": _list_comments,
    f"POST {_REPO}/issues/{{issue_number}}/comments": _create_comment,
    f"GET {_REPO}/pulls": _list_pulls,
    f"GET {_REPO}/pulls/{{pull_number}}": _show_pull,
    f"GET {_REPO}/rules/branches/{{branch}}": _list_branch_rules,
}
"""One function for each operation of the cut; a test holds the two together."""
