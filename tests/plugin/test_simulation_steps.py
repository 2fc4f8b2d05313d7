"""Scripts of steps with agents of the engine: what their models are asked."""

from __future__ import annotations

import pytest

from tests.model_server import ModelServer

SUITE = """
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from ci_agent_eval import (
    AgentStep, MessageFile, MessageStep, ToolResultStep, UserStep, conversation, run_simulation
)
from ci_agent_eval.engine import Agent, Provider

URL = {url!r}
declared = Agent(Provider("openai-chat:gpt-5-mini", base_url=URL), system_prompt="Help.")
framework = PydanticAgent(
    OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(base_url=URL, api_key="k"))
)

def run(agent, simulation):
    steps = [
        MessageStep("assistant", "Welcome!"),
        UserStep("Where is order 7?"),
        ToolResultStep("find_order", {{"status": "shipped"}}, {{"order": 7}}),
        AgentStep(),
        UserStep("Thanks"),
        AgentStep(),
    ]
    assert simulation(agent, steps=steps).turns == 2

def test_declared(simulation):
    run(declared, simulation)

def test_framework(simulation):
    run(framework, simulation)

def test_first(simulation):
    assert simulation(declared, steps=[AgentStep()]).turns == 1

PHOTO = MessageFile(b"bytes", "image/png")

def test_photo(simulation):
    assert simulation(declared, steps=[UserStep("A photo", files=[PHOTO]), AgentStep()]).turns == 1

@conversation("sends a photo", lambda: declared)
def test_sent(agent):
    assert agent.send("A photo", files=[PHOTO]) == "A cup."
"""


@pytest.fixture
def ran(suite):
    script = {
        "order 7": ["", "", "It is shipped.", "Bye."],
        "": ["Welcome!"],
        "A photo": ["A cup."],
    }
    with ModelServer(script) as server:
        suite.write(SUITE.format(url=server.base_url))
        ran = suite.run("-W", "error")
    return ran, [asked.body["messages"] for asked in server.requests]


def test_agents_of_the_engine_get_what_is_injected(ran):
    ran, asked = ran
    ran.result.assert_outcomes(passed=5)
    for test in ("test_declared", "test_framework"):
        turns = ran.episodes[test].trajectory.turns
        assert [(turn.role, turn.content) for turn in turns if not turn.injected] == [
            ("user", "Where is order 7?"),
            ("assistant", "It is shipped."),
            ("user", "Thanks"),
            ("assistant", "Bye."),
        ]
        assert sum(turn.injected for turn in turns) == 2
    (first,) = [m for m in asked if m[-1]["role"] == "tool" and m[0]["role"] == "system"]
    assert [each["role"] for each in first] == ["system", "assistant", "user", "assistant", "tool"]
    assert first[-1]["content"] == '{"status": "shipped"}'
    (spoke,) = ran.episodes["test_first"].trajectory.turns
    assert (spoke.role, spoke.content) == ("assistant", "Welcome!")
    photos = [m for m in asked if isinstance(m[-1]["content"], list)]
    assert [m[-1]["content"] for m in photos] == [
        [
            {"type": "text", "text": "A photo"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,Ynl0ZXM="}},
        ]
    ] * 2
