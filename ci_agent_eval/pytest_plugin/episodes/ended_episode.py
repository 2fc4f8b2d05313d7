"""The episode of a test after each phase: setup, call and teardown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from traceback import extract_tb
from typing import Any

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.jsonable import clean_text, describe_error
from ci_agent_eval.contract.plugin_columns import (
    MAX_COLUMNS,
    MAX_NAME,
    MAX_TEXT,
    ColumnValue,
    check_column_name,
    check_column_value,
)
from ci_agent_eval.pytest_plugin.episodes.endings import (
    Ending,
    EpisodeFailed,
    EpisodeItem,
    get_ending_after_subtests,
    is_from_subtest,
    shorten_message,
)
from ci_agent_eval.pytest_plugin.evaluation import measurement
from ci_agent_eval.pytest_plugin.terminal import LOST_REASON


def build_lost_episode(initial: Episode) -> Episode:
    """Return the episode of a test that never ended."""
    return _replace_ending(initial, Ending("error", LOST_REASON))


def update_after_phase(
    state: EpisodeItem, call: pytest.CallInfo[None], report: pytest.TestReport, ending: Ending
) -> Episode | None:
    """Return the episode after a phase, or None if the phase changes nothing."""
    if report.when == "teardown":
        return measurement.add_late_assertions(state, _update_after_teardown(state, ending))
    if report.when == "setup" and report.passed:
        return None
    if state.final_episode is not None:
        return _update_after_judgement(state.final_episode, call, ending)
    if call.excinfo is not None and is_from_subtest(state, call.excinfo.value):
        ending = get_ending_after_subtests(state)
    return finish_episode(state, ending)


def finish_episode(state: EpisodeItem, ending: Ending) -> Episode:
    """Finish the episode; without a recorder its setup failed before the fixture was created."""
    if state.running is not None:
        state.running.ended = True
    asserted = state.has_counted_assertion
    if state.recorder is not None:
        note_cassette_misses(state)
        ended = state.recorder.finish(
            ending.outcome, ending.reason, failed_assertion=ending.assertion, asserted=asserted
        )
        return _replace_ending(ended, ending) if ending.expected else ended
    assert state.initial_episode is not None, "an episode begins before it ends"  # noqa: S101 - see begin
    early = () if state.running is None else tuple(state.running.early_assertions)
    ended = _replace_ending(state.initial_episode, ending)
    ended = measurement.add_assertions(ended, early, "in setup")
    return Episode.model_validate({**dict(ended), "asserted": asserted})


def _replace_ending(episode: Episode, ending: Ending) -> Episode:
    """Return the episode with another ending; for an expected failure, assertions only warn."""
    update: dict[str, Any] = {"outcome": ending.outcome, "reason": ending.reason}
    if ending.expected:
        update["assertions"] = tuple(
            a if a.passed else a.model_copy(update={"severity": "warning"})
            for a in episode.assertions
        )
    return episode.model_copy(update=update)


def _update_after_judgement(
    episode: Episode, call: pytest.CallInfo[None], ending: Ending
) -> Episode:
    """Keep the judgement, unless an xfail or another plugin changed the outcome."""
    is_own_failure = call.excinfo is not None and isinstance(call.excinfo.value, EpisodeFailed)
    is_known = is_own_failure or episode.outcome == "failed"
    if ending.outcome == "passed" or (is_known and ending.outcome == "failed"):
        return episode
    if ending.assertion is not None:
        # Another plugin failed the test for a reason that the episode does not contain.
        episode = measurement.add_assertions(episode, [ending.assertion], "after the test")
    if not is_own_failure:
        # It has another reason; unittest's failures are known only after the judgement.
        episode = episode.model_copy(update={"missing_evidence": ()})
    return _replace_ending(episode, ending)


def _update_after_teardown(state: EpisodeItem, ending: Ending) -> Episode | None:
    """Turn a broken teardown into an error, unless the agent had failed before it."""
    episode = state.final_episode
    if episode is None:
        return finish_episode(state, Ending("skipped", "the test was set up but not called"))
    return None if ending.outcome == "passed" else end_in_error(episode, ending.reason)


def end_in_error(episode: Episode, reason: str | None) -> Episode:
    """Return the episode as an error in its teardown; a failed one stays failed."""
    if episode.outcome == "failed":
        reason = f"{episode.reason or 'a check failed'}; then in teardown: {reason}"
        return episode.model_copy(update={"reason": reason})
    return _replace_ending(episode, Ending("error", f"in teardown: {reason}"))


def list_problems(state: EpisodeItem) -> list[str]:
    """Return the first model request that the cassette refused, and the recorder's problems."""
    cassette = None if state.running is None else state.running.cassette
    missed = [] if cassette is None else cassette.refusals
    problems = [f"the cassette did not answer a request: {missed[0]}"] if missed else []
    if state.recorder is not None and not problems:
        problems += state.recorder.list_problems()
    return problems


