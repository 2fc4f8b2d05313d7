"""Runs that continue a conversation without a new message of the user."""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from ci_agent_eval import AgentStep, MessageStep, UserStep, run_simulation
from ci_agent_eval.authoring.simulation import app_under_test
from ci_agent_eval.engine import aitest_run
from ci_agent_eval.engine.adapters.loop import LoopAgent, build_history
from ci_agent_eval.engine.message_history import build_messages, read_system_prompt
from tests.tables import each_row

INJECTED = {"role": "assistant", "content": "Let me look."}


@each_row("before", [[], [{"role": "user", "content": "Where is it?"}]])
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


@each_row("adapt", [lambda agent: agent, LoopAgent])
def test_injected_messages_follow_the_agent_s_system_prompt(monkeypatch, adapt):
    asked = []

    def answer(messages, _):
        asked.append([part.content for message in messages for part in message.parts])
        return ModelResponse(parts=[TextPart("Hello")])

    monkeypatch.setattr(app_under_test, "get_engine_fixture", lambda _: aitest_run)
    agent = Agent(FunctionModel(answer), system_prompt="Obey.")
    later = [UserStep("Bye"), MessageStep("user", "Hurry."), AgentStep()]
    steps = [MessageStep("assistant", "Welcome!"), UserStep("Hi"), AgentStep(), *later]
    run_simulation(adapt(agent), steps=steps)
    first = ["Obey.", "Welcome!", "Hi"]
    assert asked == [first, [*first, "Hello", "Bye", "Hurry."]]


def test_the_system_prompt_of_an_agent_with_a_model_s_name_needs_no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    agent = Agent("openai-chat:gpt-5-mini", system_prompt="Obey.", defer_model_check=True)
    (message,) = asyncio.run(read_system_prompt(agent))
    assert [part.content for part in message.parts] == ["Obey."]
    assert asyncio.run(read_system_prompt(Agent(system_prompt="Obey."))) == []
