"""The episode of a test after each phase: setup, call and teardown."""

from __future__ import annotations

from typing import Any

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.pytest_plugin.collection.detection import EpisodeItem
from ci_agent_eval.pytest_plugin.episodes.endings import (
    Ending,
    EpisodeFailed,
    get_ending_after_subtests,
    is_from_subtest,
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
