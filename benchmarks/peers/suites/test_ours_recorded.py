"""Ours, with the agent of the bound called by the test, which records the turn by hand."""

from __future__ import annotations

from typing import Any

import pytest
from agent import build_agent
from work import NUMBERS, answer_of, prompt_of

AGENT = build_agent()


@pytest.mark.parametrize("number", NUMBERS)
async def test_episode(episode: Any, number: int) -> None:
    prompt = prompt_of(number)
    with episode.turn(prompt) as turn:
        result = await AGENT.run(prompt)
        turn.tool_call("echo", {"text": prompt}, result=prompt)
        turn.reply(result.output, tokens=result.usage.total_tokens)
    assert result.output == answer_of(number)
