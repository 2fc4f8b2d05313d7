"""Git commands about a repository's files and commits; no hook and no project code runs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_LOCATING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables that git sets for its hooks; the folder alone says which repository is meant."""
_OPTIONS = (
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
)
TIMEOUT_S = 60.0


def run_git(
    folder: Path,
    environ: Mapping[str, str],
    timeout_s: float,
    *words: str,
    given: bytes | None = None,
) -> bytes:
    """Return the output of a git command that reads `given` from standard input.

    Raises OSError or subprocess.SubprocessError if git is missing, fails or is too slow.
    """
    return subprocess.run(
        ["git", *_OPTIONS, *words],  # noqa: S607 - found on the search path
        cwd=folder,
        env={name: value for name, value in environ.items() if name not in _LOCATING},
        input=given or b"",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=timeout_s,
    ).stdout


def split_paths(output: bytes) -> list[str]:
    """Return the fields of git's output with `-z`."""
    return [field.decode("utf-8", "surrogateescape") for field in output.split(b"\0") if field]


@dataclass(frozen=True, slots=True)
class GitRepository:
    """A repository with a working tree."""

    top: Path
    environ: Mapping[str, str]

    def run(self, *words: str) -> bytes:
        """Return the output of a git command in the top folder; raises as `run_git`."""
        return run_git(self.top, self.environ, TIMEOUT_S, *words)

    def run_with_input(self, given: bytes, *words: str) -> bytes:
        """Return the output of a git command that reads `given`; raises as `run_git`."""
        return run_git(self.top, self.environ, TIMEOUT_S, *words, given=given)

    def find_commit(self, name: str = "HEAD") -> str | None:
        """Return the full id of a commit; None if git does not have it here."""
        try:
            found = self.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        except (OSError, subprocess.SubprocessError):
            return None
        return found.decode("ascii", "replace").strip() or None

    def list_tracked(self) -> frozenset[str]:
        """Return the paths of all files in the index."""
        return frozenset(split_paths(self.run("ls-files", "-z", "--cached")))

    def list_new(self) -> tuple[str, ...]:
        """Return the files of the working tree that git neither tracks nor ignores."""
        words = ("ls-files", "-z", "--others", "--exclude-standard", "--exclude=__pycache__")
        return tuple(split_paths(self.run(*words)))

    def list_modified(self) -> tuple[str, ...]:
        """Return the tracked files that differ from HEAD."""
        words = ("diff", "--name-only", "-z", "--no-ext-diff", "--no-renames", "HEAD")
        return tuple(split_paths(self.run(*words)))


def find_repository(folder: Path, environ: Mapping[str, str]) -> GitRepository | None:
    """Return the repository that contains a folder; None if there is none, or no git."""
    try:
        output = run_git(folder, environ, TIMEOUT_S, "rev-parse", "--show-toplevel")
    except (OSError, subprocess.SubprocessError):
        return None
    top = output.removesuffix(b"\n").decode("utf-8", "surrogateescape")
    return GitRepository(Path(top).resolve(), environ)


CODE_SUFFIXES = (
    *(".py", ".pyi", ".pth", ".so", ".pyd", ".dll", ".dylib", ".egg-link"),
    *(".env", ".ini", ".toml", ".cfg"),
)
"""Endings of files that can change what runs without being read by name: see
docs/affected.md."""


def is_code_or_configuration(path: str) -> bool:
    """Return whether a file of this name can take effect without being a known dependency."""
    name = path.rpartition("/")[2]
    return name.endswith(CODE_SUFFIXES) or name.startswith(".env")


def has_code(paths: Iterable[str]) -> bool:
    """Return whether any of the paths is code or configuration."""
    return any(map(is_code_or_configuration, paths))
