"""Advice for a held full run: one command that runs the tests of the changed files.

These are the changed test files and those that import a changed file directly, as `git grep` finds
them. Nothing is executed.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath

from ci_agent_eval.steering.policy.model import DetectionResult

TIME_LIMIT_S = 2.0
"""Seconds that the search may take; afterwards the message has no command."""

MAX_TEST_FILES = 20
"""Maximum number of test files in the command; more are no selection worth naming."""

_TEST_PATTERNS = ("test_*.py", "*_test.py")
"""pytest's default `python_files`."""
_MAX_PATH_CHARACTERS = 160
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+-]+")

_RUNNERS = frozenset({"uv", "poetry", "pipenv", "pdm", "hatch", "rye"})
"""Programs whose `run` starts pytest in the project's environment."""
_PYTEST = frozenset({"pytest", "py.test"})
_LOCATING = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"})


def find_advice(folder: Path, environ: Mapping[str, str], run: DetectionResult) -> str | None:
    """Return a command instead of a full run that starts in `folder`; None if in doubt.

    Never raises, and takes at most about TIME_LIMIT_S.
    """
    try:
        folder = folder.resolve()
        start = run.intents[0].folder if run.intents else None
        return _find_command(folder, (folder / (start or ".")).resolve(), environ, run.command)
    except Exception:  # noqa: BLE001 - without advice, the full run is still held
        return None


def _find_command(
    folder: Path, base: Path, environ: Mapping[str, str], held: str | None
) -> str | None:
    """Return the command; it changes to `base` unless `folder` is in there already."""
    prefix = _get_pytest_prefix(held)
    if prefix is None:
        return None
    # The folder alone says which repository is meant, and git's hooks set these.
    environ = {k: value for k, value in environ.items() if k not in _LOCATING}
    run_git = partial(_run_git, environ, time.monotonic() + TIME_LIMIT_S)
    top = Path(run_git(base, "rev-parse", "--show-toplevel").removesuffix("\n"))
    start = folder if folder.is_relative_to(base) else base
    tests = _find_tests(top, partial(run_git, top))
    paths = [Path(os.path.relpath(top / path, start)).as_posix() for path in tests]
    command = _build_command(prefix, paths)
    if command is None or start == folder:
        return command
    target = str(base.relative_to(folder) if base.is_relative_to(folder) else base)
    return f"{shlex.join(['cd', target])} && {command}" if _is_plain_path(target) else None


def _run_git(environ: Mapping[str, str], end: float, folder: Path, *words: str) -> str:
    """Return the output of git before a time of the monotonic clock.

    Raises OSError or subprocess.SubprocessError if git fails or is too slow.
    """
    # No lock and no monitor: the agent may use the repository at the same time.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *words]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=max(0.0, end - time.monotonic()),
    )
    if done.returncode not in {0, 1}:  # 1: nothing was found
        raise subprocess.SubprocessError(f"git {words[0]} failed")
    return os.fsdecode(done.stdout)


def _find_tests(top: Path, run_git: Callable[..., str]) -> list[str]:
    """Return the test files that changed, or import a changed file.

    A file changed if it differs from HEAD, or, if none does, from the default branch.
    """
    difference = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff")
    changed = _split_paths(
        run_git(*difference, "HEAD", "--", "*.py"),
        run_git("ls-files", "-z", "--others", "--exclude-standard", "--", "*.py"),
    )
    if not changed:
        fork = run_git("merge-base", "HEAD", "origin/HEAD").strip()
        changed = _split_paths(run_git(*difference, fork, "--", "*.py"))
    tests = {path for path in changed if _is_test(path) and (top / path).is_file()}
    patterns = [f"-e{pattern}" for path in changed for pattern in _build_import_patterns(path)]
    if patterns:
        files = [f":(glob)**/{pattern}" for pattern in _TEST_PATTERNS]
        command = ("grep", "-lzE", "--no-color", "--untracked", *patterns, "--", *files)
        tests.update(_split_paths(run_git(*command)))
    return sorted(tests)


def _split_paths(*outputs: str) -> list[str]:
    return [path for output in outputs for path in output.split("\0") if path]


def _is_test(path: str) -> bool:
    name = PurePosixPath(path).name
    return any(fnmatchcase(name, pattern) for pattern in _TEST_PATTERNS)


def _build_import_patterns(path: str) -> Iterator[str]:
    """Yield extended regular expressions of lines that import a Python file.

    Its name and the name of its folder identify it, or its name alone. An import of several lines
    from the folder's package counts: a test too many is better than one too few.
    """
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    if not all(map(str.isidentifier, parts[-2:])):
        return
    last, parent = parts[-1], "".join(parts[-2:-1])
    package = f"([[:alnum:]_.]*[.])?{parent}"
    module = f"({package}[.])?{last}" if parent else last
    start = "^[[:space:]]*from[[:space:]]+"
    named = f"[[:space:]]+import[[:space:](](.*[^[:alnum:]_.])?{last}([^[:alnum:]_.]|$)"
    yield f"{start}({module}|[.]+([[:alnum:]_]+[.])*{last})[[:space:]]+import"
    yield f"^[[:space:]]*import[[:space:]](.*[,[:space:]])?{module}([^[:alnum:]_.]|$)"
    yield f"{start}[.]+[[:alnum:]_.]*{named}"
    if parent:
        yield f"{start}{package}{named}"
        yield rf"{start}{package}[[:space:]]+import[[:space:]]*([(][^)]*|.*[\\])$"


def _get_pytest_prefix(command: str | None) -> list[str] | None:
    """Return the words that start pytest in a command, such as `uv run pytest`.

    Only `pytest` if anything else is before it; None if the command does not name pytest.
    """
    words = shlex.split(command or "")
    names = [PurePosixPath(word).name for word in words]
    at = next((at for at, name in enumerate(names) if name in _PYTEST), None)
    if at is None:
        return None
    before = names[:at]
    if before[:1] and before[0] in _RUNNERS and before[1:2] == ["run"]:
        before = before[2:]
    is_module = len(before) == 2 and before[0].startswith("python") and before[1] == "-m"
    return words[: at + 1] if is_module or not before else ["pytest"]


def _build_command(prefix: Sequence[str], paths: Sequence[str]) -> str | None:
    """Return the command; None for no path, too many, or one that pytest would misread."""
    if not 0 < len(paths) <= MAX_TEST_FILES or not all(map(_is_plain_path, paths)):
        return None
    words = [f"./{path}" if path.startswith("-") else path for path in paths]
    return shlex.join([*prefix, *words])


def _is_plain_path(path: str) -> bool:
    """Return whether a path is short, without blanks, and no node id or pattern for pytest.

    The names come from the working tree: nothing in them may read as an instruction to the agent.
    Some letters outside of ASCII look like blanks.
    """
    return len(path) <= _MAX_PATH_CHARACTERS and _PLAIN_PATH.fullmatch(path) is not None
