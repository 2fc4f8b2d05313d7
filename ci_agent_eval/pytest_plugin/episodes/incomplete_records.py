"""Why the record of an episode is incomplete, also where the test or its agent caught the error."""

from __future__ import annotations

import pytest

from ci_agent_eval.pytest_plugin.collection.detection import EpisodeItem
from ci_agent_eval.pytest_plugin.episodes.endings import Ending


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
