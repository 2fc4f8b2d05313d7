"""Ours, with a function as the agent: a loop written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import Loop
from work import NUMBERS, answer_of, prompt_of

from ci_agent_eval.engine import Reply

LOOP = Loop()


async def respond(message: str) -> Reply:
    """Answer, and say what was called and used."""
    answer = await LOOP.answer(message)
    return Reply(
        text=answer.text,
        tool_calls=answer.calls,
        usage={"input": answer.input_tokens, "output": answer.output_tokens},
    )


@pytest.mark.parametrize("number", NUMBERS)
async def test_episode(aitest_run: Any, number: int) -> None:
    result = await aitest_run(respond, prompt_of(number))
    assert result.final_response == answer_of(number)
