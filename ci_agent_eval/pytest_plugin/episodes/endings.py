"""The ending of an episode, derived from the outcome of its test.

A failed assertion, `pytest.fail` and pytest-timeout are an agent failure: failed, whatever
exception follows. Any other exception is an infrastructure error: error. A skip is skipped, and so
is an expected failure (xfail), which is no new information. A strict xfail that passes is failed,
as in pytest. An error's reason includes the line that raised it and the test's own line at that
moment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import pytest

from ci_agent_eval.contract.episode import Assertion, Episode, Outcome
from ci_agent_eval.contract.jsonable import clean_text, remove_addresses
from ci_agent_eval.contract.wording import one_line
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.recording.active_episode import RunningEpisode

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

MAX_LINES = 20
MAX_CHARACTERS = 2000
MAX_NAME = 200
"""Limits on messages and assert statements; pytest's own report has the full text."""


RECORDED_ATTRIBUTE = "is_recorded"
"""Attribute of an exception whose assertion is already in the episode."""


class EpisodeFailed(pytest.fail.Exception):  # type: ignore[name-defined,misc]  # a class at run time
    """Raised after the test returned, for failed checks and exceeded hard budgets."""


class EpisodeStopped(pytest.fail.Exception):  # type: ignore[name-defined,misc]  # a class at run time
    """Raised in place of a cancelled task's exception when the run stops, with the reason.

    The episode is an error, whatever exceptions the test expects.
    """


# Like pytest's own outcomes: reports then show the bare name.
EpisodeFailed.__module__ = EpisodeStopped.__module__ = "builtins"


def build_stop_error(sentence: str) -> EpisodeStopped:
    """Return the error to raise in an episode that the stopping run ends."""
    return EpisodeStopped(f"stopped: {sentence}", pytrace=False)


@dataclass(frozen=True, slots=True)
class Ending:
    """An outcome, its reason, and the assertion that failed, if one did."""

    outcome: Outcome
    reason: str | None = None
    assertion: Assertion | None = None
    expected: bool = False
    """Whether it is an xfail: the failure was expected."""


@dataclass(slots=True)
class EpisodeItem:
    """The state of an episode's item from its selection to its teardown."""

    nodeid: str
    """Node id without secrets, unique among the items."""
    scenario_id: str
    """Scenario id for a marker without one: the node id that its iterations share."""
    iteration: int = 1
    attempt: int = 0
    problem: str | None = None
    """Why the marker is invalid."""
    initial_episode: Episode | None = None
    recorder: EpisodeRecorder | None = None
    final_episode: Episode | None = None
    called: bool = False
    """Whether the test has returned or raised; earlier reports are about subtests."""
    subtest: Ending | None = None
    """The ending of the subtest whose report comes next."""
    subtest_errors: list[str] = field(default_factory=list)
    """Reasons of the subtests that ended in an error."""
    subtest_failures: list[BaseException] = field(default_factory=list)
    """Exceptions that failed subtests raised."""
    running: RunningEpisode | None = None
    """The running episode, from the start of setup to the end of teardown."""

    unreported: pytest.CallInfo[None] | None = None
    """How the test's call ended, until a report of it is made: pytest-retry makes only one."""
    is_repeated: bool = False
    """Whether the attempt began before the one before it was reported."""
    summary_record: dict[str, Any] | None = None
    """The record for the terminal summary in the last report."""

    def forget(self) -> None:
        """Free everything except the item's identity.

        The episode is on disk, and there may be thousands of items.
        """
        self.initial_episode = self.recorder = self.final_episode = self.subtest = None
        self.running = self.summary_record = self.unreported = None
        self.subtest_errors.clear()
        self.subtest_failures.clear()

    @property
    def is_evaluation(self) -> bool:
        """Whether its assertions are measured and fail no test."""
        return self.initial_episode is not None and self.initial_episode.mode == "evaluation"

    @property
    def has_counted_assertion(self) -> bool:
        """Whether an assert passed; always False for an episode that needs no evidence."""
        is_counted = (
            self.initial_episode is not None and self.initial_episode.evidence == "required"
        )
        return is_counted and self.running is not None and self.running.asserted


