"""The PyGithub client. Import it only for publishing: PyGithub takes 0.15 to 0.35 s to import."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast
from urllib.parse import quote

import github
import requests
from github.Artifact import Artifact as GithubArtifact
from github.CheckRun import CheckRun as GithubCheckRun
from github.GithubRetry import GithubRetry
from github.IssueComment import IssueComment
from github.PaginatedList import PaginatedList
from github.PullRequest import PullRequest
from github.Repository import Repository
from github.WorkflowRun import WorkflowRun as GithubWorkflowRun
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    MaxRetryError,
    NewConnectionError,
    ReadTimeoutError,
)

from ci_agent_eval.errors import PublishError
from ci_agent_eval.github.api import (
    Artifact,
    CheckRun,
    Comment,
    Pull,
    WorkflowRun,
    Write,
    list_required_checks,
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
from ci_agent_eval.github.retries import (
    TRIES,
    Clock,
    Log,
    Sleep,
    WaitBudget,
    WritePacer,
    compute_retry_pause,
    may_retry,
)

T = TypeVar("T")
P = ParamSpec("P")


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
                retry=_Retry(patience=patience, clock=clock),
                # `WritePacer` replaces PyGithub's own pauses, which use the real clock.
                seconds_between_requests=None,
                seconds_between_writes=None,
                lazy=True,
            )
            return opened.enter_context(one)

        yield GitHubApi(session, connection, patience, WritePacer(clock, sleep), clock)


class _Retry(GithubRetry):
    """Lets `retries` decide whether and when urllib3 repeats a request.

    PyGithub's own class never retries a PATCH or a 429 without Retry-After, and it repeats a POST
    after a 502, which can create an object twice.
    """

    def __init__(self, *, patience: WaitBudget, clock: Clock, **rest: Any) -> None:
        rest = {"total": TRIES - 1, "allowed_methods": frozenset({"GET"}), **rest}
        super().__init__(**rest)
        self._patience = patience
        self._clock = clock
        self._pause = (0.0, "")

    def new(self, **kw: Any) -> _Retry:
        return super().new(patience=self._patience, clock=self._clock, **kw)

    def is_retry(
        self,
        method: str,
        status_code: int,
        has_retry_after: bool = False,  # noqa: ARG002 - urllib3's signature
    ) -> bool:
        return may_retry(method, status_code)

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: Any = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> _Retry:
        if error is not None and method != "GET" and not _was_never_sent(error):
            raise error.with_traceback(_stacktrace)
        try:
            # `new` returns our own class, unlike the base class's annotation.
            following = cast(
                "_Retry", super().increment(method, url, response, error, _pool, _stacktrace)
            )
        except Exception as exhausted:
            if response is not None:
                # urllib3 would leave the connection open: it expects MaxRetryError only.
                response.drain_conn()
            if response is None or not isinstance(exhausted, MaxRetryError):
                raise
            raise PublishError(
                f"GitHub answered {response.status} to {method} {url} {TRIES} times. "
                "Run the job again later."
            ) from None
        following._plan(f"{method} {url}", response)  # noqa: SLF001 - the same class
        return following

    def _plan(self, request: str, response: Any) -> None:
        """Set the pause and its reason before urllib3 requests it."""
        status = None if response is None else int(response.status)
        headers = {} if response is None else {k.lower(): v for k, v in response.headers.items()}
        seconds = compute_retry_pause(
            status, headers, failures=len(self.history), now=self._clock()
        )
        problem = "No answer from GitHub" if status is None else f"GitHub answered {status}"
        self._pause = (seconds, f"{problem} to {request}")

    def sleep(self, response: Any = None) -> None:  # noqa: ARG002 - urllib3's signature
        self._patience.wait(*self._pause)


def _was_never_sent(error: Exception) -> bool:
    """Say whether a connection failed before the request was sent."""
    cause = getattr(error, "original_error", error)
    return isinstance(cause, NewConnectionError | ConnectTimeoutError)


def _is_unfinished(error: BaseException | None) -> bool:
    """Say whether a response began and did not end; errors after urllib3's retries do not count."""
    if isinstance(error, github.GithubException):
        # PyGithub reads a 403's body to recognize a rate limit, and raises even if that fails.
        return error.__cause__ is not None and _is_unfinished(error.__cause__.__cause__)
    if isinstance(error, requests.ConnectionError):
        return any(isinstance(cause, ReadTimeoutError) for cause in error.args)
    return isinstance(error, requests.exceptions.ChunkedEncodingError)


