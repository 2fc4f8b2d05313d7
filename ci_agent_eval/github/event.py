"""What started the workflow run, out of GitHub's event payload and environment values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.errors import InputError

DEPENDABOT = "dependabot[bot]"
"""Login of the account whose pull requests get a read-only token, as a fork's do."""

_SHA = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?", re.ASCII)
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_URL = re.compile(r"https?://[^\s/]+(/\S*)?", re.ASCII)
_RUN_ID = re.compile(r"[0-9]{1,19}", re.ASCII)
_QUEUED = re.compile(r"gh-readonly-queue/(.+)/pr-[0-9]+-[0-9a-f]+", re.ASCII)
_PULL_EVENTS = ("pull_request", "pull_request_target")


@dataclass(frozen=True, slots=True)
class SourceRun:
    """The workflow run that a `workflow_run` event is about, as GitHub describes it."""

    id: int
    workflow_id: int
    event: str
    """What started that run, such as `pull_request`."""
    conclusion: str | None
    """None: it has not ended."""
    head_branch: str
    """Chosen by whoever made it: a fork may call its branch `main`."""
    head_repository: str | None
    """`owner/name` of where the commit comes from; None for a fork that was deleted."""
    attempt: int | None = None
    """Which attempt at the run has ended, 1-based; None where GitHub does not say."""


@dataclass(frozen=True, slots=True)
class Event:
    """Where to publish: one commit of one repository, and its pull requests if known."""

    name: str
    """GitHub's name of the event, such as `pull_request`."""
    repository: str
    """`owner/name` of the repository the workflow runs in."""
    head_sha: str
    """The commit the results are about: a pull request's head, never its merge commit."""
    pulls: tuple[int, ...] | None
    """Numbers of the pull requests; None means: look them up by commit."""
    is_fork: bool = False
    """Whether the commit comes from another repository."""
    actor: str = ""
    """Login of whoever started the run."""
    run_url: str | None = None
    """Page of the workflow run; None outside of one."""
    run_id: int | None = None
    """The workflow run; None outside of one."""
    base_branch: str | None = None
    """Branch whose runs the results are compared with; None means: look it up."""
    source: SourceRun | None = None
    """None but for a `workflow_run` event."""
    server_url: str = "https://github.com"
    """Address of the web pages, without a final slash."""
    api_url: str = "https://api.github.com"
    """Address of the API, without a final slash."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The part of an event that depends on its kind."""

    sha: str
    pulls: tuple[int, ...] | None
    is_fork: bool = False
    base_branch: str | None = None
    source: SourceRun | None = None


@dataclass(frozen=True, slots=True)
class _Payload:
    """The event's payload, with errors that name the file and the key."""

    data: Mapping[str, Any]
    file: str
    environ: Mapping[str, str]

    def value(self, path: str) -> Any:
        """Return what stands at a dotted path; None where anything on the way is missing."""
        found: Any = self.data
        for key in path.split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def text(self, path: str) -> str | None:
        """Return the text at a dotted path; None for anything else."""
        found = self.value(path)
        return found if isinstance(found, str) and found else None

    def branch(self, path: str) -> str | None:
        """Return the branch at a dotted path, by its name or its ref; None for a tag."""
        found = self.text(path)
        if found is None or found.startswith("refs/tags/"):
            return None
        return found.removeprefix("refs/heads/")

    def sha(self, path: str) -> str:
        """Return the commit at a dotted path; InputError when there is none."""
        found = self.value(path)
        if not isinstance(found, str) or not _SHA.fullmatch(found):
            raise self.wrong_value(path, "the SHA of a commit", found)
        return found

    def number(self, path: str) -> int:
        """Return the positive number at a dotted path; InputError when there is none."""
        return self.as_number(path, self.value(path))

    def as_number(self, path: str, found: object) -> int:
        """Return `found` as a positive number; InputError that names `path` otherwise."""
        if not isinstance(found, int) or isinstance(found, bool) or found < 1:
            raise self.wrong_value(path, "a positive number", found)
        return found

    def wrong_value(self, path: str, wanted: str, found: object) -> InputError:
        """Return the error for a key that does not hold what it should."""
        shown = "is missing" if found is None else f"is {str(found)[:80]!r}"
        return InputError(
            f"{self.file}: {path} {shown}, not {wanted}. "
            "Pass GitHub's own event file, unchanged, as GITHUB_EVENT_PATH."
        )


def parse_event(
    name: str, payload: object, environ: Mapping[str, str], *, file: str = "GITHUB_EVENT_PATH"
) -> Event:
    """Read an event; `environ` holds the GITHUB_* values, `file` is named in errors.

    Raises InputError for a payload or value that is not what GitHub writes.
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
        base_branch=head.base_branch,
        source=head.source,
        server_url=server_url,
        api_url=_parse_url(environ, "GITHUB_API_URL", "https://api.github.com"),
    )


def _parse_repository(source: _Payload) -> str:
    given = source.environ.get("GITHUB_REPOSITORY", "")
    found = given or source.value("repository.full_name")
    if not isinstance(found, str) or not _REPOSITORY.fullmatch(found):
        if given:
            raise InputError(f"GITHUB_REPOSITORY is {given[:80]!r}: write it as owner/name.")
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
    """Tell whether the repository at `head` is another one; a deleted fork has none."""
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
    # `after` is the tag itself, not its commit, when an annotated tag was pushed.
    sha = _environ_sha(source) or source.sha("after")
    base = source.branch("ref") or _default_branch(source)
    return _Head(sha=sha, pulls=None, base_branch=base)


def _workflow_run_head(source: _Payload) -> _Head:
    sha = source.sha("workflow_run.head_sha")
    listed = source.value("workflow_run.pull_requests")
    if not isinstance(listed, list | tuple):
        raise source.wrong_value("workflow_run.pull_requests", "a list", listed)
    # GitHub lists none for a fork's pull request; the API finds those by their branch.
    return _Head(
        sha=sha,
        pulls=tuple(_listed_pulls(source, listed)) or None,
        is_fork=_is_from_fork(source, "workflow_run.head_repository"),
        base_branch=_find_base_branch(source, listed),
        source=_source_run(source),
    )


def _source_run(source: _Payload) -> SourceRun | None:
    """Read what is needed to take over that run's results; None where it is not all there."""
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
    """Return the branch that a run's results are compared with; None for a fork's."""
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
        # In a fork GitHub lists pull requests to the upstream repository, with its numbers.
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
    """Read an event this program does not know: by its pull request, or by its commit."""
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
