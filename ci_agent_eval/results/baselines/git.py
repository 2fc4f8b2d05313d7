"""Load a baseline from git history: `git:REF:PATH`. Nothing is checked out.

git is started without a shell, with a minimal environment and without network (a partial clone
would fetch). Objects are addressed by the commit's hash, so neither ref nor path can be an option.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ci_agent_eval.contract.results import RESULTS_NAME
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.baselines.request import (
    BaselineRequest,
    FoundBaseline,
    build_missing_baseline,
    build_unreadable_baseline,
)
from ci_agent_eval.results.baselines.runs import SHORT_SHA, RunFiles, load_baseline_runs
from ci_agent_eval.storage.git import GitError, run_git

PREFIX = "git:"
MAX_FILE_BYTES = 512 * 1024 * 1024
"""Maximum size of a file that is read."""

# Only characters that git allows in a ref and in revisions such as `main~3`.
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./~^@{}+-]*")
_OPTIONS = ("-c", "protocol.allow=never", "--no-replace-objects")
_ENVIRON = {"GIT_NO_LAZY_FETCH": "1", "GIT_CONFIG_NOSYSTEM": "1"}


class GitLocation(NamedTuple):
    """A file at a commit."""

    ref: str
    path: str


def parse_git_location(text: str) -> GitLocation:
    """Parse `git:REF:PATH`. Raises InputError if it is malformed."""
    ref, _, path = text.removeprefix(PREFIX).partition(":")
    if not _REF.fullmatch(ref) or not path or "\0" in path or path.startswith("/"):
        raise InputError(
            f"baseline {text!r}: must be git:REF:PATH, such as "
            "git:origin/main:evals/results.json (a branch, tag or commit, and a path from "
            "the repository's root)"
        )
    return GitLocation(ref, path)


def load_from_git(request: BaselineRequest) -> FoundBaseline:
    """Load a baseline from a file, or a report folder, at a ref of the repository."""
    place = parse_git_location(request.name)
    arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{place.ref}^{{commit}}")
    try:
        commit = _run_git(request, arguments).decode("ascii").strip()
        return _load_at_commit(commit, place, request)
    except GitError as error:
        return build_unreadable_baseline(request.name, str(error))


def _load_at_commit(commit: str, place: GitLocation, request: BaselineRequest) -> FoundBaseline:
    if not commit:
        fetch = "fetch it before (actions/checkout: fetch-depth: 0)"
        return build_unreadable_baseline(
            request.name, f"git knows no commit {place.ref} here; {fetch}"
        )
    label = f"{place.ref}@{commit[:SHORT_SHA]}"
    name = f"{commit}:{place.path.rstrip('/')}"
    kind = _run_git(request, ("cat-file", "-t", name)).decode("ascii").strip()
    if kind == "tree":
        name = f"{name}/{RESULTS_NAME}"
        kind = _run_git(request, ("cat-file", "-t", name)).decode("ascii").strip()
    if not kind:
        return build_missing_baseline(f"{place.path} is not there at {label}")
    if kind != "blob":
        return build_unreadable_baseline(
            request.name, f"at {label} it is a {kind} of git, not a file"
        )
    size = int(_run_git(request, ("cat-file", "-s", name)) or b"0")
    if size > MAX_FILE_BYTES:
        limit = f"{MAX_FILE_BYTES // 2**20:,} MiB at most are read"
        return build_unreadable_baseline(
            request.name, f"at {label} it has {size // 2**20:,} MiB, {limit}"
        )
    return _load_blob(_run_git(request, ("cat-file", "blob", name)), label, request)


def _load_blob(results: bytes, label: str, request: BaselineRequest) -> FoundBaseline:
    lines = request.name.endswith(".jsonl")
    with tempfile.TemporaryDirectory(prefix="agent-eval-") as folder:
        file = Path(folder) / ("episodes.jsonl" if lines else RESULTS_NAME)
        file.write_bytes(results)
        runs = [RunFiles((file.name,), label)]
        found = load_baseline_runs(label, runs, request, root=Path(folder))
    # Findings must name the file in git, not the temporary one.
    findings = tuple(replace(finding, where=request.name) for finding in found.findings)
    return found._replace(findings=findings)


def _run_git(request: BaselineRequest, arguments: Sequence[str]) -> bytes:
    """Return git's output; empty if the requested object does not exist. Raises GitError."""
    try:
        done = run_git(
            request.root,
            (*_OPTIONS, *arguments),
            search_path=request.search_path,
            environ=_ENVIRON,
            timeout_s=60,
        )
    except GitError as error:
        raise GitError(f"{error}; name a file") from None
    if done.returncode and b"not a git repository" in done.stderr:
        raise GitError("this folder is in no git repository; check the code out before")
    return b"" if done.returncode else done.stdout
