"""Traffic of tools and of the engine."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from textwrap import indent

import anthropic
import openai
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from ci_agent_eval.contract.episode import TrafficSummary
from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.engine.declarations import Agent as DeclaredAgent
from ci_agent_eval.engine.declarations import CLIServer, Provider
from ci_agent_eval.engine.limits import RunLimits
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.redaction import Redactor
from tests.integration.engine import rig
from tests.integration.engine.rig import model_of, record_and_replay, run_agent
from tests.model_server import ModelServer
from tests.model_server.script import call
from tests.tables import each_row

# Model calls that tools of PydanticAI and declared agents make with other clients.


ASKS = {"tool_calls": [call("ask_expert", topic="tea")]}
SCRIPT = {"main": [ASKS, "It is {tool}"], "tea": ["green"]}


@pytest.fixture
def server():
    with ModelServer(SCRIPT) as running:
        yield running


def asks_openai(server):
    def ask_expert(topic: str) -> str:
        with openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client:
            messages = [{"role": "user", "content": topic}]
            answer = client.chat.completions.create(model="gpt-5-nano", messages=messages)
        return answer.choices[0].message.content

    return ask_expert


def asks_anthropic(server):
    async def ask_expert(topic: str) -> str:
        async with anthropic.AsyncAnthropic(base_url=server.root_url, api_key="k") as client:
            answer = await client.messages.create(
                model="claude-haiku-4-5",
                max_tokens=100,
                messages=[{"role": "user", "content": topic}],
            )
        return answer.content[0].text

    return ask_expert


def asks_an_agent(server):
    async def ask_expert(topic: str) -> str:
        async with model_of(server) as model:
            return (await Agent(model, instructions="You are the expert.").run(topic)).output

    return ask_expert


def asks_a_script(server):
    async def ask_expert(topic: str) -> str:
        return (await Agent(TestModel(custom_output_text="green")).run(topic)).output

    return ask_expert


EXPERTS = {
    "gpt-5-nano": asks_openai,
    "claude-haiku-4-5": asks_anthropic,
    "gpt-5-mini": asks_an_agent,
    "test": asks_a_script,
}


def agent_with(tool, server):
    return Agent(model_of(server), tools=[tool])


def comparable(result):
    """The turns and agents without what a replay changes."""
    times = {"duration_ms": None}
    turns = [
        turn.model_copy(
            update={
                **(
                    {"latency_ms": None, "first_byte_ms": None} if turn.source == "scripted" else {}
                ),
                "source": None,
                "tool_calls": tuple(one.model_copy(update=times) for one in turn.tool_calls),
            }
        )
        for turn in result.turns
    ]
    return turns, result.trajectory.agents


@pytest.mark.parametrize("model", EXPERTS)
def test_a_model_call_in_a_tool_is_a_turn_of_a_nested_agent_and_replayed(tmp_path, server, model):
    agent = agent_with(EXPERTS[model](server), server)
    result, again = record_and_replay(tmp_path, server, agent)
    assert [(turn.role, turn.content, turn.agent) for turn in result.turns] == [
        ("user", "main", None),
        ("assistant", "", "1"),
        ("system", "tea", "1.1"),
        ("assistant", "green", "1.1"),
        ("assistant", "It is green", "1"),
    ]
    main, nested = result.trajectory.agents
    assert (main.id, nested.parent, nested.relation) == ("1", "1", "nested")
    assert (nested.name, nested.call_id) == ("ask_expert", result.all_tool_calls[0].id)
    expert = result.turns[3]
    assert expert.response_model == model
    assert expert.tokens is not None
    assert comparable(again) == comparable(result)
    assert again.cost_usd == result.cost_usd


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (RunLimits(tokens=200), "token_limit"),
        (RunLimits(max_turns=2), "max_turns"),
        (RunLimits(max_turns=1), "max_turns"),
    ],
)
def test_model_calls_in_tools_count_in_the_limits(server, limits, reason):
    result = run_agent(agent_with(asks_openai(server), server), "main", limits=limits)
    assert (result.stop_reason, result.outcome) == (reason, "failed")
    assert len(server.requests) == (1 if limits.max_turns == 1 else 2)


def test_a_tool_that_goes_on_without_its_model_does_not_fail_the_run(server):
    ask = asks_openai(server)

    def ask_expert(topic: str) -> str:
        try:
            return ask(topic)
        except openai.InternalServerError:
            return "unknown"

    server.script.extend(type(server.script)({"tea": [500]}))
    result = run_agent(agent_with(ask_expert, server), "main")
    assert (result.stop_reason, result.final_response) == ("completed", "It is unknown")
    assert result.traffic.failed == 1


PROGRAM = """
import json, os, sys, urllib.request
base = os.environ["OPENAI_BASE_URL"]
body = {"model": "gpt-5-nano", "messages": [{"role": "user", "content": sys.argv[1]}]}
request = urllib.request.Request(base + "/chat/completions", json.dumps(body).encode(),
    {"content-type": "application/json", "authorization": "Bearer k"})
