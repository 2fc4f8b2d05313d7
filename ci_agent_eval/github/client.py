"""The PyGithub client. Import it only for publishing: PyGithub takes 0.15 to 0.35 s to import."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import github
import requests
from github.Artifact import Artifact as GithubArtifact
from github.CheckRun import CheckRun as GithubCheckRun
from github.IssueComment import IssueComment
from github.PaginatedList import PaginatedList
from github.PullRequest import PullRequest
from github.Repository import Repository
from github.WorkflowRun import WorkflowRun as GithubWorkflowRun
from urllib3.exceptions import ReadTimeoutError

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api import (
    Artifact,
    CheckRun,
    Comment,
    Json,
    Pull,
    WorkflowRun,
)
from ci_agent_eval.github.api_errors import (
    AmbiguousWriteError,
    GoneError,
    NotAllowedError,
    Purpose,
    UnfinishedAnswerError,
    build_error,
    build_no_answer_error,
    build_unreadable_error,
    make_printable_line,
)
from ci_agent_eval.github.concurrent_requests import PerThread
from ci_agent_eval.github.download import DownloadTerms, download_to_file, is_allowed_address
from ci_agent_eval.github.request_retry import RequestRetry
from ci_agent_eval.github.retries import (
    TRIES,
    Clock,
    Log,
    Sleep,
    WaitBudget,
    WritePacer,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Connection:
    """Connection settings for GitHub."""

    repository: str
    """`owner/name`."""
    token: str = field(repr=False)
    api_url: str = "https://api.github.com"
    """GITHUB_API_URL; an enterprise server's ends in `/api/v3`."""
    timeout_s: int = 30
    """Timeout for connecting, and for each chunk of a response."""
    patience_s: float = 300.0
    """Limit for the total time spent waiting for rate limits and server errors."""


@contextmanager
def open_api(
    connection: Connection, *, sleep: Sleep, clock: Clock, log: Log
) -> Iterator[GitHubApi]:
    """Open the API without sending a request; `clock` returns seconds since 1970."""
    # On import PyGithub starts to print every refused request to standard error.
    github.set_log_level(logging.WARNING)
    patience = WaitBudget(connection.patience_s, sleep, log)
    with ExitStack() as opened:

        def session() -> github.Github:
            one = github.Github(
                auth=github.Auth.Token(connection.token),
                base_url=connection.api_url,
                timeout=connection.timeout_s,
                user_agent="ci-agent-eval",
                per_page=100,
                retry=RequestRetry(patience=patience, clock=clock),
                # `WritePacer` replaces PyGithub's own pauses, which use the real clock.
                seconds_between_requests=None,
                seconds_between_writes=None,
                lazy=True,
            )
            return opened.enter_context(one)

        yield GitHubApi(session, connection, patience, WritePacer(clock, sleep), clock)


def _is_unfinished(error: BaseException | None) -> bool:
    """Say whether a response began and did not end; errors after urllib3's retries do not count."""
    if isinstance(error, github.GithubException):
        # PyGithub reads a 403's body to recognize a rate limit, and raises even if that fails.
        return error.__cause__ is not None and _is_unfinished(error.__cause__.__cause__)
    if isinstance(error, requests.ConnectionError):
        return any(isinstance(cause, ReadTimeoutError) for cause in error.args)
    return isinstance(error, requests.exceptions.ChunkedEncodingError)


