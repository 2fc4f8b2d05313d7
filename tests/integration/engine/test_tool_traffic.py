"""Model calls that tools of PydanticAI and declared agents make with other clients."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from textwrap import indent

import anthropic
import openai
import pytest
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider

from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.engine.declarations import Agent as DeclaredAgent
from ci_agent_eval.engine.declarations import CLIServer, Provider
from ci_agent_eval.engine.limits import RunLimits
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.redaction import Redactor
from tests.integration.engine import rig
from tests.integration.engine.rig import run_agent
from tests.model_server import ModelServer
from tests.model_server.script import call

ASKS = {"tool_calls": [call("ask_expert", topic="tea")]}
SCRIPT = {"main": [ASKS, "It is {tool}"], "tea": ["green"]}


@pytest.fixture
def server():
    with ModelServer(SCRIPT) as running:
        yield running


def model_of(server):
    return OpenAIChatModel(
        "gpt-5-mini", provider=OpenAIProvider(base_url=server.base_url, api_key="k")
    )


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


def run_with_cassette(folder, mode, agent, **options):
    with CassetteStore(mode, Redactor.from_environ({})).episode("e", folder, "s") as session:
        return run_agent(agent, "main", cassette_session=session, **options)


def comparable(result):
    """The turns and agents without times and ids of calls, which a cassette numbers."""
    calls = {"duration_ms": None, "id": None}
    ignored = dict.fromkeys(("source", "latency_ms", "first_byte_ms"))
    turns = [
        turn.model_copy(
            update={
                **ignored,
                "tool_calls": tuple(one.model_copy(update=calls) for one in turn.tool_calls),
            }
        )
        for turn in result.turns
    ]
    agents = [agent.model_copy(update={"call_id": None}) for agent in result.trajectory.agents]
    return turns, agents


@pytest.mark.parametrize("model", EXPERTS)
def test_a_model_call_in_a_tool_is_a_turn_of_a_nested_agent(server, model):
    result = run_agent(agent_with(EXPERTS[model](server), server), "main")
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


@pytest.mark.parametrize("model", EXPERTS)
def test_a_model_call_in_a_tool_is_recorded_and_replayed(tmp_path, server, model):
    agent = agent_with(EXPERTS[model](server), server)
    live = run_with_cassette(tmp_path, "record", agent)
    asked = len(server.requests)
    again = run_with_cassette(tmp_path, "replay", agent)
    assert len(server.requests) == asked
    assert comparable(again) == comparable(live)
    assert again.cost_usd == live.cost_usd


def test_a_model_call_in_a_tool_that_is_on_no_cassette_fails_the_replay(tmp_path, server):
    def ask_expert(topic: str) -> str:
        return "green"

    run_with_cassette(tmp_path, "record", agent_with(ask_expert, server))
    asked = len(server.requests)
    missed = run_with_cassette(tmp_path, "replay", agent_with(asks_openai(server), server))
    assert len(server.requests) == asked
    assert (missed.stop_reason, missed.outcome) == ("model_error", "error")
    assert "has no recording of this request" in missed.error


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (RunLimits(tokens=200), "token_limit"),
        (RunLimits(max_turns=2), "max_turns"),
        (RunLimits(max_turns=1), "max_turns"),
    ],
)
@pytest.mark.parametrize("model", ["gpt-5-nano", "gpt-5-mini"])
def test_model_calls_in_tools_count_in_the_limits(server, limits, reason, model):
    result = run_agent(agent_with(EXPERTS[model](server), server), "main", limits=limits)
    assert (result.stop_reason, result.outcome) == (reason, "failed")
    assert len(server.requests) == (1 if limits.max_turns == 1 else 2)


def test_a_tool_that_loops_over_a_model_is_stopped(server):
    ask = asks_openai(server)

    def ask_expert(topic: str) -> str:
        while True:
            ask(topic)

    result = run_agent(agent_with(ask_expert, server), "main", limits=RunLimits(max_turns=4))
    assert result.stop_reason == "max_turns"
    assert len(server.requests) == 4
    assert len(result.trajectory.agent_turns) == 4


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


def test_a_failure_that_a_tool_caught_does_not_hide_a_later_bug(server):
    ask = asks_openai(server)

    def ask_expert(topic: str) -> str:
        try:
            return ask(topic)
        except openai.InternalServerError:
            return "unknown"

    def write_down(text: str) -> str:
        raise KeyError(text)

    writes = {"tool_calls": [call("write_down", text="unknown")]}
    server.script.extend(type(server.script)({"main": [ASKS, writes, "Done"], "tea": [500]}))
    result = run_agent(Agent(model_of(server), tools=[ask_expert, write_down]), "main")
    assert (result.stop_reason, result.outcome) == ("agent_error", "failed")
    assert "tool 'write_down' broke: KeyError" in result.error


@pytest.mark.parametrize("topics", [("tea", "milk"), ("milk", "tea")])
def test_the_calls_of_each_tool_are_counted(server, topics):
    async def ask_expert(topic: str) -> str:
        model = {"tea": "a-model-without-a-price", "milk": "gpt-5-nano", "oil": "gpt-5-nano"}[topic]
        async with openai.AsyncOpenAI(
            base_url=server.base_url, api_key="k", max_retries=0
        ) as client:
            messages = [{"role": "user", "content": topic}]
            try:
                await client.chat.completions.create(model=model, messages=messages)
            except openai.BadRequestError:
                return "unknown"
        return topic

    asks = {"tool_calls": [call("ask_expert", topic=topic) for topic in (*topics, "oil")]}
    server.script.extend(type(server.script)({"main": [asks, "Done"], "milk": [400], "oil": ["x"]}))
    traffic = run_agent(agent_with(ask_expert, server), "main").traffic
    assert (traffic.requests, traffic.failed) == (3, 1)
    assert traffic.unpriced_models == ("a-model-without-a-price",)


def test_parallel_tools_are_agents_of_their_own(server):
    both = {"tool_calls": [call("ask_expert", topic="tea"), call("ask_expert", topic="milk")]}
    server.script.extend(type(server.script)({"main": [both, "Done"], "milk": ["white"]}))
    result = run_agent(agent_with(asks_anthropic(server), server), "main")
    assert [(turn.agent, turn.content) for turn in result.trajectory.agent_turns] == [
        ("1", ""),
        ("1.1", "green"),
        ("1.2", "white"),
        ("1", "Done"),
    ]
    first, second = result.all_tool_calls
    assert [agent.call_id for agent in result.trajectory.agents] == [None, first.id, second.id]


def reviewed_agent(server):
    """An agent whose instructions and output validator ask a model."""
    ask = asks_openai(server)
    agent = Agent(model_of(server), tools=[ask])

    @agent.instructions
    def write_instructions() -> str:
        return ask("manners")

    @agent.output_validator
    def review(text: str) -> str:
        if (advice := ask(f"review of {text!r}")) != "fine":
            raise ModelRetry(advice)
        return text

    return agent


REVIEWS = {
    "main": [ASKS, "Green", "It is green"],
    "manners": ["Be polite"],
    "'Green'": ["too short"],
    "'It is green'": ["fine"],
}


def test_model_calls_outside_of_tools_stand_where_they_took_place(server):
    server.script.extend(type(server.script)(REVIEWS))
    result = run_agent(reviewed_agent(server), "main")
    assert [(turn.role, turn.content) for turn in result.turns if turn.agent != "1.1"] == [
        ("user", "main"),
        ("assistant", ""),
        ("system", "tea"),
        ("assistant", "green"),
        ("assistant", "Green"),
        ("system", "too short"),
        ("assistant", "It is green"),
    ]
    before = [
        (result.turns[place - 1].content, turn.content)
        for place, turn in enumerate(result.turns)
        if turn.agent == "1.1" and turn.role == "system"
    ]
    assert before == [
        ("main", "manners"),
        ("green", "manners"),
        ("Green", "review of 'Green'"),
        ("too short", "manners"),
        ("It is green", "review of 'It is green'"),
    ]


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
    assert [turn.agent for turn in live.turns] == ["1", "1", "1.1", "1.1", "1"], live.error
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
    assert (result.trajectory.agents, result.traffic.requests) == ((), 0)
