"""PydanticAI agents that a test runs itself: the turns of a replay are those of the recording."""

from __future__ import annotations

import json

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import call
from tests.replayed_results import normalize

SUITE = """
import asyncio
import pytest
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

def chat():
    return OpenAIChatModel("gpt-5-mini", provider=OpenAIProvider(base_url="{base}", api_key="k"))

def claude():
    provider = AnthropicProvider(base_url="{root}", api_key="k")
    return AnthropicModel("claude-haiku-4-5", provider=provider)

def lookup(order: int) -> dict[str, int]:
    return {{"order": order}}

async def ask_expert(topic: str) -> str:
    async with chat() as model:
        return (await Agent(model, instructions="You are the expert.").run(topic)).output

async def ask(*prompts, create=chat):
    history = []
    async with create() as model:
        agent = Agent(model, instructions="Be brief.", tools=[lookup, ask_expert])
        for prompt in prompts:
            said = await agent.run(
                prompt, message_history=history, model_settings={{"max_tokens": 99}}
            )
            history = said.all_messages()
    return said.output

@pytest.mark.parametrize("create", [chat, claude])
async def test_awaited(episode, create):
    assert await ask("where", "and now?", create=create) == "Still there"

def test_sync(episode):
    assert asyncio.run(ask("hello")) == "Hi"

async def test_nested(episode):
    assert await ask("expert") == "It is green"

async def test_in_a_turn(episode):
    with episode.turn("where"):
        said = await ask("where")
    assert said

async def test_with_a_reply(episode):
    with episode.turn("where") as turn:
        turn.reply(await ask("where"))
    assert len(episode.turns) == 2

async def test_in_a_function(aitest_run):
    assert (await aitest_run(ask, "expert")).final_response == "It is green"

@pytest.mark.episode(budgets={{"max_turns": 1}})
async def test_over_budget(episode):
    await ask("where")

@pytest.mark.episode(budgets={{"token_usage": 100}})
async def test_function_over_budget(aitest_run):
    await aitest_run(ask, "where")
"""
SCRIPT = {
    "where": [{"tool_calls": [call("lookup", order=7)]}, "It is {tool}", "Still there"],
    "hello": ["Hi"],
    "expert": [{"tool_calls": [call("ask_expert", topic="tea")]}, "It is {tool}"],
    "tea": ["green"],
}
NOWHERE = "http://127.0.0.1:9"
VARYING = ("latency_ms", "first_byte_ms", "id", "call_id")
"""What differs from run to run."""


@pytest.fixture
def run(pytester, suite):
    def run(mode, root):
        pytester.makepyfile(test_suite=SUITE.format(base=f"{root}/v1", root=root))
        result = suite.run_in_process("--episode-report-dir=out", f"--cassette={mode}")
        result.assert_outcomes(passed=7, failed=2)
        episodes = json.loads((pytester.path / "out/results.json").read_text())["episodes"]
        return {episode["scenario_id"]: episode for episode in episodes}

    return run


def test_turns_are_the_same_live_recorded_and_replayed(run):
    with ModelServer(SCRIPT) as server:
        live, recorded = run("off", server.root_url), run("record", server.root_url)
    replayed = run("replay", NOWHERE)
    for scenario, episode in recorded.items():
        assert normalize(replayed[scenario], VARYING) == normalize(episode, VARYING)
        turns, live_turns = (one["trajectory"]["turns"] for one in (episode, live[scenario]))
        assert normalize(turns, VARYING) == normalize(live_turns, VARYING)
    nested = next(one for name, one in replayed.items() if name.endswith("test_nested"))
    assert [turn.get("agent") for turn in nested["trajectory"]["turns"]] == [
        "1", "1", "1.1", "1.1", "1",
    ]  # fmt: skip
    assert {turn["source"] for turn in nested["trajectory"]["turns"] if "source" in turn} == {
        "replayed"
    }
    stopped = {one["stop_reason"] for name, one in replayed.items() if "over_budget" in name}
    assert stopped == {"max_turns", "token_limit"}