def fail_late_records(state: EpisodeItem, report: pytest.TestReport, ending: Ending) -> Ending:
    """Fail the report of the teardown if a record was refused since the episode had ended."""
    late = [] if state.recorder is None else state.recorder.late_refusals
    episode = state.final_episode
    if not late or not report.passed or episode is None or episode.outcome != "passed":
        return ending
    report.outcome, report.longrepr = "failed", late[0]
    return Ending("error", late[0])


def note_cassette_misses(state: EpisodeItem) -> None:
    """Record the cassette misses of requests outside of runs, too."""
    if state.recorder is not None and state.running is not None and state.running.cassette:
        state.recorder.note_cassette_misses(state.running.cassette.misses)


_ERRORS = (Exception, pytest.fail.Exception, pytest.skip.Exception)


def call_episode_hooks(
    item: pytest.Item,
    report: pytest.TestReport,
    episode: Episode,
    redact: Callable[[Episode], Episode],
) -> Episode | None:
    """Call the hooks with the redacted episode; return the changed episode, or None.

    A failing hook also fails the report of the teardown.
    """
    columns_hook, episode_hook = (
        item.ihook.pytest_agent_eval_columns,
        item.ihook.pytest_agent_eval_episode,
    )
    ended = episode
    try:
        # Redacting takes time, and most projects have none of the hooks.
        if columns_hook.get_hookimpls():
            found = columns_hook(item=item, episode=redact(ended))
            columns = _merge_columns(ended.columns, found)
            # The conversation is left out, so that it is not redacted again.
            added = ended.model_copy(update={"columns": columns, "trajectory": None})
            # A secret that is cut is not recognized any more.
            short = {name: _cut_value(value) for name, value in redact(added).columns.items()}
            ended = ended.model_copy(update={"columns": short})
    except pytest.exit.Exception:
        raise
    except _ERRORS as error:
        ended = _note_failure(report, ended, "pytest_agent_eval_columns", error)
    try:
        if episode_hook.get_hookimpls():
            episode_hook(item=item, episode=redact(ended))
    except pytest.exit.Exception:
        raise
    except _ERRORS as error:
        ended = _note_failure(report, ended, "pytest_agent_eval_episode", error)
    return None if ended is episode else ended


def _merge_columns(own: Mapping[str, ColumnValue], found: Iterable[Any]) -> dict[str, ColumnValue]:
    """Add the results of all implementations to the episode's own columns.

    Raises ValueError for an invalid one.
    """
    columns = dict(own)
    for given in found:
        if not isinstance(given, Mapping):
            raise ValueError(f"it returned a {type(given).__name__}, not a mapping")  # noqa: TRY004 - described as one problem
        for key, value in given.items():
            name = _check_name(key)
            if name in columns:
                raise ValueError(f"the column {name!r} is returned twice; rename one")
            try:
                columns[name] = check_column_value(value)
            except ValueError as error:
                raise ValueError(f"the column {name!r} {error}") from None
    if len(columns) > MAX_COLUMNS:
        raise ValueError(f"there are {len(columns)} columns; return at most {MAX_COLUMNS}")
    return columns


def _check_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise ValueError(f"the name {name!r} is not a text of 1 to {MAX_NAME} characters")
    try:
        return check_column_name(clean_text(name))
    except ValueError as error:
        raise ValueError(f"the name {name!r} {error}") from None


def _cut_value(value: ColumnValue) -> ColumnValue:
    return value[:MAX_TEXT] if isinstance(value, str) else value


def _note_failure(
    report: pytest.TestReport, episode: Episode, hook: str, error: BaseException
) -> Episode:
    """Fail the report of the teardown, and return the episode as an error."""
    failed = f"the hook {hook} failed{_find_place(error)}"
    problem = f"{failed}: {shorten_message(describe_error(error))}; correct it"
    if report.passed:
        report.outcome = "failed"
        report.longrepr = problem
    else:
        report.sections.append(("agent-eval", problem))
    return end_in_error(episode, problem)


def _find_place(error: BaseException) -> str:
    """Return the place of the hook's implementation, as ` (conftest.py:3)`."""
    for frame in extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.parent.name != "pluggy" and frame.filename != __file__:
            return f" ({path.name}:{frame.lineno})"
    return ""
