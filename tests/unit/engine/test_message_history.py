"""Runs that continue a conversation without a new message of the user."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from ci_agent_eval.engine import aitest_run
from ci_agent_eval.engine.message_history import build_history, build_messages

INJECTED = {"role": "assistant", "content": "Let me look."}


@pytest.mark.parametrize("before", [[], [{"role": "user", "content": "Where is it?"}]])
def test_the_model_is_asked_after_an_injected_answer(before):
    asked = []

    def answer(messages, _):
        asked.append(messages)
        return ModelResponse(parts=[TextPart("It is shipped.")])

    history = build_messages([*before, INJECTED])
    result = asyncio.run(aitest_run(Agent(FunctionModel(answer)), "", messages=history))
    assert len(asked) == 1
    assert result.final_response == "It is shipped."
    assert [(turn.role, turn.content) for turn in result.trajectory.turns] == [
        ("assistant", "It is shipped.")
    ]


def test_only_an_answer_without_a_prompt_gets_a_request():
    (injected,) = build_messages([INJECTED])
    asked = build_history([injected], has_prompt=False)
    assert asked is not None
    assert isinstance(asked[-1], ModelRequest)
    assert build_history([injected], has_prompt=True) == [injected]
    assert build_history([], has_prompt=False) is None
    open_call = ModelResponse(parts=[ToolCallPart("find_order")])
    assert build_history([open_call], has_prompt=False) == [open_call]