def _retry_unfinished(
    read: Callable[Concatenate[GitHubApi, P], T],
) -> Callable[Concatenate[GitHubApi, P], T]:
    """Retry a read after a truncated response: urllib3 retries only before a response begins."""

    @wraps(read)
    def retry(self: GitHubApi, /, *args: P.args, **kwargs: P.kwargs) -> T:
        for tried in range(1, TRIES):
            try:
                return read(self, *args, **kwargs)
            except UnfinishedAnswerError as error:
                self.wait(2.0 ** (tried - 1), str(error).rstrip("."))
        return read(self, *args, **kwargs)

    return retry


class GitHubApi:
    """One repository on GitHub; implements the protocol `workflow_runs.RunsApi`."""

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

    @_retry_unfinished
    def login(self) -> str | None:
        """Return the token's login; None for an app's token, which may not read it."""
        try:
            with self._translate_errors("ask whose token this is"):
                return self._session.get_user().login
        except NotAllowedError:
            return None

    @_retry_unfinished
    def comments(self, issue: int) -> Sequence[Comment]:
        """Return every comment of a pull request, oldest first."""
        with self._translate_errors(f"read the comments of #{issue}", "pull-requests"):
            found = [
                _parse_comment(one) for one in self._repository.get_issue(issue).get_comments()
            ]
        return sorted(found, key=lambda comment: comment.id)

    @_retry_unfinished
    def pulls_of_commit(self, sha: str) -> Sequence[Pull]:
        """Return the pull requests that contain a commit."""
        with self._translate_errors(f"look up the pull requests of {sha[:7]}", "pull-requests"):
            return [_parse_pull(one) for one in self._repository.get_commit(sha).get_pulls()]

    @_retry_unfinished
    def pulls_of_branch(self, owner: str, branch: str) -> Sequence[Pull]:
        """Return the open pull requests from a branch of any repository of `owner`."""
        with self._translate_errors(f"look up the pull requests from {owner}", "pull-requests"):
            found = self._repository.get_pulls(state="open", head=f"{owner}:{branch}")
            return [_parse_pull(one) for one in found]

    @_retry_unfinished
    def pull_head(self, number: int) -> str | None:
        """Return the current head commit of a pull request; None if the token may not read it."""
        try:
            with self._translate_errors(f"look up #{number}", "pull-requests"):
                return self._repository.get_pull(number).head.sha
        except NotAllowedError:
            return None

    @_retry_unfinished
    def check_runs_of(self, sha: str, name: str) -> Sequence[CheckRun]:
        """Return every check run of this name on a commit."""
        with self._translate_errors(f"read the check runs of {sha[:7]}", "checks"):
            found = self._repository.get_commit(sha).get_check_runs(check_name=name, filter="all")
            return [_parse_check_run(one) for one in found]

    @_retry_unfinished
    def check_run(self, run_id: int) -> CheckRun:
        """Return the current state of a check run."""
        with self._translate_errors("read the check run again", "checks"):
            found = self._repository.get_check_run(run_id)
            found.complete()
            return _parse_check_run(found)

    @_retry_unfinished
    def required_checks(self, branch: str) -> Sequence[str]:
        """Return the names of the checks that a branch's protection and rulesets require."""
        name = quote(branch, safe="")
        with self._translate_errors(f"read which checks {branch} requires", "contents"):
            found = self._read(f"/branches/{name}")
            # A branch seldom has two rules of a kind, so the first page is enough.
            rules = self._read(f"/rules/branches/{name}", per_page=100)
            return list_required_checks(found, rules)

    @_retry_unfinished
    def workflow_run(self, run_id: int) -> WorkflowRun:
        """Return a workflow run."""
        with self._translate_errors(f"read workflow run {run_id}", "actions"):
            return _parse_workflow_run(self._repository.get_workflow_run(run_id))

    @_retry_unfinished
    def completed_runs(self, workflow_id: int, branch: str, *, limit: int) -> Sequence[WorkflowRun]:
        """Return the last completed runs of a workflow on a branch name, newest first."""
        with self._translate_errors("list the earlier runs of this workflow", "actions"):
            workflow = self._repository.get_workflow(workflow_id)
            found = workflow.get_runs(branch=branch, status="completed")
            return [_parse_workflow_run(one) for one in islice(found, limit)]

    @_retry_unfinished
    def artifacts_of_run(self, run_id: int, *, limit: int) -> Sequence[Artifact]:
        """Return the artifacts of a run, in GitHub's order."""
        path = f"{self._path}/actions/runs/{run_id}/artifacts"
        with self._translate_errors(f"list the artifacts of run {run_id}", "actions"):
            # WorkflowRun.get_artifacts would read the run itself first.
            found = PaginatedList(GithubArtifact, self._requester, path, list_item="artifacts")
            return [_parse_artifact(one) for one in islice(found, limit)]

    def download_artifact(self, artifact: Artifact, into: Path, *, largest: int) -> None:
        """Write an artifact's archive, of at most `largest` bytes, to a file."""
        action = (
            f"download the artifact {make_printable_line(artifact.name)} of run {artifact.run_id}"
        )
        purpose = Purpose(action, "actions")
        download_to_file(
            lambda: self._signed_address(artifact, purpose),
            into,
            DownloadTerms(action, largest, artifact.digest, self._connection.timeout_s),
            patience=self._patience,
            clock=self._clock,
        )

    @_retry_unfinished
    def _signed_address(self, artifact: Artifact, purpose: Purpose) -> str:
        """Return the signed download address of an artifact; the token is sent to the API only."""
        path = f"{self._path}/actions/artifacts/{artifact.id}/zip"
        with self._translate_errors(purpose.action, purpose.permission):
            status, headers, _ = self._requester.requestJson("GET", path)
        address = str(headers.get("location", ""))
        if status == 302 and is_allowed_address(address, self._connection.api_url):
            return address
        if status < 400:
            raise PublishError(
                f"Could not {purpose.action}: GitHub named no address to get it from."
            )
        if status == 410:
            raise GoneError(f"Could not {purpose.action}: it has expired.")
        raise build_error(purpose, status, None, secret=self._secret)

    def send_comment(self, write: Write) -> Comment:
        """Create or update a comment."""
        return self._send(
            write,
            lambda headers, data: _parse_comment(IssueComment(self._requester, headers, data)),
        )

    def delete_comment(self, write: Write) -> None:
        """Delete a comment; raises NotFoundError if it is already deleted."""
        self._send(write, lambda _headers, _data: None)

    def send_check_run(self, write: Write) -> CheckRun:
        """Create or update a check run."""
        return self._send(
            write,
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

    @contextmanager
    def _translate_errors(self, action: str, permission: str = "") -> Iterator[None]:
        purpose = Purpose(action, permission)
        try:
            yield
        except PublishError:
            raise
        except (github.GithubException, requests.RequestException) as error:
            translated = self._build_error(purpose, error)
            if _is_unfinished(error):
                raise UnfinishedAnswerError(str(translated)) from None
            raise translated from None
        except Exception as error:  # noqa: BLE001 - a proxy's page may fail PyGithub in any way
            raise build_unreadable_error(purpose, error, secret=self._secret) from None

    def _send(self, write: Write, read: Callable[[dict[str, Any], Any], T]) -> T:
        """Send a write; any error that does not prove that nothing was done is ambiguous."""
        self._pace.before_write()
        try:
            return read(
                *self._requester.requestJsonAndCheck(
                    write.method,
                    self._path + write.path,
                    input=None if write.body is None else dict(write.body),
                )
            )
        except PublishError:
            raise
        except (github.GithubException, requests.RequestException) as error:
            translated = self._build_error(write.purpose, error)
            is_refused = isinstance(error, github.GithubException) and error.status < 500
            if is_refused and not _is_unfinished(error):
                raise translated from None
            raise AmbiguousWriteError(str(translated)) from None
        except Exception as error:  # noqa: BLE001 - as in _translate_errors
            raise AmbiguousWriteError(
                str(build_unreadable_error(write.purpose, error, secret=self._secret))
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
