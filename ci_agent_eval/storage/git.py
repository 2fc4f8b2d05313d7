"""Calls of git: without a shell, without hooks, and with an environment of our own."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

_OPTIONS = ("-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=")


class GitError(Exception):
    """Git could not be run; the message has the reason."""


def run_git(
    folder: Path,
    arguments: Sequence[str],
    *,
    search_path: str,
    environ: Mapping[str, str] = MappingProxyType({}),
    timeout_s: float = 600,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, found on `search_path`, and return its answer. Raises GitError."""
    own = {"PATH": search_path, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}
    try:
        return subprocess.run(
            ["git", *_OPTIONS, *arguments],  # noqa: S607 - found on the search path
            cwd=folder,
            env={**own, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError:
        raise GitError("git is not installed here") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git did not answer in {timeout_s:g} s") from None


def describe_failure(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the last line that a failed call printed."""
    return (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["git said nothing"])[-1]
