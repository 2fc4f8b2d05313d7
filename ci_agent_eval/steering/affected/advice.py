"""Advice for a held full run: one command that runs the tests of the changed files."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath

from ci_agent_eval.steering.affected.deadline import Deadline
from ci_agent_eval.steering.affected.import_graph import find_affected_tests, is_test_file
from ci_agent_eval.steering.affected.testmon_data import load_dependent_tests
from ci_agent_eval.steering.affected.working_tree import (
    ChangedFile,
    GitWorkingTree,
    find_working_tree,
)
from ci_agent_eval.steering.passed_run import (
    PassedRun,
    RunConditions,
    compute_environment_digest,
    load_passed_run,
)
from ci_agent_eval.steering.policy.message import NO_ADVICE, Advice
from ci_agent_eval.steering.policy.model import DetectionResult
from ci_agent_eval.steering.policy.pytest_arguments import may_change_outcome

TIME_LIMIT_S = 2.0
"""Seconds that the search may take; afterwards the message has no command."""

MAX_TEST_FILES = 20
"""Maximum number of test files in the command; more are no selection worth naming."""

_MAX_PATH_CHARACTERS = 160
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+-]+")

_RUNNERS = frozenset({"uv", "poetry", "pipenv", "pdm", "hatch", "rye"})
"""Programs whose `run` starts pytest in the project's environment."""
_PYTEST = frozenset({"pytest", "py.test"})


def find_advice(folder: Path, environ: Mapping[str, str], run: DetectionResult) -> Advice:
    """Return the advice for a full run that starts in `folder`; empty if in doubt. Never raises.

    Takes at most about TIME_LIMIT_S.
    """
    try:
        folder = folder.resolve()
        base = (folder / (_get_start(run) or ".")).resolve()
        tree = find_working_tree(base, environ, Deadline(TIME_LIMIT_S))
        passed = _find_passed_run(folder, base, tree, run)
        return Advice(passed=passed) if passed else Advice(_find_command(folder, base, tree, run))
    except Exception:  # noqa: BLE001 - without advice, the full run is still held
        return NO_ADVICE


def _get_start(run: DetectionResult) -> str | None:
    """Return the project or folder of the first full run; None if unknown."""
    return run.intents[0].folder if run.intents else None


def _find_passed_run(
    folder: Path, base: Path, tree: GitWorkingTree, run: DetectionResult
) -> str | None:
    """Return a sentence if the same tests passed on the same files in the same environment."""
    if len(run.intents) != 1 or run.intents[0].runner != "pytest" or _get_start(run) is None:
        return None
    record = load_passed_run(base) if run.keeps_environment else None
    if record is None or not _is_equal_command(folder, run.command, record):
        return None
    environment = compute_environment_digest(tree.environ)
    conditions = RunConditions(tree.compute_digest(), environment, run.intents[0].selection)
    return record.describe(conditions, time.time())


def _is_equal_command(folder: Path, command: str | None, record: PassedRun) -> bool:
    """Return whether a command's options change no test's outcome, and its Python is the record's.

    A program without a path is taken for the same one.
    """
    if command is None or "$" in command:
        return False
    words = shlex.split(command)
    names = [PurePosixPath(word).name for word in words]
    at = next((at for at, name in enumerate(names) if name in _PYTEST), len(words))
    paths = [folder / word for word in words[: at + 1] if "/" in word]
    folders = {str(path.parent.resolve()) for path in paths}
    return folders <= {record.programs} and not may_change_outcome(words[at + 1 :])


def _find_command(
    folder: Path, base: Path, tree: GitWorkingTree, run: DetectionResult
) -> str | None:
    """Return the command; it changes to `base` unless `folder` is in there already."""
    prefix = _get_pytest_prefix(run.command)
    if prefix is None:
        return None
    start = folder if folder.is_relative_to(base) else base
    tests = [os.path.relpath(tree.top / path, start) for path in _find_tests(tree)]
    paths = [Path(path).as_posix() for path in tests]
    command = _build_command(prefix, paths)
    if command is None or start == folder:
        return command
    target = str(base.relative_to(folder) if base.is_relative_to(folder) else base)
    return f"{shlex.join(['cd', target])} && {command}" if _is_plain_path(target) else None


def _find_tests(tree: GitWorkingTree) -> Collection[str]:
    """Return the affected test files, from the first source that knows them.

    The sources, best first. Recorded dependencies of episodes belong before the others.
    """
    changes = [change for change in tree.list_changes() if change.path.endswith(".py")]
    if not changes:
        return ()
    recorded = _find_recorded_tests(tree, changes)
    if recorded is not None:
        return recorded
    files = tree.list_python_files()
    present = [path for path in files if (tree.top / path).is_file()]
    changed = [change.path for change in changes]
    return find_affected_tests(tree.top, present, changed, tree.deadline)


def _find_recorded_tests(
    tree: GitWorkingTree, changes: Sequence[ChangedFile]
) -> Collection[str] | None:
    """Return the tests that pytest-testmon recorded, and the changed tests; None if unknown."""
    changed_tests = {change.path for change in changes if is_test_file(change.path)}
    others = [change for change in changes if change.path not in changed_tests]
    recorded = load_dependent_tests(tree.top, others, tree.deadline)
    if recorded is None:
        return None
    tests = recorded | changed_tests
    return sorted(path for path in tests if (tree.top / path).is_file())


def _get_pytest_prefix(command: str | None) -> list[str] | None:
    """Return the words that start pytest in a command, such as `uv run pytest`.

    Only `pytest` if anything else is before it; None if the command does not name pytest.
    """
    try:
        words = shlex.split(command or "")
    except ValueError:
        return None
    names = [PurePosixPath(word).name for word in words]
    at = next((at for at, name in enumerate(names) if name in _PYTEST), None)
    if at is None:
        return None
    before = names[:at]
    if before[:1] and before[0] in _RUNNERS and before[1:2] == ["run"]:
        before = before[2:]
    is_plain = not before or (len(before) == 2 and _is_python_module(before))
    return words[: at + 1] if is_plain else ["pytest"]


def _is_python_module(names: Sequence[str]) -> bool:
    return names[0].startswith("python") and names[1] == "-m"


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
