"""Streamed requests of PydanticAI agents: read to the end, left early, or with calls between."""

from __future__ import annotations

import asyncio

import openai
import pytest
from pydantic_ai import Agent

from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.model_traffic import attribution
from tests.integration.engine.rig import model_of, record_and_replay
from tests.model_server import ModelServer
from tests.model_server.script import call

ASKS = {"tool_calls": [call("ask_expert", topic="tea")]}
SCRIPT = {"main": [ASKS, "It is {tool}"], "tea": ["green and hot"], "milk": ["white"]}


@pytest.fixture
def server():
    with ModelServer(SCRIPT) as running:
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
def test_a_streamed_request_of_a_function_is_recorded_and_replayed(tmp_path, server, reader):
    for result in record_and_replay(tmp_path, server, reader(server), "tea"):
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
def test_a_call_of_the_code_that_reads_a_stream_is_recorded(tmp_path, server, reader):
    agent = Agent(model_of(server), tools=[reader(server)])
    for result in record_and_replay(tmp_path, server, agent):
        assert (result.stop_reason, result.error) == ("completed", None)
        assert result.final_response == "It is green and hot, white"
        nested = [turn.content for turn in result.turns if turn.role == "assistant"][1:-1]
        assert nested == ["green and hot", "white"]
        assert result.token_usage.total == 4 * 120
    assert result.cassette == CassetteCounts(hits=4)
