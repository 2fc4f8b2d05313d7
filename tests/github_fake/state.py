"""What the fake remembers: repositories, pull requests, comments, check runs, tokens.

Ids and times are counters, so that two runs of a test see the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count
from typing import Any

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Token:
    """Who a request comes from and what it may do."""

    login: str
    can_write: bool
    user_endpoint: bool
    """Whether ``GET /user`` answers: personal tokens yes, installation tokens no."""

    app: str | None
    """Slug of the GitHub App the token belongs to; only an app may write check runs."""

    can_read_actions: bool = True
    """Whether it has ``actions: read``."""


@dataclass(slots=True)
class Comment:
    """A comment of an issue or a pull request."""

    id: int
    issue: int
    author: str
    body: str
    created_at: str
    updated_at: str


@dataclass(slots=True)
class CheckRun:
    """A check run; ``annotations`` are kept as they were sent, in order."""

    id: int
    app: str
    name: str
    head_sha: str
    status: str = "queued"
    conclusion: str | None = None
    external_id: str | None = None
    details_url: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Pull:
    """A pull request."""

    number: int
    head_sha: str
    head_ref: str = "feature"
    head_repo: str = ""
    """Full name of the repository the branch is in; a fork's differs from the pull's own."""

    base_sha: str = "b" * 40
    base_ref: str = "main"
    merge_commit_sha: str | None = None
    state: str = "open"
    author: str = "octocat"
    commits: tuple[str, ...] = ()
    """Further commits that belong to the pull request, besides its head."""


@dataclass(slots=True)
class WorkflowRun:
    """A run of a workflow."""

    id: int
    workflow_id: int = 1
    event: str = "push"
    head_branch: str = "main"
    head_sha: str = "b" * 40
    head_repo: str = ""
    """Full name of the repository its commit is in; a fork's differs."""

    conclusion: str | None = "success"
    path: str = ".github/workflows/agent-eval.yml"
    created_at: str = ""


@dataclass(slots=True)
class Artifact:
    """A stored artifact of a workflow run."""

    id: int
    run_id: int
    name: str
    size_in_bytes: int = 0
    created_at: str = ""
    data: bytes = b""
    expired: bool = False
    digest: str | None = None


@dataclass(slots=True)
class Repository:
    """A repository and everything in it."""

    id: int
    full_name: str
    has_issues: bool = True
    is_locked: bool = False
    """Whether the conversations of its issues are locked."""
    private: bool = False
    default_branch: str = "main"
    issues: set[int] = field(default_factory=set)
    """Numbers of issues and pull requests: what may be commented on."""

    pulls: dict[int, Pull] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    check_runs: dict[int, CheckRun] = field(default_factory=dict)
    artifacts: list[Artifact] = field(default_factory=list)
    workflow_runs: dict[int, WorkflowRun] = field(default_factory=dict)
    protected_checks: tuple[str, ...] = ()
    """The checks that the protection of the default branch requires."""

    ruleset_checks: tuple[str, ...] = ()
    """The checks that a ruleset requires."""


class World:
    """All state of one fake; not thread-safe, the caller holds a lock."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.tokens: dict[str, Token] = {}
        self._ids = count(1001)
        self._seconds = count()

    def next_id(self) -> int:
        """Return an id no other object has."""
        return next(self._ids)

    def tick(self) -> str:
        """Return the next moment as GitHub writes it; each call is one second later."""
        moment = _EPOCH + timedelta(seconds=next(self._seconds))
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def add_token(self, token: str, login: str, **may: bool) -> Token:
        """Accept ``token``. A login that ends in ``[bot]`` belongs to the app of that name."""
        app = login.removesuffix("[bot]") if login.endswith("[bot]") else None
        rights = {"can_write": True, "user_endpoint": app is None, **may}
        self.tokens[token] = Token(login, app=app, **rights)
        return self.tokens[token]

    def add_repository(self, full_name: str, **fields: Any) -> Repository:
        """Create a repository; ``fields`` are those of :class:`Repository`."""
        self.repositories[full_name] = Repository(self.next_id(), full_name, **fields)
        return self.repositories[full_name]

    def add_pull(self, full_name: str, number: int, head_sha: str, **fields: Any) -> Pull:
        """Create a pull request; ``fields`` are those of :class:`Pull`."""
        repository = self.repositories[full_name]
        pull = Pull(number, head_sha, **{"head_repo": full_name, **fields})
        repository.pulls[number] = pull
        repository.issues.add(number)
        return pull

    def add_comment(self, full_name: str, issue: int, author: str, body: str) -> Comment:
        """Create a comment, in whatever state the repository is."""
        now = self.tick()
        comment = Comment(self.next_id(), issue, author, body, now, now)
        self.repositories[full_name].comments[comment.id] = comment
        return comment

    def add_check_run(self, full_name: str, app: str, name: str, head_sha: str) -> CheckRun:
        """Create a check run, still queued."""
        run = CheckRun(self.next_id(), app, name, head_sha, started_at=self.tick())
        self.repositories[full_name].check_runs[run.id] = run
        return run

    def add_workflow_run(self, full_name: str, **fields: Any) -> WorkflowRun:
        """Create a run; ``fields`` are those of :class:`WorkflowRun`, the id is the next."""
        fields = {"id": self.next_id(), "head_repo": full_name, **fields}
        run = WorkflowRun(created_at=self.tick(), **fields)
        self.repositories[full_name].workflow_runs[run.id] = run
        return run

    def add_artifact(self, full_name: str, run_id: int, name: str, **fields: Any) -> Artifact:
        """Create an artifact of a workflow run; ``fields`` are those of :class:`Artifact`."""
        data = fields.get("data", b"")
        known = {"size_in_bytes": len(data), "digest": f"sha256:{sha256(data).hexdigest()}"}
        artifact = Artifact(
            self.next_id(), run_id, name, created_at=self.tick(), **{**known, **fields}
        )
        self.repositories[full_name].artifacts.append(artifact)
        return artifact
