"""The recorder of a running episode."""

from __future__ import annotations

import pytest

from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    activate_episode,
    deactivate_episode,
)
from tests.unit.authoring.simulation.recorders import build_recorder


@pytest.fixture
def recorder():
    recorder = build_recorder()
    activate_episode(RunningEpisode("strict", recorder))
    yield recorder
    deactivate_episode()
