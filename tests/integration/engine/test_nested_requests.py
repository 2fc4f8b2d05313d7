"""Requests to models from inside of a run: sub-agents, streams, and any other code."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from pydantic_ai import Agent, ModelRequest, RunContext, Tool
from pydantic_ai.direct import model_request
from pydantic_ai.models.test import TestModel

from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.model_traffic import attribution
from tests.integration.engine.rig import model_of, record_and_replay, run_with_cassette
from tests.model_server import ModelServer
from tests.model_server.script import call

ASKS = {"tool_calls": [call("delegate", topic="tea")]}
SCRIPT = {"main": [ASKS, ASKS, "It is {tool}"], "tea": ["green"]}


@pytest.fixture
def server():
    with ModelServer(SCRIPT) as running:
        yield running


async def ask_sub_agent(server, topic, **options):
    async with model_of(server) as model:
        return (
            await Agent(model, instructions="You are the sub-agent.").run(topic, **options)
        ).output


def shares_usage(server):
    async def delegate(ctx: RunContext[None], topic: str) -> str:
        return await ask_sub_agent(server, topic, usage=ctx.usage)

    return delegate


def runs_it_in_a_thread(server):
    def delegate(topic: str) -> str:
        return asyncio.run(ask_sub_agent(server, topic))

    return delegate


def main_agent(server, delegate):
    return Agent(model_of(server), tools=[delegate])


@pytest.mark.parametrize("delegates", [shares_usage, runs_it_in_a_thread])
def test_a_sub_agent_is_replayed_and_its_tokens_count_once(tmp_path, server, delegates):
    agent = main_agent(server, delegates(server))
    live, again = record_and_replay(tmp_path, server, agent)
    assert (live.stop_reason, live.final_response) == ("completed", "It is green")
    assert [t.tokens.total for t in again.trajectory.agent_turns] == 5 * [120]
    assert again.cost_usd == live.cost_usd is not None
    assert live.cassette == CassetteCounts(live=5)
    assert again.cassette == CassetteCounts(hits=5)
    assert again.messages[-1].parts[0].content == "It is green"


def asks_past_agents(server):
    async def delegate(topic: str) -> str:
        async with model_of(server) as model:
            said = await model_request(model, [ModelRequest.user_text_prompt(topic)])
        return said.parts[0].content

    return delegate


def asks_in_a_pool(server):
    def delegate(topic: str) -> str:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, ask_sub_agent(server, topic)).result()

    return delegate


@pytest.mark.parametrize("delegates", [asks_past_agents, asks_in_a_pool])
def test_a_request_past_agents_or_in_a_pool_is_replayed(tmp_path, server, delegates):
    live, again = record_and_replay(tmp_path, server, main_agent(server, delegates(server)))
    assert live.final_response == again.final_response == "It is green"
    assert again.cassette == CassetteCounts(hits=5)


def test_a_sub_agent_that_is_a_script_is_not_recorded(tmp_path, server):
    scripted = Agent(model_of(server))

    async def delegate(topic: str) -> str:
        with scripted.override(model=TestModel(custom_output_text="green")):
            return (await scripted.run(topic)).output

    agent = main_agent(server, delegate)
    assert run_with_cassette(tmp_path, "record", agent).cassette == CassetteCounts(live=3)
    again = run_with_cassette(tmp_path, "replay", agent)
    assert (again.final_response, again.cassette) == ("It is green", CassetteCounts(hits=3))


async def asks_its_own_model(ctx: RunContext[None], topic: str) -> str:
    return (await Agent(ctx.model).run(topic)).output


async def streams_its_own_model(ctx: RunContext[None], topic: str) -> str:
    async with Agent(ctx.model).run_stream(topic) as stream:
        return await stream.get_output()


@pytest.mark.parametrize("tool", [asks_its_own_model, streams_its_own_model])
def test_the_model_of_the_agent_in_its_tool_is_replayed_as_it_was_recorded(tmp_path, server, tool):
    agent = Agent(model_of(server), tools=[Tool(tool, name="delegate")])
    live, again = record_and_replay(tmp_path, server, agent)
    assert live.success
    assert again.cassette == CassetteCounts(hits=5)
    assert turns_without_tool_times(again) == turns_without_tool_times(live)


def turns_without_tool_times(result):
    return [
        turn.model_copy(
            update={
                "source": None,
                "tool_calls": [
                    one.model_copy(update={"duration_ms": None}) for one in turn.tool_calls
                ],
            }
        )
        for turn in result.turns
    ]


@pytest.fixture
def expert():
    asks = {"tool_calls": [call("ask_expert", topic="tea")]}
    script = {"main": [asks, "It is {tool}"], "tea": ["green and hot"], "milk": ["white"]}
    with ModelServer(script) as running:
        yield running


async def ask_openai(server, topic):
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client:
        messages = [{"role": "user", "content": topic}]
        answer = await client.chat.completions.create(model="gpt-5-nano", messages=messages)
    return answer.choices[0].message.content


def reads_the_text(server):
    async def ask_expert(topic: str) -> str:
        async with model_of(server) as model, Agent(model).run_stream(topic) as stream:
            return "".join([text async for text in stream.stream_text(delta=True)])

    return ask_expert


def stops_early(server):
    async def ask_expert(topic: str) -> str:
        async with model_of(server) as model, Agent(model).run_stream(topic) as stream:
            async for _ in stream.stream_text():
                break
        assert not attribution.is_suspended()
        return "green and hot"

    return ask_expert


def reads_it_without_async(server):
    def ask_expert(topic: str) -> str:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        model = model_of(server)
        try:
            stream = Agent(model).run_stream_sync(topic)
            return "".join(stream.stream_text(delta=True))
        finally:
            loop.run_until_complete(model.client.close())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
            asyncio.set_event_loop(None)

    return ask_expert


@pytest.mark.parametrize("reader", [reads_the_text, stops_early, reads_it_without_async])
def test_a_streamed_request_of_a_function_is_recorded_and_replayed(tmp_path, expert, reader):
    for result in record_and_replay(tmp_path, expert, reader(expert), "tea"):
        assert (result.stop_reason, result.error) == ("completed", None)
        assert (result.final_response, result.token_usage.total) == ("green and hot", 120)
    assert result.cassette == CassetteCounts(hits=1)


def asks_while_it_is_open(server):
    async def ask_expert(topic: str) -> str:
        async with model_of(server) as model, Agent(model).run_stream(topic) as stream:
            other = await ask_openai(server, "milk")
            return f"{await stream.get_output()}, {other}"

    return ask_expert


def asks_while_it_is_read(server):
    async def ask_expert(topic: str) -> str:
        others = []
        async with model_of(server) as model, Agent(model).run_stream(topic) as stream:
            async for _ in stream.stream_text():
                others = others or [await ask_openai(server, "milk")]
        return f"green and hot, {others[0]}"

    return ask_expert


def asks_after_it(server):
    read = stops_early(server)

    async def ask_expert(topic: str) -> str:
        text = await read(topic)
        return f"{text}, {await ask_openai(server, 'milk')}"

    return ask_expert


@pytest.mark.parametrize("reader", [asks_while_it_is_open, asks_while_it_is_read, asks_after_it])
def test_a_call_of_the_code_that_reads_a_stream_is_recorded(tmp_path, expert, reader):
    agent = Agent(model_of(expert), tools=[reader(expert)])
    for result in record_and_replay(tmp_path, expert, agent):
        assert (result.stop_reason, result.error) == ("completed", None)
        assert result.final_response == "It is green and hot, white"
        nested = [turn.content for turn in result.turns if turn.role == "assistant"][1:-1]
        assert nested == ["green and hot", "white"]
        assert result.token_usage.total == 4 * 120
    assert result.cassette == CassetteCounts(hits=4)