class GitHubApi:
    """One repository on GitHub. Methods raise PublishError; see `api_errors` for its kinds.

    Reads are retried automatically. Writes are retried only if GitHub certainly did nothing;
    otherwise they raise AmbiguousWriteError, and the caller must read before it writes again.
    """

    def __init__(
        self,
        session: Callable[[], github.Github],
        connection: Connection,
        patience: WaitBudget,
        pace: WritePacer,
        clock: Clock,
    ) -> None:
        self._sessions = PerThread(session)  # a connection holds its current request
        self._path = f"/repos/{connection.repository}"
        self._connection = connection
        self._secret = connection.token
        self._patience = patience
        self._pace = pace
        self._clock = clock

    def login(self) -> str | None:
        """Return the token's login; None for an app's token, which may not read it."""
        try:
            return self._ask("ask whose token this is", lambda: self._session.get_user().login)
        except NotAllowedError:
            return None

    def comments(self, issue: int) -> Sequence[Comment]:
        """Return every comment of a pull request, oldest first."""
        found = self._ask(
            f"read the comments of #{issue}",
            lambda: list(map(_parse_comment, self._repository.get_issue(issue).get_comments())),
            "pull-requests",
        )
        return sorted(found, key=lambda comment: comment.id)

    def pulls_of_commit(self, sha: str) -> Sequence[Pull]:
        """Return the pull requests that contain a commit."""
        return self._ask(
            f"look up the pull requests of {sha[:7]}",
            lambda: list(map(_parse_pull, self._repository.get_commit(sha).get_pulls())),
            "pull-requests",
        )

    def pulls_of_branch(self, owner: str, branch: str) -> Sequence[Pull]:
        """Return the open pull requests from a branch of any repository of `owner`."""
        head = f"{owner}:{branch}"
        return self._ask(
            f"look up the pull requests from {owner}",
            lambda: list(map(_parse_pull, self._repository.get_pulls(state="open", head=head))),
            "pull-requests",
        )

    def pull_head(self, number: int) -> str | None:
        """Return the current head commit of a pull request; None if the token may not read it."""
        try:
            return self._ask(
                f"look up #{number}",
                lambda: self._repository.get_pull(number).head.sha,
                "pull-requests",
            )
        except NotAllowedError:
            return None

    def check_runs_of(self, sha: str, name: str) -> Sequence[CheckRun]:
        """Return every check run of this name on a commit."""

        def read() -> Sequence[CheckRun]:
            found = self._repository.get_commit(sha).get_check_runs(check_name=name, filter="all")
            return [_parse_check_run(one) for one in found]

        return self._ask(f"read the check runs of {sha[:7]}", read, "checks")

    def check_run(self, run_id: int) -> CheckRun:
        """Return the current state of a check run."""

        def read() -> CheckRun:
            found = self._repository.get_check_run(run_id)
            found.complete()
            return _parse_check_run(found)

        return self._ask("read the check run again", read, "checks")

    def required_checks(self, branch: str) -> Sequence[str]:
        """Return the names of the checks that a branch's protection and rulesets require."""
        name = quote(branch, safe="")

        def read() -> Sequence[str]:
            protected = self._read(f"/branches/{name}")["protection"]
            names = set((protected.get("required_status_checks") or {}).get("contexts", ()))
            # A branch seldom has two rules of a kind, so the first page is enough.
            for rule in self._read(f"/rules/branches/{name}", per_page=100):
                if rule["type"] == "required_status_checks":
                    checks = rule["parameters"]["required_status_checks"]
                    names |= {check["context"] for check in checks}
            return sorted(names)

        return self._ask(f"read which checks {branch} requires", read, "contents")

    def workflow_run(self, run_id: int) -> WorkflowRun:
        """Return a workflow run; this and the methods about artifacts need `actions: read`."""
        return self._ask(
            f"read workflow run {run_id}",
            lambda: _parse_workflow_run(self._repository.get_workflow_run(run_id)),
            "actions",
        )

    def completed_runs(self, workflow_id: int, branch: str, *, limit: int) -> Sequence[WorkflowRun]:
        """Return the last completed runs of a workflow on a branch name, newest first.

        Includes all conclusions, and runs of forks with a branch of the same name.
        """

        def read() -> Sequence[WorkflowRun]:
            workflow = self._repository.get_workflow(workflow_id)
            found = workflow.get_runs(branch=branch, status="completed")
            return [_parse_workflow_run(one) for one in islice(found, limit)]

        return self._ask("list the earlier runs of this workflow", read, "actions")

    def artifacts_of_run(self, run_id: int, *, limit: int) -> Sequence[Artifact]:
        """Return the artifacts of a run, in GitHub's order."""
        path = f"{self._path}/actions/runs/{run_id}/artifacts"

        def read() -> Sequence[Artifact]:
            # WorkflowRun.get_artifacts would read the run itself first.
            found = PaginatedList(GithubArtifact, self._requester, path, list_item="artifacts")
            return [_parse_artifact(one) for one in islice(found, limit)]

        return self._ask(f"list the artifacts of run {run_id}", read, "actions")

    def download_artifact(self, artifact: Artifact, into: Path, *, largest: int) -> None:
        """Write an artifact's archive, of at most `largest` bytes, to a file.

        Raises GoneError if it has expired.
        """
        name = make_printable_line(artifact.name)
        action = f"download the artifact {name} of run {artifact.run_id}"
        download_to_file(
            lambda: self._signed_address(artifact, action),
            into,
            DownloadTerms(action, largest, artifact.digest, self._connection.timeout_s),
            patience=self._patience,
            clock=self._clock,
        )

    def _signed_address(self, artifact: Artifact, action: str) -> str:
        """Return the signed download address of an artifact; the token is sent to the API only."""
        path = f"{self._path}/actions/artifacts/{artifact.id}/zip"
        status, headers, _ = self._ask(
            action, lambda: self._requester.requestJson("GET", path), "actions"
        )
        address = str(headers.get("location", ""))
        if status == 302 and is_allowed_address(address, self._connection.api_url):
            return address
        if status < 400:
            raise PublishError(f"Could not {action}: GitHub named no address to get it from.")
        if status == 410:
            raise GoneError(f"Could not {action}: it has expired.")
        raise build_error(Purpose(action, "actions"), status, None, secret=self._secret)

    def create_comment(self, issue: int, body: str) -> Comment:
        """Post a comment on a pull request."""
        purpose = Purpose(f"post the comment on #{issue}", "pull-requests")
        return self._send_comment("POST", f"/issues/{issue}/comments", body, purpose)

    def update_comment(self, issue: int, comment_id: int, body: str) -> Comment:
        """Replace the text of a comment."""
        purpose = Purpose(f"update the comment on #{issue}", "pull-requests")
        return self._send_comment("PATCH", f"/issues/comments/{comment_id}", body, purpose)

    def _send_comment(self, method: str, path: str, body: str, purpose: Purpose) -> Comment:
        return self._send(
            method,
            path,
            {"body": body},
            purpose,
            lambda headers, data: _parse_comment(IssueComment(self._requester, headers, data)),
        )

    def delete_comment(self, issue: int, comment_id: int) -> None:
        """Delete a comment; raises NotFoundError if it is already deleted."""
        purpose = Purpose(f"delete a duplicate of the comment on #{issue}", "pull-requests")
        self._send("DELETE", f"/issues/comments/{comment_id}", None, purpose, lambda *_: None)

    def send_check_run(self, run_id: int | None, body: Json, action: str) -> CheckRun:
        """Create a check run, or update the one of an id; `action` is for error messages."""
        return self._send(
            "POST" if run_id is None else "PATCH",
            "/check-runs" if run_id is None else f"/check-runs/{run_id}",
            body,
            Purpose(action, "checks"),
            lambda headers, data: _parse_check_run(GithubCheckRun(self._requester, headers, data)),
        )

    def wait(self, seconds: float, why: str) -> None:
        """Wait before reading the result of a write; raises OutOfPatienceError at the limit."""
        self._patience.wait(seconds, why)

    def _read(self, path: str, **parameters: object) -> Any:
        """Return the body of an answer; `path` is below the repository's."""
        return self._requester.requestJsonAndCheck("GET", self._path + path, parameters or None)[1]

    @property
    def _session(self) -> github.Github:
        return self._sessions.own

    @property
    def _repository(self) -> Repository:
        return self._session.get_repo(self._connection.repository)  # lazy: sends no request yet

    @property
    def _requester(self) -> github.Requester.Requester:
        return self._session.requester

    def _ask(self, action: str, read: Callable[[], T], permission: str = "") -> T:
        """Return what `read` gets; a truncated answer, which urllib3 leaves to us, is read anew."""
        purpose = Purpose(action, permission)
        for tried in range(1, TRIES):
            try:
                return self._read_once(purpose, read)
            except UnfinishedAnswerError as error:
                self.wait(2.0 ** (tried - 1), str(error).rstrip("."))
        return self._read_once(purpose, read)

    def _read_once(self, purpose: Purpose, read: Callable[[], T]) -> T:
        try:
            return read()
        except PublishError:
            raise
        except (github.GithubException, requests.RequestException) as error:
            translated = self._build_error(purpose, error)
            if _is_unfinished(error):
                raise UnfinishedAnswerError(str(translated)) from None
            raise translated from None
        except Exception as error:  # noqa: BLE001 - a proxy's page may fail PyGithub in any way
            raise build_unreadable_error(purpose, error, secret=self._secret) from None

    def _send(
        self,
        method: str,
        path: str,
        body: Json | None,
        purpose: Purpose,
        read: Callable[[dict[str, Any], Any], T],
    ) -> T:
        """Send a write; any error that does not prove that nothing was done is ambiguous.

        `path` is below the repository's, `read` parses the answer's headers and body.
        """
        self._pace.before_write()
        content = None if body is None else dict(body)
        try:
            return read(
                *self._requester.requestJsonAndCheck(method, self._path + path, input=content)
            )
        except PublishError:
            raise
        except (github.GithubException, requests.RequestException) as error:
            translated = self._build_error(purpose, error)
            is_refused = isinstance(error, github.GithubException) and error.status < 500
            if is_refused and not _is_unfinished(error):
                raise translated from None
            raise AmbiguousWriteError(str(translated)) from None
        except Exception as error:  # noqa: BLE001 - as in _read_once
            raise AmbiguousWriteError(
                str(build_unreadable_error(purpose, error, secret=self._secret))
            ) from None

    def _build_error(
        self, purpose: Purpose, error: github.GithubException | requests.RequestException
    ) -> PublishError:
        if isinstance(error, github.GithubException):
            return build_error(purpose, error.status, error.data, secret=self._secret)
        return build_no_answer_error(purpose, error, secret=self._secret)


