"""Evidence that the active episode was judged: the asserts of its test that passed.

In an evaluation each assert is recorded instead, whether it passed or failed.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import warnings
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import FrameType, FunctionType, TracebackType
from typing import Any

import pytest

from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.contract.jsonable import clean_text, remove_addresses
from ci_agent_eval.pytest_plugin.episodes.endings import MAX_NAME, shorten_message, truncate_text
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.evaluation import rewritten_asserts
from ci_agent_eval.pytest_plugin.evaluation.evaluation_files import REWRITTEN
from ci_agent_eval.pytest_plugin.evaluation.library_assertions import (
    get_expected_exceptions,
    list_expecting_types,
)
from ci_agent_eval.pytest_plugin.options import ASSERT_MODULES
from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    get_active_episode,
    is_evaluating,
    note_passed_assert,
)

_FAILURE_TYPES = (AssertionError, pytest.fail.Exception)

_LAZY = (Generator, AsyncGenerator, map, filter, zip)

_NO_EVIDENCE = "it is always true and no evidence; assert something that can be false"

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

    def note_assert(
        self, frame: FrameType, value: object, *, is_fixed: bool, text: str | None
    ) -> bool:
        """Note a passed assert of a test; return whether to explain it, for it is to be recorded.

        `is_fixed`: its expression has no other value. `text`: its source in an evaluation's file.
        Raises AssertionError for a value that nobody asked for, such as a coroutine.
        """
        __tracebackhide__ = True
        episode = get_active_episode()
        if episode is None or not self._is_counted(frame.f_globals):
            return False
        refuse_unused_result(value)
        if text is not None and is_evaluating():
            return True
        if (problem := describe_no_evidence(value, is_fixed=is_fixed)) is None:
            note_passed_assert()
        elif episode.is_called:
            self._warn(episode, frame, problem)
        return False

    def record_pass(self, frame: FrameType, line: int, text: str, explanation: str) -> None:
        """Record an assert that passed in an evaluation."""
        self._record(frame, line, text, passed=True, reason=explanation)

    def record_failure(
        self, line: int, text: str, error: AssertionError, catching: Iterable[Any]
    ) -> bool:
        """Record an assert that failed; return False if its error must be raised.

        It must be raised if no evaluation is running, if the surrounding code catches it, and if a
        function called by the assert raised it.
        """
        traceback = error.__traceback__
        if traceback is None or _comes_from_call(traceback) or _any_catches_failure(catching):
            return False
        frame = traceback.tb_frame
        if not is_evaluating() or not self._is_counted(frame.f_globals):
            return False
        self._record(frame, line, text, passed=False, reason=str(error))
        return True

    def wrap_manager(self, line: int, text: str, manager: Any) -> Any:
        """Wrap a manager that expects an exception or a warning, to record it as an assertion."""
        if not isinstance(manager, list_expecting_types()) or not is_evaluating():
            return manager
        frame = sys._getframe(2)  # noqa: SLF001 - documented

        def record(*, passed: bool, reason: str | None) -> None:
            self._record(frame, line, text, passed=passed, reason=reason)

        return _RecordedManager(record, manager)

    def _record(
        self, frame: FrameType, line: int, text: str, *, passed: bool, reason: str | None
    ) -> None:
        """Record an assertion of the running evaluation."""
        episode = get_active_episode()
        if episode is None or not is_evaluating():
            return
        file = self._repo.relative(frame.f_code.co_filename)
        episode.record_assertion(
            Assertion(
                name=truncate_text(remove_addresses(clean_text(text)), MAX_NAME),
                passed=passed,
                reason=shorten_message(reason or "") or None,
                file=file,
                line=None if file is None else line,
            )
        )

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
        line = frame.f_lineno
        text = linecache.getline(frame.f_code.co_filename, line).strip().rstrip(":")
        self._record(frame, line, text, passed=True, reason=None)

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
        is_unheard = REWRITTEN not in module and self._is_counted(module)
        return is_unheard and _has_assert(str(module["__file__"]))

    def _shorten(self, module: Mapping[str, Any]) -> str:
        return self._repo.relative(module["__file__"]) or Path(module["__file__"]).name


class _RecordedManager(AbstractContextManager[Any]):
    """A context manager whose result is recorded as an assertion."""

    def __init__(self, record: Callable[..., None], manager: Any) -> None:
        self._record = record
        self._manager = manager

    def __enter__(self) -> Any:
        return self._manager.__enter__()

    def __exit__(
        self,
        type_: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        __tracebackhide__ = True
        try:
            handled: bool | None = self._manager.__exit__(type_, error, traceback)
        except _FAILURE_TYPES as refusal:
            self._record(passed=False, reason=str(refusal))
            return True
        reason = None if error is None else f"{type(error).__name__}: {error}".rstrip(": ")
        self._record(passed=error is None or bool(handled), reason=reason)
        return handled


def _comes_from_call(traceback: TracebackType) -> bool:
    """Return whether what the assert calls has raised the error, and not we ourselves."""
    deeper = traceback.tb_next
    return deeper is not None and deeper.tb_frame.f_globals is not vars(rewritten_asserts)


def _any_catches_failure(types: Iterable[Any]) -> bool:
    """Return whether any of the types, in whatever form, catches failed asserts."""
    return any(map(_catches_failure, types))


def _catches_failure(type_: Any) -> bool:
    if isinstance(type_, _RecordedManager):
        type_ = type_._manager  # noqa: SLF001 - of this module
    if isinstance(type_, list_expecting_types()):
        type_ = get_expected_exceptions(type_)
    if isinstance(type_, suppress):
        type_ = tuple(getattr(type_, "_exceptions", ()))
    if isinstance(type_, tuple):
        return _any_catches_failure(type_)
    return isinstance(type_, type) and issubclass(AssertionError, type_)


def refuse_unused_result(value: object) -> None:
    """Raise AssertionError for a true value that is a result which nobody asked for."""
    __tracebackhide__ = True
    if isinstance(value, _LAZY):
        remedy = "use all(...) or any(...)"
    elif inspect.isawaitable(value) and not _has_own_truth(value):
        remedy = "write `assert await ...`"
    else:
        return
    if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        value.close()  # no second report, of Python's, in whatever test runs next
    kind = type(value).__name__
    raise AssertionError(f"asserted an object of type {kind}, which is always true; {remedy}")


def _has_own_truth(value: object) -> bool:
    """Return whether the type says what is false, as that of a simulation's result does."""
    return hasattr(type(value), "__bool__") or hasattr(type(value), "__len__")


def describe_no_evidence(value: Any, *, is_fixed: bool) -> str | None:
    """Return why a passed assert is no evidence; None: it is."""
    if is_fixed:
        return f"assert of a literal: {_NO_EVIDENCE}"
    if inspect.isfunction(value) or inspect.ismethod(value) or inspect.isbuiltin(value):
        name = getattr(value, "__name__", "function")
        return f"assert of the function {name}, which is not called: {_NO_EVIDENCE}"
    return None


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
