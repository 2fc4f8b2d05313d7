"""Recognition of evaluations by their files.

It is called for every collected file, so it imports none of our modules.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

EVALUATION = pytest.StashKey[bool]()
"""In the stash of an evaluation's module, and of the config once there is one."""

REWRITTEN = "@pytest_ar"
"""pytest's name for its assertion module, in a module whose asserts it has rewritten."""

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


def may_run_evaluations(config: pytest.Config) -> bool:
    """Return whether evaluations are requested, or pytest collects them like other tests."""
    names = (Path(pattern.replace("*", "x")) for pattern in config.getini("eval_files"))
    tests = config.getini("python_files")
    is_test = not config.option.eval_strict and any(matches_any_pattern(n, tests) for n in names)
    return is_test or are_evaluations_requested(config)


def may_clear_reports(config: pytest.Config) -> bool:
    """Return whether the session may have to remove a report of earlier evaluations."""
    is_known = "ci_agent_eval.authoring.eval_results" in sys.modules
    return is_known or bool(config.option.eval_results) or may_run_evaluations(config)


def list_named_evaluations(config: pytest.Config) -> Iterator[Path]:
    """Yield the evaluations that the command line names."""
    for argument in config.args:
        path = config.invocation_params.dir / str(argument).partition("::")[0]
        if has_evaluation_name(path, config):
            yield path


def collect_evaluation(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return the module of an evaluation that `--eval` requests and pytest leaves out."""
    session = parent.session
    if not session.config.option.eval or not has_evaluation_name(path, session.config):
        return None
    if _is_collected_by_pytest(path, session):
        return None
    hooks = session.gethookproxy(path)
    found: pytest.Collector | None = hooks.pytest_pycollect_makemodule(
        module_path=path, parent=parent
    )
    return found


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


def mark_evaluation_module(
    module: pytest.Module | None, path: Path, config: pytest.Config
) -> pytest.Module | None:
    """Mark a module as an evaluation if its file is one; another plugin may return no module."""
    if module is not None and is_evaluation_file(path, config):
        module.stash[EVALUATION] = module.config.stash[EVALUATION] = True
    return module


def refuse_unrecorded_module(
    report: pytest.CollectReport, collector: pytest.Collector
) -> pytest.CollectReport:
    """Return the report, or a failed one if pytest has not rewritten an evaluation's asserts."""
    # Reading `obj` might import the module: `--lf` skips files without importing them.
    if EVALUATION not in collector.stash or not report.passed or not report.result:
        return report
    if REWRITTEN in vars(collector.obj):  # type: ignore[attr-defined]  # only modules are marked
        return report
    problem = (
        f"{collector.nodeid}: its asserts cannot be recorded, for pytest did not rewrite them "
        "(--assert=plain, -p no:assertion, PYTEST_DONT_REWRITE, or a name that no import can "
        "write); let pytest rewrite them, or run it with --eval-strict"
    )
    return pytest.CollectReport(report.nodeid, "failed", problem, [])
