"""A baseline in the history: `git:REF:PATH`, read by git itself; nothing is checked out.

git is started without a shell, with a bare environment, without network (a partial clone
would fetch), and asked by the commit's hash, so that neither ref nor path can be an option.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ci_agent_eval.contract.results import RESULTS_NAME
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.baselines.request import (
    BaselineRequest,
    FoundBaseline,
    build_missing_baseline,
    build_unreadable_baseline,
)
from ci_agent_eval.results.baselines.runs import SHORT_SHA, RunFiles, load_baseline_runs

PREFIX = "git:"
MAX_FILE_BYTES = 512 * 1024 * 1024
"""Bytes of a file in the history that is read."""
_TIMEOUT_S = 60

# What git allows in a ref and in revisions such as `main~3`, and nothing else.
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./~^@{}+-]*")
_OPTIONS = ("-c", "safe.directory=*", "-c", "protocol.allow=never", "--no-replace-objects")


@dataclass(frozen=True, slots=True)
class GitLocation:
    """A file at a commit."""

    ref: str
    path: str


def parse_git_location(text: str) -> GitLocation:
    """Read `git:REF:PATH`. Raises InputError for what cannot be one."""
    ref, _, path = text.removeprefix(PREFIX).partition(":")
    if not _REF.fullmatch(ref) or not path or "\0" in path or path.startswith("/"):
        raise InputError(
            f"baseline {text!r}: must be git:REF:PATH, such as "
            "git:origin/main:evals/results.json (a branch, tag or commit, and a path from "
            "the repository's root)"
        )
    return GitLocation(ref, path)


def load_from_git(wanted: BaselineRequest) -> FoundBaseline:
    """Read a baseline from a file, or a report folder, at a ref of the repository."""
    place = parse_git_location(wanted.name)
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{place.ref}^{{commit}}")
    try:
        commit = _run_git(wanted, asked).decode("ascii").strip()
        return _load_at_commit(commit, place, wanted)
    except _GitError as error:
        return build_unreadable_baseline(wanted.name, str(error))


def _load_at_commit(commit: str, place: GitLocation, wanted: BaselineRequest) -> FoundBaseline:
    if not commit:
        fetch = "fetch it before (actions/checkout: fetch-depth: 0)"
        return build_unreadable_baseline(
            wanted.name, f"git knows no commit {place.ref} here; {fetch}"
        )
    label = f"{place.ref}@{commit[:SHORT_SHA]}"
    name = f"{commit}:{place.path.rstrip('/')}"
    kind = _run_git(wanted, ("cat-file", "-t", name)).decode("ascii").strip()
    if kind == "tree":
        name = f"{name}/{RESULTS_NAME}"
        kind = _run_git(wanted, ("cat-file", "-t", name)).decode("ascii").strip()
    if not kind:
        return build_missing_baseline(f"{place.path} is not there at {label}")
    if kind != "blob":
        return build_unreadable_baseline(
            wanted.name, f"at {label} it is a {kind} of git, not a file"
        )
    size = int(_run_git(wanted, ("cat-file", "-s", name)) or b"0")
    if size > MAX_FILE_BYTES:
        limit = f"{MAX_FILE_BYTES // 2**20:,} MiB at most are read"
        return build_unreadable_baseline(
            wanted.name, f"at {label} it has {size // 2**20:,} MiB, {limit}"
        )
    return _load_blob(_run_git(wanted, ("cat-file", "blob", name)), label, wanted)


def _load_blob(data: bytes, label: str, wanted: BaselineRequest) -> FoundBaseline:
    lines = wanted.name.endswith(".jsonl")
    with tempfile.TemporaryDirectory(prefix="agent-eval-") as folder:
        file = Path(folder) / ("episodes.jsonl" if lines else RESULTS_NAME)
        file.write_bytes(data)
        runs = [RunFiles((file.name,), label)]
        found = load_baseline_runs(
            label, runs, root=Path(folder), redact=wanted.redact, suite=wanted.suite
        )
    # The file's name is not that of this folder.
    told = tuple(replace(finding, where=wanted.name) for finding in found.findings)
    return replace(found, findings=told)


class _GitError(Exception):
    """Git cannot be asked; the message says why, and what to do."""


def _run_git(wanted: BaselineRequest, arguments: Sequence[str]) -> bytes:
    """Return what git prints; nothing where it does not know what is asked for."""
    environ = {
        "PATH": wanted.search_path,
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    try:
        done = subprocess.run(
            ["git", *_OPTIONS, *arguments],  # noqa: S607 - wherever this machine has it
            cwd=wanted.root,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise _GitError("git is not installed here; install it, or name a file") from None
    except subprocess.TimeoutExpired:
        raise _GitError(f"git did not answer in {_TIMEOUT_S} s; name a file") from None
    if done.returncode and b"not a git repository" in done.stderr:
        raise _GitError("this folder is in no git repository; check the code out before")
    return b"" if done.returncode else done.stdout
