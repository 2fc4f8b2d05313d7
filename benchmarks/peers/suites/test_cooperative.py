"""pytest-asyncio-cooperative: its marker; its option says how many run at once."""

from __future__ import annotations

import pytest
from agent import build_agent
from work import NUMBERS, answer_of, prompt_of

AGENT = build_agent()


@pytest.mark.asyncio_cooperative
@pytest.mark.parametrize("number", NUMBERS)
async def test_episode(number: int) -> None:
    assert (await AGENT.run(prompt_of(number))).output == answer_of(number)
