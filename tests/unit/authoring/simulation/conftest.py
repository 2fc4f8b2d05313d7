"""The recorder of a running episode."""

from __future__ import annotations

import itertools

import pytest

from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode
from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    activate_episode,
    deactivate_episode,
)


@pytest.fixture
def recorder():
    """A recorder with a clock that advances by 0.1 s each time that it is read."""
    ticks = itertools.count()
    recorder = EpisodeRecorder(build_initial_episode("refund"), clock=lambda: next(ticks) / 10)
    activate_episode(RunningEpisode("strict", recorder))
    yield recorder
    deactivate_episode()