with urllib.request.urlopen(request) as answer:
    print(json.load(answer)["choices"][0]["message"]["content"])
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "expert.py"
    path.write_text(PROGRAM)
    return f"{sys.executable} {path}"


def run_declared(server, program, folder, mode, **options):
    async def once():
        cli = CLIServer("expert", program, env={"OPENAI_BASE_URL": server.base_url})
        agent = DeclaredAgent(
            Provider("openai:gpt-5-mini", base_url=server.base_url), cli_servers=[cli]
        )
        store = CassetteStore(mode, Redactor.from_environ({}))
        async with EngineSession(
            environ={}, clock=time.monotonic, cassettes=store, cassette_mode=mode
        ) as session:
            with store.episode("e", folder, "s"):
                return await aitest_run(agent, "main", session=session, episode_id="e", **options)

    return asyncio.run(once())


def test_model_calls_of_a_program_are_recorded_replayed_and_counted(server, tmp_path, program):
    asks = {"tool_calls": [call("expert_execute", args="tea")]}
    server.script.extend(type(server.script)({"main": [asks, "It is {tool}"]}))
    live = run_declared(server, program, tmp_path / "cassettes", "record")
    assert [turn.agent for turn in live.turns] == [None, "1", "1.1", "1.1", "1"], live.error
    assert live.turns[3].content == "green"
    assert live.token_usage.total == 3 * 120
    asked = len(server.requests)
    again = run_declared(server, program, tmp_path / "cassettes", "replay")
    assert len(server.requests) == asked == 3
    assert comparable(again) == comparable(live)
    stopped = run_declared(
        server, program, tmp_path / "cassettes", "off", limits=RunLimits(tokens=200)
    )
    assert stopped.stop_reason == "token_limit"


def test_a_limit_does_not_hide_that_a_program_is_on_no_cassette(server, tmp_path, program):
    asks = {"tool_calls": [call("expert_execute", args="tea")]}
    server.script.extend(type(server.script)({"main": [asks, asks, "It is {tool}"]}))
    run_declared(server, program, tmp_path / "cassettes", "record")
    asked = len(server.requests)
    ask = f"try:\n{indent(PROGRAM, '    ')}except OSError:\n    pass\n"
    asks_other = ask.replace("sys.argv[1]", "'milk'")
    Path(program.split()[-1]).write_text(asks_other + ask + ask)
    missed = run_declared(
        server, program, tmp_path / "cassettes", "replay", limits=RunLimits(max_turns=2)
    )
    assert len(server.requests) == asked
    assert (missed.stop_reason, missed.outcome) == ("model_error", "error")
    assert "the cassette did not answer a request" in missed.error


def test_a_declared_agent_without_model_calls_in_tools_is_a_single_agent():
    result = rig.run(["hello"])
    assert (result.trajectory.agents, result.traffic.requests) == ((), 1)


# Declared and PydanticAI agents: what only the model traffic shows is in their turns.


SCRIPT_ENGINE_TRAFFIC = [{"tool_calls": [call("balance", account="checking")]}, '{"usd": 1500}']


class Balance(BaseModel):
    usd: int


def balance(account: str) -> int:
    """What an account holds."""
    return 1500


def get_openai(kind):
    def build(server):
        provider = OpenAIProvider(base_url=server.base_url, api_key="k")
        return kind("gpt-5-mini", provider=provider)

    return build


def get_anthropic(server):
    provider = AnthropicProvider(base_url=server.root_url, api_key="k")
    return AnthropicModel("claude-haiku-4-5", provider=provider)


MODELS = {
    "chat": (get_openai(OpenAIChatModel), "max_completion_tokens"),
    "responses": (get_openai(OpenAIResponsesModel), "max_output_tokens"),
    "anthropic": (get_anthropic, "max_tokens"),
}


def assert_traffic_is_in(turn, model, setting):
    assert (turn.requested_model, turn.response_model) == (model, model)
    assert turn.settings[setting] == 500
    assert 0 <= turn.first_byte_ms <= turn.latency_ms


@each_row("name", MODELS)
def test_turns_of_a_pydantic_agent_have_the_data_of_its_traffic(name):
    build, setting = MODELS[name]
    with ModelServer(SCRIPT_ENGINE_TRAFFIC) as server:
        model = build(server)
        agent = Agent(model, tools=[balance], model_settings={"max_tokens": 500})
        result = run_agent(agent)
    assert len(result.trajectory.agent_turns) == 2
    for turn in result.trajectory.agent_turns:
        assert_traffic_is_in(turn, model.model_name, setting)
    priced = (model.model_name,)  # the server is at no address of the price table
    assert result.traffic == TrafficSummary(requests=2, vendor_priced_models=priced)


def test_reasoning_tokens_and_typed_output_are_those_of_the_traffic():
    usage = {"input": 100, "output": 20, "reasoning": 8}
    with ModelServer([{"text": '{"usd": 1500}', "usage": usage}]) as server:
        agent = Agent(get_openai(OpenAIResponsesModel)(server), output_type=NativeOutput(Balance))
        turn = run_agent(agent).turns[-1]
    assert turn.tokens.reasoning == 8
    assert turn.typed_output == {"usd": 1500}