def determine_ending(
    call: pytest.CallInfo[None],
    report: pytest.TestReport,
    repo: RepositoryPaths,
    test_file: str | None,
) -> Ending:
    """Return the ending of the episode after a phase of a test in `test_file`."""
    if call.excinfo is not None and isinstance(call.excinfo.value, EpisodeStopped):
        return Ending("error", str(call.excinfo.value))
    expected = getattr(report, "wasxfail", None)
    if report.skipped and expected is not None:
        # Older pytest adds a prefix to the reason given to `pytest.xfail`.
        return Ending("skipped", f"xfail: {expected.removeprefix('reason: ')}", expected=True)
    if report.skipped:
        return Ending("skipped", _get_message(call))
    if call.excinfo is None:
        # Only a strict xfail fails without an exception: it passed unexpectedly.
        return Ending("failed", str(report.longrepr)) if report.failed else Ending("passed")
    return _determine_raised_ending(call.when, call.excinfo, repo, test_file)


def _determine_raised_ending(
    when: str,
    excinfo: pytest.ExceptionInfo[BaseException],
    repo: RepositoryPaths,
    test_file: str | None,
) -> Ending:
    """Return the ending of a phase that raised: setup and teardown only end in errors."""
    if when == "call" and is_failure(excinfo.value):
        return build_failure_ending(excinfo, repo)
    error = _describe_error(excinfo, repo, test_file)
    failure = find_failure(excinfo.value, repo) if when == "call" else None
    if failure is None:
        return Ending("error", error)
    traceback = failure.__traceback__ or excinfo.tb
    inner = pytest.ExceptionInfo.from_exc_info((type(failure), failure, traceback))
    return _add_error(build_failure_ending(inner, repo), error)


def is_failure(error: BaseException) -> bool:
    """Return whether an exception is a failed assertion, or a group of only these."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_failure(inner) for inner in error.exceptions)
    if isinstance(error, EpisodeStopped):
        return False
    return isinstance(error, AssertionError | pytest.fail.Exception)


def find_failure(error: BaseException, repo: RepositoryPaths) -> BaseException | None:
    """Return the first failed assertion in an exception's groups and chain, if any.

    A failure in the chain (`raise … from`, or an exception raised in an `except` or `finally`)
    counts only if a line below the root raised it: a library's own asserts are its own affair.
    """
    pending, seen = [(error, True)], set[int]()
    while pending:
        current, is_raised = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if is_failure(current) and (is_raised or repo.locate_traceback(current.__traceback__)):
            return current
        inner = current.exceptions if isinstance(current, BaseExceptionGroup) else ()
        pending += [(each, False) for each in _list_chained_errors(current)]
        pending += [(each, is_raised) for each in reversed(inner)]
    return None


def _list_chained_errors(error: BaseException) -> list[BaseException]:
    """Return the exceptions that led to an error, also those hidden by `from None`.

    An error of this package replaces its cause on purpose: a JudgeError stays an infrastructure
    error whatever the judge's model raised. Only the exceptions before the cause are returned.
    """
    cause, context = error.__cause__, error.__context__
    if cause is not None and type(error).__module__.partition(".")[0] == "ci_agent_eval":
        context = cause.__context__ if context is cause else context
        cause = cause.__cause__
    return [each for each in (cause, context) if each is not None]


def _add_error(ending: Ending, error: str) -> Ending:
    """Add the error after a failure to its ending; the recorder names a recorded assertion."""
    reason = f"{ending.reason}; then {error}" if ending.reason else error
    return Ending(ending.outcome, reason, ending.assertion)


def build_failure_ending(
    excinfo: pytest.ExceptionInfo[BaseException], repo: RepositoryPaths
) -> Ending:
    """Return the ending of a test that raised a failure."""
    if getattr(excinfo.value, RECORDED_ATTRIBUTE, False):
        return Ending("failed")
    reason = shorten_message(str(excinfo.value)) or type(excinfo.value).__name__
    statement, file, line = _find_statement(excinfo, repo)
    assertion = Assertion(
        name=statement or type(excinfo.value).__name__,
        passed=False,
        reason=reason,
        file=file,
        line=line,
    )
    return Ending("failed", reason.partition("\n")[0], assertion)


def _find_statement(
    excinfo: pytest.ExceptionInfo[BaseException], repo: RepositoryPaths
) -> tuple[str | None, str | None, int | None]:
    """Return the source, file and line of the last running statement below the root."""
    for entry in reversed(excinfo.traceback):
        file = repo.relative(str(entry.path))
        if file is not None:
            source = clean_text(one_line(str(entry.statement)))
            return truncate_text(source, MAX_NAME), file, entry.lineno + 1
    return None, None, None


def _get_message(call: pytest.CallInfo[None]) -> str | None:
    return None if call.excinfo is None else shorten_message(str(call.excinfo.value)) or None


def _describe_error(
    excinfo: pytest.ExceptionInfo[BaseException], repo: RepositoryPaths, test_file: str | None
) -> str:
    text = shorten_message(f"{excinfo.typename}: {excinfo.value}").rstrip(": ")
    first, newline, rest = text.partition("\n")
    return f"{first}{_format_location(excinfo.tb, repo, test_file)}{newline}{rest}"


def _format_location(traceback: TracebackType, repo: RepositoryPaths, test_file: str | None) -> str:
    """Return the innermost line below the root, and the test's own line, in brackets."""
    lines = repo.locate_traceback(traceback)
    if not lines:
        return ""
    raised = lines[-1]
    called = next((line for line in lines if line[0] == test_file), raised)
    call_site = "" if called == raised else f", called at {called[0]}:{called[1]}"
    return f" ({raised[0]}:{raised[1]}{call_site})"


