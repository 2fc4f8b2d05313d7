"""The episode that is running, as far as a simulation needs it: its recorder and fixtures."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from ci_agent_eval.authoring.simulation.steps import run_in_new_loop
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.recording.active_episode import get_active_episode

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

LOOP_FIXTURE = "_agent_eval_run"
"""Fixture of the plugin that runs an awaitable on the loop which its async tests share."""


def get_active_recorder() -> EpisodeRecorder | None:
    """Return the recorder of the running episode, or None outside of any."""
    running = get_active_episode()
    return None if running is None or running.ended else running.recorder


def run_awaitable(awaitable: Awaitable[Any]) -> Any:
    """Run an awaitable in plain code: on the episodes' loop, or outside of any on its own."""
    running = get_active_episode()
    if running is None or running.fixture is None:
        return run_in_new_loop(awaitable)
    return running.fixture(LOOP_FIXTURE)(awaitable)


def get_engine_fixture(what: str) -> Any:
    """Return the episode's engine, the fixture `aitest_run`. Raises InputError outside of one."""
    running = get_active_episode()
    if running is None or running.fixture is None:
        raise InputError(
            f"{what} needs a running episode: mark the test with @pytest.mark.episode, or let "
            "it ask for the fixture `simulation`"
        )
    return running.fixture("aitest_run")
