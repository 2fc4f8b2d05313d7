"""The base of a pull request in a temporary worktree, with its own environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.git import GitError, describe_failure, run_git
from ci_agent_eval.storage.run_folder import ReportFolder

_PREFIX = "agent-eval-base-"
_TREE = "tree"
_REMEDY = "fetch the history (actions/checkout: fetch-depth: 0), or name another confirm-base"


@dataclass(frozen=True, slots=True)
class BaseCheckout:
    """The base's files and environment."""

    commit: str
    folder: Path
    """Temporary folder for everything about the base."""
    root: Path
    """The base's copy of the folder that the suite runs in."""
    python: str


@dataclass(frozen=True, slots=True)
class Repository:
    """The git repository of a folder."""

    root: Path
    search_path: str = os.defpath

    def find_merge_base(self, ref: str) -> str | None:
        """Return the merge base of HEAD and a branch or commit; None: it is HEAD itself.

        Raises InputError if it is not there.
        """
        head = self._parse_commit("HEAD")
        commit = self._parse_commit(ref)
        base = self._ask("merge-base", head, commit)
        if not base:
            raise InputError(f"confirm: git finds no merge base of HEAD and {ref} here; {_REMEDY}")
        return None if base == head else base

    def _parse_commit(self, ref: str) -> str:
        name = f"{ref}^{{commit}}"
        done = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        if done.returncode and b"not a git repository" in done.stderr:
            raise InputError(
                "confirm: this folder is in no git repository; check the code out before"
            )
        if done.returncode:
            raise InputError(f"confirm: git knows no commit {ref} here; {_REMEDY}")
        return os.fsdecode(done.stdout).strip()

    @contextmanager
    def check_out(self, commit: str, python: str, *, copy: bool) -> Iterator[BaseCheckout]:
        """Check a commit out in a temporary worktree, and remove it in the end.

        `copy` makes a copy of the interpreter's virtual environment as it is now, for the base
        to install into. Raises InputError.
        """
        self._remove_abandoned()
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        tree = folder / _TREE
        with ReportFolder(folder).hold_lock():
            try:
                self._add_worktree(tree, commit)
                prefix = self._ask("rev-parse", "--show-prefix")
                base_python = copy_environment(python, folder / "environment") if copy else python
                yield BaseCheckout(commit, folder, tree / prefix, base_python)
            finally:
                self._remove(folder)

    def _add_worktree(self, tree: Path, commit: str) -> None:
        done = self._run("worktree", "add", "--quiet", "--detach", str(tree), commit)
        if done.returncode:
            last = describe_failure(done)
            raise InputError(f"confirm: the base cannot be checked out: {last}; {_REMEDY}")

    def _remove_abandoned(self) -> None:
        """Remove the worktrees of runs that were killed."""
        for line in self._ask("worktree", "list", "--porcelain").splitlines():
            tree = Path(line.removeprefix("worktree "))
            folder = tree.parent
            if (
                line == f"worktree {tree}"
                and tree.name == _TREE
                and folder.name.startswith(_PREFIX)
            ):
                self._remove_unlocked(folder)
        self._run("worktree", "prune")

    def _remove_unlocked(self, folder: Path) -> None:
        """Remove a folder, unless the run that made it still works there."""
        try:
            with ReportFolder(folder).hold_lock():
                self._remove(folder)
        except (InputError, FileNotFoundError):
            return

    def _remove(self, folder: Path) -> None:
        self._run("worktree", "remove", "--force", "--force", str(folder / _TREE))
        shutil.rmtree(folder, ignore_errors=True)

    def _ask(self, *arguments: str) -> str:
        """Return what a command prints; empty if it fails."""
        done = self._run(*arguments)
        return "" if done.returncode else os.fsdecode(done.stdout).strip()

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return run_git(self.root, arguments, search_path=self.search_path)
        except GitError as error:
            raise InputError(f"confirm: {error}; confirming needs git") from None


def copy_environment(python: str, target: Path) -> str:
    """Copy the virtual environment of an interpreter; return the copy's interpreter.

    The programs in it start with the path of their interpreter, which is replaced. Raises
    InputError if the interpreter is not in a virtual environment.
    """
    source = Path(python).parent.parent
    if not (source / "pyvenv.cfg").is_file():
        raise InputError(
            f"confirm: {python} is not in a virtual environment; confirm needs one to copy: choose "
            "it with --python"
        )
    try:
        shutil.copytree(source, target, symlinks=True)
        for program in (target / "bin").iterdir():
            if program.is_file() and not program.is_symlink():
                _replace_interpreter(program, os.fsencode(source), os.fsencode(target))
    except (OSError, shutil.Error) as error:
        raise InputError(f"confirm: {source} cannot be copied: {str(error)[:200]}") from None
    return str(target / "bin" / Path(python).name)


def _replace_interpreter(program: Path, source: bytes, target: bytes) -> None:
    data = program.read_bytes()
    if data.startswith(b"#!"):
        # pip writes long paths, and those with spaces, into the second line.
        program.write_bytes(data.replace(source + b"/bin/", target + b"/bin/", 1))


def find_base_ref(configured: str | None, environ: Mapping[str, str], *baseline: str | None) -> str:
    """Return the branch or commit that the base is on: the first that is known.

    `baseline` are the baseline's ref and commit. Raises InputError if nothing is known.
    """
    branch = environ.get("GITHUB_BASE_REF")
    names = (configured, f"origin/{branch}" if branch else None, *baseline)
    for name in names:
        if name:
            return name
    raise InputError(
        "confirm: neither this event nor the baseline names the base branch; set confirm-base, "
        "such as origin/main"
    )
