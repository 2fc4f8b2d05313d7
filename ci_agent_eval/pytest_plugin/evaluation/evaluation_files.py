"""Recognition of evaluations by their files.

It is called for every collected file, so it imports none of our modules.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

EVALUATION = pytest.StashKey[bool]()
"""In the stash of an evaluation's module, and of the config once there is one."""

_STRICT_PATTERNS = ("test_*.py", "*_test.py", "conftest.py", "__init__.py")
"""File names that pytest treats as tests or its own: they must never silently become lenient."""


def is_evaluation_file(path: Path, config: pytest.Config) -> bool:
    """Return whether the file has an evaluation's name and evaluations are measured."""
    return not config.option.eval_strict and has_evaluation_name(path, config)


def has_evaluation_name(path: Path, config: pytest.Config) -> bool:
    """Return whether the file's name is an evaluation's."""
    if path.suffix != ".py" or matches_any_pattern(path, _STRICT_PATTERNS):
        return False
    return matches_any_pattern(path, config.getini("eval_files"))


def are_evaluations_requested(config: pytest.Config) -> bool:
    """Return whether to measure evaluations: all of them, or files given by name."""
    if config.option.eval_strict:
        return False
    return config.option.eval or any(list_named_evaluations(config))


def list_named_evaluations(config: pytest.Config) -> Iterator[Path]:
    """Yield the evaluations that the command line names."""
    for argument in config.args:
        path = config.invocation_params.dir / str(argument).partition("::")[0]
        if has_evaluation_name(path, config):
            yield path


def is_left_out_by_pytest(path: Path, session: pytest.Session) -> bool:
    """Return whether a file is an evaluation that `--eval` requests and pytest leaves out."""
    if not session.config.option.eval or not has_evaluation_name(path, session.config):
        return False
    return not _is_collected_by_pytest(path, session)


def _is_collected_by_pytest(path: Path, session: pytest.Session) -> bool:
    """Return whether pytest itself collects the file, by its path or by `python_files`."""
    return session.isinitpath(path) or matches_any_pattern(
        path, session.config.getini("python_files")
    )


def matches_any_pattern(path: Path, patterns: Iterable[str]) -> bool:
    """Return whether a file matches any of the patterns, with the rules of `python_files`.

    A pattern with a folder is matched against the end of the path, other patterns against the name.
    """
    return any(_matches_pattern(path, pattern) for pattern in patterns)


def _matches_pattern(path: Path, pattern: str) -> bool:
    if "/" not in pattern and os.sep not in pattern:
        return fnmatch(path.name, pattern)
    pattern = pattern.replace("/", os.sep)
    return fnmatch(str(path), pattern if Path(pattern).is_absolute() else f"*{os.sep}{pattern}")


def is_evaluation(node: pytest.Item | pytest.Collector) -> bool:
    """Return whether a node belongs to a module that was collected as an evaluation."""
    if EVALUATION not in node.config.stash:
        return False
    module = node.getparent(pytest.Module)
    return module is not None and EVALUATION in module.stash
