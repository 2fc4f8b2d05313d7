"""Measurement of evaluations: their failures are recorded and fail no test.

Other exceptions still fail the test, because an error is not a measurement.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

import pytest
from _pytest.skipping import xfailed_key

from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.pytest_plugin.episodes.endings import (
    MAX_NAME,
    Ending,
    EpisodeFailed,
    EpisodeItem,
    build_failure_ending,
    is_failure,
    shorten_message,
    truncate_text,
)
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.pytest_plugin.evaluation.assert_evidence import AssertEvidence
from ci_agent_eval.recording.active_episode import enter_shared_fixture, leave_shared_fixture

NOTHING_ASSERTED = (
    "it asserted nothing, so nothing was measured; let it reach an assert of its own file, or "
    "check(...), whatever the agent does (what other modules assert counts only if it fails)"
)


EVERY_EXAMPLE = "holds for every example"
"""Name of the single assertion of an evaluation that Hypothesis runs."""


class AssertionsFailed(EpisodeFailed, AssertionError):  # noqa: N818 - as pytest names its own
    """Raised for failed assertions of an evaluation marked `xfail`, which may expect one."""


AssertionsFailed.__module__ = "builtins"


def is_measured(item: pytest.Item, state: EpisodeItem) -> bool:
    """Return whether failures in the test are recorded and not raised.

    They are in an evaluation, unless it is marked `xfail`: then pytest has to see the failure.
    pytest keeps that mark in `xfailed_key`; there is no public name for it.
    """
    is_xfail = item.stash.get(xfailed_key, None) is not None
    return state.is_evaluation and (not is_xfail or bool(item.config.option.runxfail))


def is_hypothesis_evaluation(item: pytest.Item, state: EpisodeItem) -> bool:
    """Return whether Hypothesis runs the evaluation repeatedly, until it raises.

    Its asserts are not separate measurements: they raise, and count as one assertion.
    """
    return state.is_evaluation and getattr(getattr(item, "obj", None), "is_hypothesis_test", False)


def abandon_unawaited_checks(state: EpisodeItem) -> list[str]:
    """Abandon the checks that were never awaited; return the place of each."""
    pending = [] if state.running is None else state.running.unawaited_checks
    found = [give_up() for give_up in pending]
    pending.clear()
    return [place for place in found if place is not None]


def check_for_assertions(state: EpisodeItem) -> list[str]:
    """Return the problem of an evaluation that ended without an assertion: it has no score."""
    if not state.is_evaluation:
        return []
    early = () if state.running is None else state.running.early_assertions
    found = early if state.recorder is None else state.recorder.snapshot().assertions
    return [] if found else [NOTHING_ASSERTED]


def note_uncounted_asserts(
    item: pytest.Item, state: EpisodeItem, ended: Episode, evidence: AssertEvidence | None
) -> Episode:
    """Add to an episode without an assertion which asserts were not counted."""
    if "assertion" not in ended.missing_evidence or evidence is None:
        return ended
    problems = [] if state.running is None else state.running.no_evidence[:1]
    if (uncounted := evidence.describe_uncounted(item)) is not None:
        problems = [*problems, uncounted]
    return ended.model_copy(update={"reason": "; ".join([str(ended.reason), *problems])})


def build_failure(state: EpisodeItem, sentence: str) -> EpisodeFailed:
    """Build the exception for a test that has returned with failures."""
    is_asserted = (
        state.is_evaluation
        and state.final_episode is not None
        and state.final_episode.failed_assertions
    )
    kind: Callable[..., EpisodeFailed] = AssertionsFailed if is_asserted else EpisodeFailed
    return kind(sentence, pytrace=False)


def determine_measured_ending(
    excinfo: pytest.ExceptionInfo[BaseException], state: EpisodeItem, repo: RepositoryPaths
) -> Ending | None:
    """Return the ending of an evaluation that raised; None for an error or a plain skip."""
    error = excinfo.value
    if isinstance(error, EpisodeFailed):
        return None
    if isinstance(error, pytest.skip.Exception | pytest.xfail.Exception):
        failed_before = state.recorder is not None and state.recorder.failed_checks
        return Ending("skipped", get_skip_reason(error)) if state.called and failed_before else None
    return build_failure_ending(excinfo, repo) if is_failure(error) else None


def get_skip_reason(error: BaseException) -> str | None:
    """Return the reason of a test's skip or of its call of `pytest.xfail`."""
    reason = shorten_message(str(error))
    return f"xfail: {reason}" if isinstance(error, pytest.xfail.Exception) else reason or None


def is_own_skip(error: BaseException, state: EpisodeItem) -> bool:
    """Return whether a test ended itself with a skip, or in an evaluation with `pytest.xfail`.

    Earlier failures were measured and must be kept.
    """
    is_xfail = isinstance(error, pytest.xfail.Exception)
    return isinstance(error, pytest.skip.Exception) or (state.is_evaluation and is_xfail)


