"""Changes and Python files of a git working tree, as git reports them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha1, sha256
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
        changes = (*self._list_differences("HEAD"), *map(ChangedFile, self._list_new_paths()))
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

    def compute_digest(self) -> str:
        """Return a hash of the names and contents of all tracked and new files.

        Staging and committing do not change it. Raises as above.
        """
        blobs = dict(self._list_index())
        changed = _split_paths(self.run_git("diff", "--name-only", "-z", "--no-ext-diff"))
        for path in (*changed, *self._list_new_paths()):
            self.deadline.require_time()
            blobs[path] = _compute_blob(self.top / path)
        listing = "\0".join(f"{path}\0{blob}" for path, blob in sorted(blobs.items()) if blob)
        return sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()

    def _list_index(self) -> Iterator[tuple[str, str]]:
        for entry in _split_paths(self.run_git("ls-files", "--stage", "-z")):
            status, _, path = entry.partition("\t")
            yield path, status.split(" ")[1]

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

    def _list_new_paths(self) -> list[str]:
        return _split_paths(
            self.run_git(
                "ls-files", "-z", "--others", "--exclude-standard", "--exclude=__pycache__"
            )
        )


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


def _compute_blob(path: Path) -> str:
    """Return git's id of a file's content; empty if there is no such file."""
    if path.is_symlink():
        content = os.fsencode(path.readlink())
    elif path.is_file():
        content = path.read_bytes()
    else:
        return ""
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _split_paths(output: bytes) -> list[str]:
    return [field.decode("utf-8", "surrogateescape") for field in output.split(b"\0") if field]
