"""pytest-asyncio-concurrent: one group; it has no limit of its own, hence the semaphore."""

from __future__ import annotations

import asyncio

import pytest
from agent import build_agent
from work import AT_ONCE, NUMBERS, answer_of, prompt_of

AGENT = build_agent()
LIMIT = asyncio.Semaphore(AT_ONCE)


@pytest.mark.asyncio_concurrent(group="episodes")
@pytest.mark.parametrize("number", NUMBERS)
async def test_episode(number: int) -> None:
    async with LIMIT:
        assert (await AGENT.run(prompt_of(number))).output == answer_of(number)
