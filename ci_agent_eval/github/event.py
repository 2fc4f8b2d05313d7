"""GitHub's event that started the workflow run, parsed from payload and environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.errors import InputError

DEPENDABOT = "dependabot[bot]"
"""Login of Dependabot, whose pull requests get a read-only token like those of forks."""

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?", re.ASCII)
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_URL = re.compile(r"https?://[^\s/]+(/\S*)?", re.ASCII)
_RUN_ID = re.compile(r"[0-9]{1,19}", re.ASCII)
_QUEUED = re.compile(r"gh-readonly-queue/(.+)/pr-[0-9]+-[0-9a-f]+", re.ASCII)
_PULL_EVENTS = ("pull_request", "pull_request_target")


@dataclass(frozen=True, slots=True)
class SourceRun:
    """The workflow run of a `workflow_run` event."""

    id: int
    workflow_id: int
    event: str
    """Name of the event that started it, such as `pull_request`."""
    conclusion: str | None
    """None: still running."""
    head_branch: str
    """Untrusted: a fork may name its branch `main`."""
    head_repository: str | None
    """`owner/name` of the commit's repository; None for a deleted fork."""
    attempt: int | None = None
    """1-based attempt that ended; None if GitHub does not report it."""


@dataclass(frozen=True, slots=True)
class Event:
    """The publication target: a commit of a repository, and its pull requests if known."""

    name: str
    """GitHub's name of the event, such as `pull_request`."""
    repository: str
    """`owner/name` of the workflow's repository."""
    head_sha: str
    """The tested commit: a pull request's head, never its merge commit."""
    pulls: tuple[int, ...] | None
    """Numbers of the pull requests; None: look them up by commit."""
    is_fork: bool = False
    """Whether the commit comes from another repository."""
    actor: str = ""
    """Login of the user who started the run."""
    run_url: str | None = None
    """Page of the workflow run; None outside of a workflow."""
    run_id: int | None = None
    """Id of the workflow run; None outside of a workflow."""
    run_attempt: str = ""
    """1-based attempt at the workflow run; empty outside of a workflow."""
    base_branch: str | None = None
    """Branch of the baseline runs; None: look it up."""
    source: SourceRun | None = None
    """Set for `workflow_run` events only."""
    server_url: str = "https://github.com"
    """Address of the web pages, without a final slash."""
    api_url: str = "https://api.github.com"
    """Address of the API, without a final slash."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The fields that are read differently for each kind of event."""

    sha: str
    pulls: tuple[int, ...] | None
    is_fork: bool = False
    base_branch: str | None = None
    source: SourceRun | None = None


@dataclass(frozen=True, slots=True)
class _Payload:
    """An event's payload; its errors name the file and the key."""

    data: Mapping[str, Any]
    file: str
    environ: Mapping[str, str]

    def value(self, path: str) -> Any:
        """Return the value at a dotted path; None if any part is missing."""
        found: Any = self.data
        for key in path.split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def text(self, path: str) -> str | None:
        """Return the text at a dotted path; None for other values."""
        found = self.value(path)
        return found if isinstance(found, str) and found else None

    def branch(self, path: str) -> str | None:
        """Return the branch at a dotted path, given as name or ref; None for a tag."""
        found = self.text(path)
        if found is None or found.startswith("refs/tags/"):
            return None
        return found.removeprefix("refs/heads/")

    def sha(self, path: str) -> str:
        """Return the commit at a dotted path; raises InputError if there is none."""
        found = self.value(path)
        if not isinstance(found, str) or not _SHA.fullmatch(found):
            raise self.wrong_value(path, "the SHA of a commit", found)
        return found

    def number(self, path: str) -> int:
        """Return the positive number at a dotted path; raises InputError if there is none."""
        return self.as_number(path, self.value(path))

    def as_number(self, path: str, found: object) -> int:
        """Return `found` as a positive number; raises InputError with `path` otherwise."""
        if not isinstance(found, int) or isinstance(found, bool) or found < 1:
            raise self.wrong_value(path, "a positive number", found)
        return found

    def wrong_value(self, path: str, expected: str, found: object) -> InputError:
        """Return the error for a key with an unexpected value."""
        problem = "is missing" if found is None else f"is {str(found)[:80]!r}"
        return InputError(
            f"{self.file}: {path} {problem}, not {expected}. "
            "Pass GitHub's own event file, unchanged, as GITHUB_EVENT_PATH."
        )


