"""Changes and Python files of a git working tree, as git reports them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_agent_eval.steering.affected.deadline import Deadline

_LOCATING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables that git sets for its hooks; the folder alone says which repository is meant."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that differs from the compared commit."""

    path: str
    """Relative to the tree, with `/`."""
    old_blob: str | None = None
    """The blob's id in the compared commit; None for a new file."""


@dataclass(frozen=True, slots=True)
class GitWorkingTree:
    """A git working tree; every command of git ends by the deadline."""

    top: Path
    environ: Mapping[str, str]
    deadline: Deadline

    def list_changes(self) -> tuple[ChangedFile, ...]:
        """Return the files that differ from HEAD, or, if none does, from the default branch.

        Raises OSError or subprocess.SubprocessError if git fails or is too slow.
        """
        changes = (*self._list_differences("HEAD"), *self._list_new_files())
        if changes:
            return changes
        try:
            base = self.run_git("merge-base", "HEAD", "origin/HEAD").decode().strip()
        except subprocess.CalledProcessError:  # there is no remote, or it has no default branch
            return ()
        return tuple(self._list_differences(base))

    def list_python_files(self) -> tuple[str, ...]:
        """Return the paths of all Python files that git does not ignore. Raises as above."""
        output = self.run_git(
            "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.py"
        )
        return tuple(sorted(set(_split_paths(output))))

    def run_git(self, *words: str) -> bytes:
        """Return the output of a git command in the repository's top folder. Raises as above."""
        return _run_git(self.top, self.environ, self.deadline, *words)

    def _list_differences(self, commit: str) -> Iterator[ChangedFile]:
        output = self.run_git(
            "diff", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", commit
        )
        fields = _split_paths(output)
        for entry, path in zip(fields[::2], fields[1::2], strict=True):
            _, _, old_blob, _, _ = entry.split(" ")
            yield ChangedFile(path, old_blob if old_blob.strip("0") else None)

    def _list_new_files(self) -> Iterator[ChangedFile]:
        output = self.run_git("ls-files", "-z", "--others", "--exclude-standard")
        yield from map(ChangedFile, _split_paths(output))


def find_working_tree(
    folder: Path, environ: Mapping[str, str], deadline: Deadline
) -> GitWorkingTree:
    """Return the repository that contains a folder.

    Raises OSError or subprocess.SubprocessError if there is none.
    """
    top = _run_git(folder, environ, deadline, "rev-parse", "--show-toplevel")
    path = Path(top.removesuffix(b"\n").decode("utf-8", "surrogateescape"))
    return GitWorkingTree(path, environ, deadline)


def _run_git(folder: Path, environ: Mapping[str, str], deadline: Deadline, *words: str) -> bytes:
    # No lock and no monitor: the agent may use the repository at the same time.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *words]
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env={name: value for name, value in environ.items() if name not in _LOCATING},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=deadline.require_time(),
        ).stdout
    except subprocess.TimeoutExpired:
        raise TimeoutError("git did not answer within the time limit") from None


def _split_paths(output: bytes) -> list[str]:
    return [field.decode("utf-8", "surrogateescape") for field in output.split(b"\0") if field]
