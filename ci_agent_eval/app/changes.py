"""The files that a change touches, compared with git: since the merge base, and untracked ones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_agent_eval.contract.affected import CHANGE_EVENTS, ChangePlan
from ci_agent_eval.storage.git import GitError, describe_failure, run_git

_DEFAULTS = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


class _NoPlanError(Exception):
    """Why the changes are not known, so that everything runs."""


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """What `--affected` compares."""

    root: Path
    """The folder that the suite runs in."""
    environ: Mapping[str, str]
    started_by: str | None = None
    """Event that started the workflow; None: there is none."""
    base: str | None = None
    """Branch or commit to compare with; None: the pull request's base, else the default branch."""
    ignore: tuple[str, ...] = ()


def plan_changes(request: ChangeRequest) -> ChangePlan | str:
    """Return the changed files, or the reason why everything must run."""
    try:
        return _find_changes(request)
    except _NoPlanError as error:
        return str(error)


def _find_changes(request: ChangeRequest) -> ChangePlan:
    if request.started_by not in CHANGE_EVENTS:
        raise _NoPlanError(f"the event {request.started_by} is not about a pull request")
    git = _Git(request.root, request.environ.get("PATH", os.defpath))
    top = git.ask("rev-parse", "--show-toplevel")
    if top is None:
        raise _NoPlanError("this folder is in no git repository")
    git = _Git(Path(top), git.search_path)
    ref = git.find_base(request.base, request.environ.get("GITHUB_BASE_REF"))
    base = git.find_merge_base(ref)
    git.refuse_base_branch(ref, base)
    diff = ("diff", "--no-renames", "--name-only", "-z", "--no-ext-diff", "--no-relative")
    changed = {*git.list_paths(*diff, "--ignore-submodules=none", base)}
    for path in git.list_paths("ls-files", "--others", "--exclude-standard", "-z"):
        if "__pycache__" not in path.split("/"):
            changed.add(path)
    return ChangePlan(top=top, changed=tuple(sorted(changed)), ignore=request.ignore)


@dataclass(frozen=True, slots=True)
class _Git:
    folder: Path
    search_path: str

    def find_base(self, named: str | None, branch: str | None) -> str:
        """Return the first branch or commit to compare with that is there."""
        names = (named,) if named else (f"origin/{branch}",) if branch else _DEFAULTS
        for name in names:
            if self._find_commit(name) is not None:
                return name
        raise _NoPlanError(
            f"git knows no commit {names[0]} here; fetch it (actions/checkout: fetch-depth: 0), "
            "or name another --base"
        )

    def find_merge_base(self, ref: str) -> str:
        """Return the merge base of HEAD and a branch or commit."""
        found = (
            self.ask("merge-base", "--all", "HEAD", self._find_commit(ref) or "") or ""
        ).split()
        if len(found) != 1:
            raise _NoPlanError(
                f"git finds {'several merge bases' if found else 'no merge base'} of HEAD and {ref}"
                " here; fetch the history (actions/checkout: fetch-depth: 0)"
            )
        return found[0]

    def refuse_base_branch(self, ref: str, base: str) -> None:
        """Raise _NoPlanError on the base branch, which nothing may be left out of."""
        branch = self.ask("symbolic-ref", "--quiet", "--short", "HEAD")
        default = self.ask("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
        bases = {name.removeprefix("origin/") for name in (ref, default or ref)}
        if branch in bases or (branch is None and base == self._find_commit("HEAD")):
            raise _NoPlanError(f"HEAD is on the base branch ({ref})")

    def _find_commit(self, ref: str) -> str | None:
        name = f"{ref}^{{commit}}"
        return self.ask("rev-parse", "--verify", "--quiet", "--end-of-options", name)

    def list_paths(self, *arguments: str) -> Iterator[str]:
        """Yield the paths that a command prints, each ended by a zero byte."""
        done = self._run(*arguments)
        if done.returncode:
            raise _NoPlanError(f"git cannot list the changed files: {describe_failure(done)}")
        yield from filter(None, done.stdout.decode("utf-8", "replace").split("\0"))

    def ask(self, *arguments: str) -> str | None:
        """Return what a command prints; None: it failed, or printed nothing."""
        done = self._run(*arguments)
        return None if done.returncode else done.stdout.decode("utf-8", "replace").strip() or None

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return run_git(self.folder, arguments, search_path=self.search_path)
        except GitError as error:
            raise _NoPlanError(str(error)) from None