def parse_event(
    name: str, payload: object, environ: Mapping[str, str], *, file: str = "GITHUB_EVENT_PATH"
) -> Event:
    """Parse an event; `environ` has the GITHUB_* values, errors name `file`.

    Raises InputError for a payload or value that GitHub would not write.
    """
    if not isinstance(payload, Mapping):
        raise InputError(f"{file}: not a JSON object. Pass GitHub's own event file, unchanged.")
    source = _Payload(payload, file, environ)
    head = _READERS.get(name, _any_head)(source)
    repository = _parse_repository(source)
    server_url = _parse_url(environ, "GITHUB_SERVER_URL", "https://github.com")
    return Event(
        name=name,
        repository=repository,
        head_sha=head.sha,
        pulls=head.pulls,
        is_fork=head.is_fork,
        actor=environ.get("GITHUB_ACTOR", ""),
        run_url=_build_run_url(environ, server_url, repository),
        run_id=_parse_run_id(environ),
        run_attempt=environ.get("GITHUB_RUN_ATTEMPT", ""),
        base_branch=head.base_branch,
        source=head.source,
        server_url=server_url,
        api_url=_parse_url(environ, "GITHUB_API_URL", "https://api.github.com"),
    )


def _parse_repository(source: _Payload) -> str:
    configured = source.environ.get("GITHUB_REPOSITORY", "")
    found = configured or source.value("repository.full_name")
    if not isinstance(found, str) or not _REPOSITORY.fullmatch(found):
        if configured:
            raise InputError(f"GITHUB_REPOSITORY is {configured[:80]!r}: write it as owner/name.")
        raise source.wrong_value("repository.full_name", "owner/name", found)
    return found


def _parse_url(environ: Mapping[str, str], key: str, default: str) -> str:
    found = (environ.get(key) or default).rstrip("/")
    if not _URL.fullmatch(found):
        raise InputError(f"{key} is {found[:80]!r}: write a whole http or https address.")
    return found


def _parse_run_id(environ: Mapping[str, str]) -> int | None:
    run_id = environ.get("GITHUB_RUN_ID", "")
    if not run_id:
        return None
    if not _RUN_ID.fullmatch(run_id):
        raise InputError(f"GITHUB_RUN_ID is {run_id[:80]!r}: it should be a number.")
    return int(run_id)


def _build_run_url(environ: Mapping[str, str], server_url: str, repository: str) -> str | None:
    run_id = _parse_run_id(environ)
    return None if run_id is None else f"{server_url}/{repository}/actions/runs/{run_id}"


def _is_from_fork(source: _Payload, head: str) -> bool:
    """Say whether the repository at `head` differs from ours; a deleted fork has none."""
    here = source.value("repository.full_name") or source.environ.get("GITHUB_REPOSITORY")
    return bool(source.value(f"{head}.full_name") != here)


def _pull_head(source: _Payload) -> _Head:
    return _Head(
        sha=source.sha("pull_request.head.sha"),
        pulls=(source.number("pull_request.number"),),
        is_fork=_is_from_fork(source, "pull_request.head.repo"),
        base_branch=source.branch("pull_request.base.ref"),
    )


def _merge_group_head(source: _Payload) -> _Head:
    sha, base = source.sha("merge_group.head_sha"), source.branch("merge_group.base_ref")
    return _Head(sha=sha, pulls=(), base_branch=base)


def _push_head(source: _Payload) -> _Head:
    if source.value("deleted") is True:
        raise InputError(
            f"{source.file}: the push deleted a branch, so there is no commit to report on. "
            "Leave such events out with `if: ${{ !github.event.deleted }}`."
        )
    # For an annotated tag, `after` is the tag object, not its commit.
    sha = _environ_sha(source) or source.sha("after")
    base = source.branch("ref") or _default_branch(source)
    return _Head(sha=sha, pulls=None, base_branch=base)


