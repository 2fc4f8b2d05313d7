"""Access to the running episode's recorder and fixtures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.recording.active_episode import get_active_episode

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

LOOP_FIXTURE = "_agent_eval_run"
"""The plugin's fixture that runs an awaitable on the event loop of async tests."""


def get_active_recorder() -> EpisodeRecorder | None:
    """Return the running episode's recorder, or None outside of an episode."""
    running = get_active_episode()
    return None if running is None or running.ended else running.recorder


def run_awaitable(awaitable: Awaitable[Any]) -> Any:
    """Run an awaitable in sync code: on the episodes' event loop, or on a new one."""
    running = get_active_episode()
    if running is None or running.fixture is None:
        return _run_in_new_loop(awaitable)
    return running.fixture(LOOP_FIXTURE)(awaitable)


def _run_in_new_loop(awaitable: Awaitable[Any]) -> Any:
    async def run() -> Any:
        return await awaitable

    return asyncio.run(run())


def get_engine_fixture(owner: str) -> Any:
    """Return the fixture `aitest_run`. Raises InputError outside of an episode."""
    running = get_active_episode()
    if running is None or running.fixture is None:
        raise InputError(
            f"{owner} needs a running episode: mark the test with @pytest.mark.episode, or let "
            "it ask for the fixture `simulation`"
        )
    return running.fixture("aitest_run")
