"""Runs without a session: in the active episode, or in a new session."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from ci_agent_eval.contract.clock import read_clock
from ci_agent_eval.engine.result import AgentResult
from ci_agent_eval.engine.run_imports import import_before_episodes
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.active_episode import get_active_episode


@asynccontextmanager
async def open_session() -> AsyncIterator[tuple[EngineSession, str]]:
    """Yield the session of the active episode and the episode's id; else a new session."""
    active = get_active_episode()
    if active is not None and not active.ended and active.fixture is not None:
        runs = active.fixture("aitest_run")
        yield runs.engine, runs.episode_id
        return
    async with EngineSession(environ=os.environ, clock=read_clock) as session:
        yield session, "outside of episodes"


async def run_without_session(
    run: Callable[..., Awaitable[AgentResult]], own: Mapping[str, Any], **arguments: Any
) -> AgentResult:
    """Run an agent in the active episode; outside of episodes, with `run` in a new session.

    `own` holds the arguments that an episode sets. Raises InputError if they are given in one.
    """
    active = get_active_episode()
    if active is None or active.ended or active.fixture is None:
        import_before_episodes(has_runs=True)
        async with EngineSession(environ=os.environ, clock=read_clock) as session:
            return await run(session=session, **own, **arguments)
    names = [name for name, value in own.items() if value is not None]
    if names:
        raise InputError(
            f"aitest_run: the running episode sets {', '.join(names)}; leave it out, or give a "
            "session of your own, whose runs the episode does not contain"
        )
    recorded: AgentResult = await active.fixture("aitest_run")(raises=False, **arguments)
    return recorded