def _parse_comment(one: IssueComment) -> Comment:
    author = one.user.login if one.user else ""
    return Comment(id=one.id, author=author, body=one.body or "", url=one.html_url)


def _parse_pull(one: PullRequest) -> Pull:
    repository = one.head.repo.full_name if one.head.repo else None
    return Pull(one.number, one.state == "open", one.head.sha, repository, one.base.ref)


def _parse_workflow_run(one: GithubWorkflowRun) -> WorkflowRun:
    repository = one.head_repository
    return WorkflowRun(
        id=one.id,
        workflow_id=one.workflow_id,
        event=one.event,
        conclusion=one.conclusion,
        head_sha=one.head_sha,
        head_branch=one.head_branch or "",
        head_repository=repository.full_name if repository else None,
    )


def _parse_artifact(one: GithubArtifact) -> Artifact:
    # Raw data: PyGithub would send a request to complete the partial run object.
    run = one.raw_data.get("workflow_run") or {}
    return Artifact(
        id=one.id,
        name=one.name,
        size_bytes=one.size_in_bytes,
        is_expired=one.expired,
        run_id=run.get("id"),
        head_sha=run.get("head_sha"),
        created_at=str(one.raw_data.get("created_at") or ""),
        digest=one.digest,
    )


def _parse_check_run(one: GithubCheckRun) -> CheckRun:
    return CheckRun(
        id=one.id,
        name=one.name,
        status=one.status,
        conclusion=one.conclusion,
        external_id=one.external_id or "",
        annotations_count=one.output.annotations_count or 0,
        url=one.html_url or "",
        app_id=one.app.id if one.app else None,
    )