def _workflow_run_head(source: _Payload) -> _Head:
    sha = source.sha("workflow_run.head_sha")
    listed = source.value("workflow_run.pull_requests")
    if not isinstance(listed, list | tuple):
        raise source.wrong_value("workflow_run.pull_requests", "a list", listed)
    # GitHub lists no pull requests of forks; the API finds them by branch.
    return _Head(
        sha=sha,
        pulls=tuple(_listed_pulls(source, listed)) or None,
        is_fork=_is_from_fork(source, "workflow_run.head_repository"),
        base_branch=_find_base_branch(source, listed),
        source=_source_run(source),
    )


def _source_run(source: _Payload) -> SourceRun | None:
    """Read the source run's data; None if the payload has no ids."""
    ids = (source.value("workflow_run.id"), source.value("workflow_run.workflow_id"))
    if ids == (None, None):
        return None
    repository = source.text("workflow_run.head_repository.full_name")
    attempt = source.value("workflow_run.run_attempt")
    return SourceRun(
        id=source.number("workflow_run.id"),
        workflow_id=source.number("workflow_run.workflow_id"),
        event=source.text("workflow_run.event") or "",
        conclusion=source.text("workflow_run.conclusion"),
        head_branch=source.text("workflow_run.head_branch") or "",
        head_repository=repository if _REPOSITORY.fullmatch(repository or "") else None,
        attempt=None if attempt is None else source.number("workflow_run.run_attempt"),
    )


def _find_base_branch(source: _Payload, listed: list[Any] | tuple[Any, ...]) -> str | None:
    """Return the baseline branch of a run; None for a fork's."""
    if source.text("workflow_run.event") in _PULL_EVENTS:
        pulls = [one for one in listed if isinstance(one, Mapping)]
        bases = {_Payload(p, source.file, source.environ).branch("base.ref") for p in pulls}
        return bases.pop() if len(bases) == 1 else None
    head = source.branch("workflow_run.head_branch") or ""
    queued = _QUEUED.fullmatch(head)
    return queued[1] if queued else head or _default_branch(source)


def _default_branch(source: _Payload) -> str | None:
    return source.branch("repository.default_branch")


def _listed_pulls(source: _Payload, listed: list[Any] | tuple[Any, ...]) -> list[int]:
    path = "workflow_run.pull_requests"
    here = source.value("repository.id")
    numbers = []
    for index, pull in enumerate(listed):
        one = _Payload(pull if isinstance(pull, Mapping) else {}, source.file, source.environ)
        # In a fork, GitHub lists pull requests of the upstream repository.
        if here is None or one.value("base.repo.id") in {None, here}:
            numbers.append(source.as_number(f"{path}[{index}].number", one.value("number")))
    return numbers


def _commit_head(source: _Payload) -> _Head:
    sha = _environ_sha(source)
    if sha is None:
        raise InputError(
            "GITHUB_SHA is not set, and this event's file names no commit. "
            "Run inside a GitHub workflow, or set GITHUB_SHA to the tested commit."
        )
    return _Head(sha=sha, pulls=None, base_branch=_default_branch(source))


def _any_head(source: _Payload) -> _Head:
    """Read an unknown event by its pull request, or by its commit."""
    return _pull_head(source) if source.value("pull_request.head") else _commit_head(source)


def _environ_sha(source: _Payload) -> str | None:
    found = source.environ.get("GITHUB_SHA", "")
    if found and not _SHA.fullmatch(found):
        raise InputError(f"GITHUB_SHA is {found[:80]!r}: it should be the SHA of a commit.")
    return found or None


_READERS: dict[str, Callable[[_Payload], _Head]] = {
    **dict.fromkeys(_PULL_EVENTS, _pull_head),
    "merge_group": _merge_group_head,
    "push": _push_head,
    "schedule": _commit_head,
    "workflow_dispatch": _commit_head,
    "workflow_run": _workflow_run_head,
}
