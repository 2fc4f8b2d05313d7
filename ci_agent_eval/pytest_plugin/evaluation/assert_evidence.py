"""Evidence that the active episode was judged: the asserts of its test that passed."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import pytest

from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.contract.jsonable import clean_text, remove_addresses
from ci_agent_eval.pytest_plugin.episodes.endings import MAX_NAME, truncate_text
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.evaluation.always_true import (
    describe_no_evidence,
    refuse_unused_result,
)
from ci_agent_eval.pytest_plugin.evaluation.assert_transform import RECORDER
from ci_agent_eval.pytest_plugin.evaluation.passed_asserts import REWRITTEN
from ci_agent_eval.pytest_plugin.options import ASSERT_MODULES
from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    get_active_episode,
    is_evaluating,
    note_passed_assert,
)

_PLAIN = (
    "asserts of {file} were not counted, for pytest did not rewrite it (--assert=plain, "
    "-p no:assertion, or PYTEST_DONT_REWRITE); let pytest rewrite it, or use episode.check(...)"
)
_HELPERS = (
    "asserts of {files} were not counted, for pytest does not rewrite helper modules on its own; "
    "put pytest.register_assert_rewrite({names}) into conftest.py, before they are imported"
)


class AssertEvidence:
    """Notes the assertions of a process in the active episode; the listener of all that report."""

    def __init__(self, config: pytest.Config, repo: RepositoryPaths) -> None:
        self._repo = repo
        self._helpers = tuple(f"{name}." for name in config.getini(ASSERT_MODULES))
        self._test_files: set[str] = set()

    def begin(self, item: pytest.Item) -> None:
        """Count the asserts of a test's own file, wherever it is."""
        self._test_files.add(str(item.path))

    def note_assert(self, frame: FrameType, value: object, *, is_fixed: bool) -> bool:
        """Note a passed assert of a test; in an evaluation it is to be explained."""
        __tracebackhide__ = True
        module = frame.f_globals
        is_recorded = RECORDER in module
        episode = get_active_episode()
        if episode is None or not (is_recorded or self._is_counted(module)):
            return False
        refuse_unused_result(value)
        if is_recorded:
            return is_evaluating()  # its recorder notes it
        if (problem := describe_no_evidence(value, is_fixed=is_fixed)) is None:
            note_passed_assert()
        elif episode.is_called:
            self._warn(episode, frame, problem)
        return False

    def _warn(self, episode: RunningEpisode, frame: FrameType, problem: str) -> None:
        """Warn of an assert that proves nothing; an episode without evidence names it."""
        place = f"{self._shorten(frame.f_globals)}:{frame.f_lineno}"
        episode.no_evidence.append(f"{place}: {problem}")
        file = frame.f_code.co_filename
        warnings.warn_explicit(problem, pytest.PytestWarning, file, frame.f_lineno)

    def _is_counted(self, module: Mapping[str, Any]) -> bool:
        """Return whether the asserts of a module are the user's, and not a library's or ours."""
        name, file = str(module.get("__name__")), str(module.get("__file__"))
        if file in self._test_files or f"{name}.".startswith(self._helpers):
            return True
        return self._repo.relative(file) is not None and not name.startswith("ci_agent_eval.")

    def note_call(self, value: object) -> None:
        """Note that a library's assertion function held."""
        __tracebackhide__ = True
        if get_active_episode() is not None:
            refuse_unused_result(value)
        if describe_no_evidence(value, is_fixed=False) is None:
            note_passed_assert()

    def note_check(self, frame: FrameType) -> None:
        """Note a check of pytest-check that passed; an evaluation records it by its source."""
        note_passed_assert()
        episode = get_active_episode()
        if episode is None or not is_evaluating():
            return
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip().rstrip(":")
        file, line = episode.locate(frame) or (None, None)
        name = truncate_text(remove_addresses(clean_text(text)), MAX_NAME)
        episode.record_assertion(Assertion(name=name, passed=True, file=file, line=line))

    def describe_uncounted(self, item: pytest.Item) -> str | None:
        """Return why asserts that a test may have run were not counted, and the remedy."""
        if (function := _get_function(item)) is None:
            return None
        module = function.__globals__
        if self._has_uncounted_asserts(module):
            return _PLAIN.format(file=self._shorten(module))
        helpers = [found for found in _iter_imported(module) if self._has_uncounted_asserts(found)]
        if not helpers:
            return None
        names = ", ".join(repr(found["__name__"]) for found in helpers)
        return _HELPERS.format(files=", ".join(map(self._shorten, helpers)), names=names)

    def _has_uncounted_asserts(self, module: Mapping[str, Any]) -> bool:
        is_heard = REWRITTEN in module or RECORDER in module
        return not is_heard and self._is_counted(module) and _has_assert(str(module["__file__"]))

    def _shorten(self, module: Mapping[str, Any]) -> str:
        return self._repo.relative(module["__file__"]) or Path(module["__file__"]).name


def _iter_imported(module: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the globals of the modules that a module has imported names from."""
    values = list(module.values())
    names = {
        getattr(value, "__module__", None) or getattr(value, "__name__", "") for value in values
    }
    for name in sorted(found for found in names if isinstance(found, str)):
        found = getattr(sys.modules.get(name), "__dict__", {})
        if "__file__" in found:
            yield found


def _has_assert(file: str) -> bool:
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError):
        return False
    return any(isinstance(node, ast.Assert) for node in ast.walk(tree))


def _get_function(item: pytest.Item) -> FunctionType | None:
    found = inspect.unwrap(getattr(item, "obj", None))  # type: ignore[arg-type]  # None is fine
    found = getattr(found, "__func__", found)
    return found if isinstance(found, FunctionType) else None
