"""Runs of agents in a session of the engine, all on one event loop as in a test run."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from itertools import count

from ci_agent_eval.engine import EngineSession, aitest_run

_LOOP = asyncio.new_event_loop()
"""Clients of the frameworks keep their connections, which belong to a loop."""

TIMEOUT_S = 600
"""Limit of a run, which only one that hangs reaches: 20 coding agents may share a busy processor."""


def _count_time():
    """Return a clock that advances by a millisecond each time it is read."""
    return partial(next, count(step=0.001))


def run(*asks, mode="off", store=None):
    """Run functions of a session at once; return their results."""

    async def run_all():
        async with EngineSession(
            environ=os.environ, clock=_count_time(), cassette_mode=mode, cassettes=store
        ) as session:
            return await asyncio.gather(*(ask(session) for ask in asks))

    results = _LOOP.run_until_complete(run_all())
    return results[0] if len(results) == 1 else results


def ask(agent, prompt, **options):
    """Return a function that runs an agent in a session."""

    async def go(session):
        return await aitest_run(agent, prompt, session=session, timeout_s=TIMEOUT_S, **options)

    return go


def talk(agent, *prompts, **options):
    """Return a function that runs a conversation in a session; it returns the last result."""

    async def go(session):
        messages, result = None, None
        for prompt in prompts:
            result = await aitest_run(
                agent, prompt, session=session, timeout_s=TIMEOUT_S, messages=messages, **options
            )
            messages = result.messages
        return result

    return go
