"""Ours, with the agent of the bound: `aitest_run` takes it as it is and records its turns."""

from __future__ import annotations

from typing import Any

import pytest
from agent import build_agent
from work import NUMBERS, answer_of, prompt_of

AGENT = build_agent()


@pytest.mark.parametrize("number", NUMBERS)
async def test_episode(aitest_run: Any, number: int) -> None:
    result = await aitest_run(AGENT, prompt_of(number))
    assert result.final_response == answer_of(number)
