"""The instructions of agents and the descriptions of their tools are in the results."""

from __future__ import annotations

import json

from tests.model_server import ModelServer
from tests.model_server.script import Step, call

SUITE = """
import anthropic, openai, pytest
from pydantic_ai import Agent as Loop
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from ci_agent_eval.engine import Agent, Provider

BASE, ROOT, TOLD = {base!r}, {root!r}, "Always state the exact amount."
PARAMETERS = {{"type": "object", "properties": {{"account": {{"type": "string"}}}}}}
KEYS = {{"api_key": "sk-test-of-nobody-at-all", "max_retries": 0}}

async def chat(message):
    messages = [{{"role": "system", "content": TOLD}}, {{"role": "user", "content": message}}]
    tool = {{"name": "get_balance", "description": "Returns a balance.", "parameters": PARAMETERS}}
    async with openai.AsyncOpenAI(base_url=BASE, **KEYS) as client:
        answer = await client.chat.completions.create(
            model="gpt-5-mini", messages=messages, tools=[{{"type": "function", "function": tool}}]
        )
    return answer.choices[0].message.content

async def messages(message):
    tool = {{"name": "get_balance", "description": "Returns a balance.", "input_schema": PARAMETERS}}
    async with anthropic.AsyncAnthropic(base_url=ROOT, **KEYS) as client:
        answer = await client.messages.create(
            model="claude-sonnet-5", max_tokens=9, system=TOLD, tools=[tool],
            messages=[{{"role": "user", "content": message}}],
        )
    return answer.content[0].text

async def responses(message):
    tool = {{"name": "get_balance", "description": "Returns a balance.", "parameters": PARAMETERS}}
    async with openai.AsyncOpenAI(base_url=BASE, **KEYS) as client:
        answer = await client.responses.create(
            model="gpt-5-mini", instructions=TOLD, input=message,
            tools=[{{"type": "function", "strict": False, **tool}}],
        )
    return answer.output_text

def get_balance(account: str) -> str:
    "Returns a balance."
    return "$12"

MODEL = OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(base_url=BASE, api_key="none"))
live = Loop(MODEL, name="live", instructions=TOLD, tools=[get_balance])
declared = Agent(Provider("openai:gpt-5-mini", base_url=BASE), system_prompt=TOLD)

@pytest.mark.parametrize("agent", [chat, messages, responses, live, declared])
async def test_run(aitest_run, agent):
    result = await aitest_run(agent, "How much do I have?")
    assert result.effective_system_prompt == TOLD

@pytest.mark.parametrize("agent", [chat, messages, responses])
async def test_own_code(episode, agent):
    assert await agent("How much do I have?")
"""


def list_texts(episode):
    found = episode["conditions"].get("instructions", [])
    return [(one["kind"], one.get("name"), one["text"]) for one in found]


def test_every_kind_of_agent_shows_what_its_model_is_told(pytester, suite):
    with ModelServer({"*": ["It is $12."]}) as server:
        pytester.makepyfile(SUITE.format(base=server.base_url, root=server.root_url))
        result = suite.run_in_process("--episode-report-dir=out", "--episode-concurrency=4")
    result.assert_outcomes(passed=8)
    episodes = json.loads((pytester.path / "out/results.json").read_text())["episodes"]
    for episode in episodes:
        agent, *tools = list_texts(episode)
        assert agent == ("agent", None, "Always state the exact amount."), episode["nodeid"]
        assert len(tools) == ("agent4" not in episode["nodeid"])
        for kind, name, text in tools:
            assert (kind, name) == ("tool", "get_balance")
            assert text.startswith("Returns a balance.\naccount: {")


TEAM = """
import openai, pytest

async def ask(told, message, tools=()):
    tools = [{{"type": "function", "function": {{"name": name, "parameters": {{}}}}}} for name in tools]
    messages = [{{"role": "system", "content": told}}, {{"role": "user", "content": message}}]
    async with openai.AsyncOpenAI(base_url={base!r}, api_key="x", max_retries=0) as client:
        answer = await client.chat.completions.create(
            model="gpt-5-mini", messages=messages, **({{"tools": tools}} if tools else {{}})
        )
    return answer.choices[0].message

async def desk(message):
    said = await ask("Find the clerk. Key: sk-proj-abcdefghijklmnopqrstuvwx0123456789", message, ["ask_teller"])
    return (await ask("Be brief. " * 4_000, said.tool_calls[0].function.arguments)).content

async def test_team(aitest_run):
    assert (await aitest_run(desk, "How much?")).success
"""


def test_nested_agents_have_their_names_and_texts_have_neither_secrets_nor_any_length(
    pytester, suite
):
    script = {
        "How much?": [Step(tool_calls=[call("ask_teller", question="the balance")])],
        "*": ["It is $12."],
    }
    with ModelServer(script) as server:
        pytester.makepyfile(TEAM.format(base=server.base_url))
        suite.run_in_process("--episode-report-dir=out").assert_outcomes(passed=1)
    (episode,) = json.loads((pytester.path / "out/results.json").read_text())["episodes"]
    teller, desk, tool = list_texts(episode)
    assert [teller[:2], desk[:2]] == [("agent", "ask_teller"), ("agent", None)]
    assert tool == ("tool", "ask_teller", "")
    assert "Find the clerk" in desk[2]
    assert "sk-proj" not in desk[2]
    assert len(teller[2]) < 20_100
    assert "more characters, checksum" in teller[2]
