"""The recorder of an evaluation's asserts: each result is kept in the running episode."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar

import pytest

from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.contract.jsonable import clean_text, remove_addresses
from ci_agent_eval.pytest_plugin.episodes.endings import MAX_NAME, shorten_message, truncate_text
from ci_agent_eval.pytest_plugin.evaluation import passed_asserts
from ci_agent_eval.pytest_plugin.evaluation.library_assertions import (
    get_expected_exceptions,
    list_expecting_types,
)
from ci_agent_eval.pytest_plugin.evaluation.passed_asserts import take_explanation
from ci_agent_eval.pytest_plugin.evaluation.stable_repr import sort_explained_sets, sort_failed_sets
from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    get_active_episode,
    is_evaluating,
    note_passed_assert,
)

_FAILURE_TYPES = (AssertionError, pytest.fail.Exception)


@dataclass(frozen=True, slots=True)
class AssertRecorder:
    """The object that transformed asserts call, a global of an evaluation's module."""

    file: str | None
    """Path relative to the repository root; None for a file outside of it."""

    Failed: ClassVar[type[BaseException]] = AssertionError
    Everything: ClassVar[type[BaseException]] = BaseException

    def record_pass(self, line: int, name: str) -> None:
        """Record an assert that passed; for a strict test that calls it, it is evidence, too."""
        note_passed_assert()
        reason = sort_explained_sets(take_explanation() or "")
        self._keep(_get_evaluation(), line, name, passed=True, reason=reason)

    def record_failure(
        self, line: int, name: str, error: AssertionError, catching: Iterable[Any]
    ) -> bool:
        """Record an assert that failed; return False if its error must be raised.

        It must be raised if no evaluation is running, if the surrounding code catches it, and if a
        function called by the assert raised it.
        """
        episode = _get_evaluation()
        if episode is None or _comes_from_call(error) or _any_catches_failure(catching):
            return False
        self._keep(episode, line, name, passed=False, reason=sort_failed_sets(str(error)))
        return True

    def wrap_if_expecting(self, line: int, name: str, manager: Any) -> Any:
        """Wrap a manager that expects an exception or a warning, and record it as an assertion."""
        is_recorded = isinstance(manager, list_expecting_types()) and _get_evaluation() is not None
        return _RecordedManager(self, line, name, manager) if is_recorded else manager

    def record_result(self, line: int, name: str, *, passed: bool, reason: str | None) -> None:
        """Record an assertion of the running evaluation."""
        self._keep(_get_evaluation(), line, name, passed=passed, reason=reason)

    def _keep(
        self,
        episode: RunningEpisode | None,
        line: int,
        name: str,
        *,
        passed: bool,
        reason: str | None,
    ) -> None:
        if episode is None:
            return
        episode.record_assertion(
            Assertion(
                name=truncate_text(remove_addresses(clean_text(name)), MAX_NAME),
                passed=passed,
                reason=shorten_message(reason or "") or None,
                file=self.file,
                line=None if self.file is None else line,
            )
        )


class _RecordedManager(AbstractContextManager[Any]):
    """A context manager whose result is recorded as an assertion."""

    def __init__(
        self, recorder: AssertRecorder, line: int, name: str, manager: AbstractContextManager[Any]
    ) -> None:
        self._recorder = recorder
        self._place = line, name
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
            handled = self._manager.__exit__(type_, error, traceback)
        except _FAILURE_TYPES as refusal:
            self._recorder.record_result(*self._place, passed=False, reason=str(refusal))
            return True
        reason = None if error is None else f"{type(error).__name__}: {error}".rstrip(": ")
        self._recorder.record_result(
            *self._place, passed=error is None or bool(handled), reason=reason
        )
        return handled


def _get_evaluation() -> RunningEpisode | None:
    return get_active_episode() if is_evaluating() else None


def _comes_from_call(error: AssertionError) -> bool:
    """Return whether the error was raised by what the assert calls."""
    deeper = error.__traceback__ and error.__traceback__.tb_next
    return deeper is not None and deeper.tb_frame.f_globals is not vars(passed_asserts)


def _any_catches_failure(types: Iterable[Any]) -> bool:
    """Return whether any of the types, in whatever form, catches failed asserts."""
    return any(_catches_failure(type_) for type_ in types)


def _catches_failure(type_: Any) -> bool:
    if isinstance(type_, list_expecting_types()):
        return _catches_failure(get_expected_exceptions(type_))
    if isinstance(type_, suppress):
        return _any_catches_failure(getattr(type_, "_exceptions", ()))
    if isinstance(type_, tuple):
        return _any_catches_failure(type_)
    return isinstance(type_, type) and issubclass(AssertionError, type_)
