"""How an episode ended, from how its test did.

A failed assertion, `pytest.fail` and pytest-timeout are the agent's fault: failed. Any
other exception is the world's: error. A skip is skipped, and so is an expected failure
(xfail): it says nothing new. A strict xfail that passes is failed, as pytest has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ci_agent_eval.contract.episode import Assertion, Outcome
from ci_agent_eval.contract.jsonable import clean_text, without_addresses
from ci_agent_eval.pytest_plugin.places import Places

MAX_LINES = 20
MAX_CHARACTERS = 2000
MAX_NAME = 200
"""What is kept of a message and of an assert statement; the whole is in pytest's own report."""


class EpisodeFailed(pytest.fail.Exception):  # type: ignore[name-defined,misc]  # a class at run time
    """Raised after the test returned, over failed checks and hard budgets not kept."""


# As pytest does for its own outcomes: reports then show the bare name.
EpisodeFailed.__module__ = "builtins"


@dataclass(frozen=True, slots=True)
class Ending:
    """An outcome, why, and the assertion that failed, if one did."""

    outcome: Outcome
    reason: str | None = None
    assertion: Assertion | None = None


def ending_of(call: pytest.CallInfo[None], report: pytest.TestReport, places: Places) -> Ending:
    """Return how the phase ended for the episode."""
    expected = getattr(report, "wasxfail", None)
    if report.skipped:
        reason = f"xfail: {expected}" if expected is not None else _message(call)
        return Ending("skipped", reason)
    if call.excinfo is None:
        # Only a strict xfail fails without an exception: it was to fail and did not.
        return Ending("failed", str(report.longrepr)) if report.failed else Ending("passed")
    if call.when == "call" and is_failure(call.excinfo.value):
        return _failure(call.excinfo, places)
    return Ending("error", _described(call.excinfo))


def is_failure(error: BaseException) -> bool:
    """Say whether an exception is a failed assertion, or a group of nothing else."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_failure(inner) for inner in error.exceptions)
    return isinstance(error, AssertionError | pytest.fail.Exception)


def _failure(excinfo: pytest.ExceptionInfo[BaseException], places: Places) -> Ending:
    reason = first_lines(str(excinfo.value)) or type(excinfo.value).__name__
    statement, file, line = _statement(excinfo, places)
    assertion = Assertion(
        name=statement or type(excinfo.value).__name__,
        passed=False,
        reason=reason,
        file=file,
        line=line,
    )
    return Ending("failed", reason.partition("\n")[0], assertion)


def _statement(
    excinfo: pytest.ExceptionInfo[BaseException], places: Places
) -> tuple[str | None, str | None, int | None]:
    """Return the source, file and line of the last statement below the root that was running."""
    for entry in reversed(excinfo.traceback):
        file = places.relative(str(entry.path))
        if file is not None:
            source = clean_text(" ".join(str(entry.statement).split()))
            return _cut(source, MAX_NAME), file, entry.lineno + 1
    return None, None, None


def _message(call: pytest.CallInfo[None]) -> str | None:
    return None if call.excinfo is None else first_lines(str(call.excinfo.value)) or None


def _described(excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    return first_lines(f"{excinfo.typename}: {excinfo.value}").rstrip(": ")


def first_lines(text: str) -> str:
    """Return the beginning of a message, without memory addresses; a mark where it was cut."""
    lines = without_addresses(clean_text(text)).splitlines()
    kept = "\n".join(lines[:MAX_LINES])
    return _cut(kept + ("\n…" if len(lines) > MAX_LINES else ""), MAX_CHARACTERS)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