def record_unittest_failures(item: pytest.Item, state: EpisodeItem, repo: RepositoryPaths) -> None:
    """Record the failures of a unittest.TestCase's evaluation, before pytest reads them.

    pytest stores unittest's failures in `_excinfo`; there is no public name for it.
    """
    pending: list[pytest.ExceptionInfo[BaseException]] = getattr(item, "_excinfo", None) or []
    if not pending or state.recorder is None or not is_measured(item, state):
        return
    for excinfo in [found for found in pending if is_failure(found.value)]:
        pending.remove(excinfo)
        assertion = build_failure_ending(excinfo, repo).assertion
        if assertion is not None:
            state.recorder.record_assertion(assertion)


def get_soft_failure_log(config: pytest.Config) -> Any:
    """Return the module in which pytest-check collects failures, or None if it is not in use."""
    plugin: Any = sys.modules.get("pytest_check.plugin")
    is_used = plugin is not None and config.pluginmanager.is_registered(plugin)
    return plugin.check_log if is_used else None


def record_soft_failures(item: pytest.Item, state: EpisodeItem) -> None:
    """Record the failures that pytest-check collected, before it fails the test.

    In an evaluation they must not fail the test: they are measured.
    """
    log = get_soft_failure_log(item.config)
    if log is None or state.recorder is None:
        return
    failures = log.get_failures()
    for failure in failures:
        state.recorder.record_assertion(_parse_failure(failure))
    if (hidden := _count_failures(log) - len(failures)) > 0:
        # `check.set_max_report(1)` hides the others, and with 0 pytest-check fails no test.
        name = f"failed checks beyond pytest-check's max_report: {hidden}; raise it to see them"
        state.recorder.record_assertion(Assertion(name=name, passed=False))
    if is_measured(item, state):
        log.clear_failures()


def _count_failures(log: Any) -> int:
    """Return how many checks failed, reported or not; pytest-check before 2.5 has no function."""
    count = getattr(log, "get_num_failures", None)
    return int(log._num_failures if count is None else count())  # noqa: SLF001 - as above


def _parse_failure(failure: str) -> Assertion:
    """Parse a failure of pytest-check: its first line is the assertion, the rest its location."""
    name, _, location = shorten_message(failure).removeprefix("FAILURE: ").partition("\n")
    return Assertion(
        name=truncate_text(name, MAX_NAME), passed=False, reason=location.strip() or None
    )


@contextmanager
def leave_episode(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    """Leave the active episode while a fixture wider than a test is set up, and torn down.

    The test that sets it up depends on the order and on the worker; so its asserts raise, as in any
    file, and a broken fixture is an error of every test that uses it.
    """
    if fixturedef.scope == "function":
        yield
        return
    fixturedef.addfinalizer(leave_shared_fixture)
    enter_shared_fixture()
    try:
        yield
    finally:
        leave_shared_fixture()
        fixturedef.addfinalizer(enter_shared_fixture)  # finalizers run in the reverse order


def record_property_assertion(state: EpisodeItem) -> None:
    """Record the single assertion of an evaluation that passed for every Hypothesis example."""
    running, episode = state.running, state.initial_episode
    if state.recorder is None or episode is None or running is None:
        return
    if running.counts_once and running.asserted:
        found = Assertion(name=EVERY_EXAMPLE, passed=True, file=episode.file, line=episode.line)
        state.recorder.record_assertion(found)


def failed_in_shared_teardown(call: pytest.CallInfo[None]) -> bool:
    """Return whether all errors of a teardown come from fixtures that several tests share.

    The last user of such a fixture depends on the order of tests, so pytest reports the error, and
    it is not the evaluation's.
    """
    error = None if call.excinfo is None else call.excinfo.value
    return call.when == "teardown" and error is not None and _comes_from_shared_fixture(error)


def _comes_from_shared_fixture(error: BaseException) -> bool:
    scopes = [
        frame.f_locals["self"].scope
        for frame, _ in walk_tb(error.__traceback__)
        if isinstance(frame.f_locals.get("self"), pytest.FixtureDef)
    ]
    if not scopes and isinstance(error, BaseExceptionGroup):
        return all(map(_comes_from_shared_fixture, error.exceptions))
    return bool(scopes) and scopes[-1] != "function"


def add_late_assertions(state: EpisodeItem, ended: Episode | None) -> Episode | None:
    """Add assertions made after the episode's end; None if nothing changed.

    After an error they only warn: the effects of an infrastructure error are no agent failure.
    """
    late = [] if state.running is None else state.running.late_assertions
    if not late or state.final_episode is None:
        return ended
    if state.final_episode.outcome == "error":
        late = [assertion.model_copy(update={"severity": "warning"}) for assertion in late]
    return add_assertions(ended or state.final_episode, late, "in teardown")


def add_assertions(episode: Episode, assertions: Sequence[Assertion], phase: str) -> Episode:
    """Return the episode with assertions that its recorder does not contain."""
    if not assertions:
        return episode
    names = "; ".join(a.name for a in assertions if not a.passed and a.severity == "error")
    added = f"{phase} failed: {names}" if names else None
    reasons = [reason for reason in (episode.reason, added) if reason]
    return Episode.model_validate(
        {
            **dict(episode),
            "assertions": (*episode.assertions, *assertions),
            "reason": "; ".join(reasons) or None,
        }
    )