def shorten_message(text: str) -> str:
    """Return the start of a message, without memory addresses; "…" marks a cut.

    It has no colours either: pytest adds them to explanations if its terminal supports them.
    """
    lines = remove_addresses(_COLOUR.sub("", clean_text(text))).splitlines()
    kept = "\n".join(lines[:MAX_LINES])
    return truncate_text(kept + ("\n…" if len(lines) > MAX_LINES else ""), MAX_CHARACTERS)


def truncate_text(text: str, length: int) -> str:
    """Return the text, or its start with "…" if it is too long."""
    return text if len(text) <= length else text[: length - 1] + "…"


def format_subtest_name(report: pytest.TestReport) -> str:
    """Return the message of a subtest and its parameters, as pytest shows them."""
    context = getattr(report, "context", None)
    message = getattr(context, "msg", None)
    parameters = getattr(context, "kwargs", None) or {}
    parameters_text = ", ".join(f"{name}={value}" for name, value in parameters.items())
    parts = [str(message) if message else "", f"({parameters_text})" if parameters_text else ""]
    text = " ".join(part for part in parts if part) or "subtest"
    return truncate_text(remove_addresses(clean_text(text)), MAX_NAME)


def record_subtest(state: EpisodeItem, name: str) -> None:
    """Add the subtest that has just failed or broken to its episode."""
    ending, state.subtest = state.subtest, None
    if ending is None:
        return
    if ending.assertion is not None and state.recorder is not None:
        state.recorder.record_assertion(ending.assertion.model_copy(update={"name": name}))
    else:
        state.subtest_errors.append(f"in subtest {name}: {ending.reason}")


def is_from_subtest(state: EpisodeItem, error: BaseException) -> bool:
    """Return whether a subtest raised the error: with `-x` it ends the test, too."""
    return any(error is known for known in state.subtest_failures)


def get_ending_after_subtests(state: EpisodeItem, ending: Ending | None = None) -> Ending:
    """Return the ending of a test that returned: an error if one of its subtests broke."""
    if state.subtest_errors:
        return Ending("error", "; ".join(state.subtest_errors))
    return ending or Ending("passed")


def add_subtest_endings(ending: Ending, subtests: Sequence[Ending]) -> Ending:
    """Return the ending of a test without an episode, including its failed subtests.

    The test's own failure takes precedence; a failed subtest wins over a broken one.
    """
    if not subtests or ending.outcome in {"failed", "error"}:
        return ending
    outcome: Outcome = "failed" if any(each.outcome == "failed" for each in subtests) else "error"
    return Ending(outcome, "; ".join(f"in a subtest: {each.reason}" for each in subtests))
