"""Missed model requests and refused records, whose error the test or its agent catches."""

from __future__ import annotations

import json

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step

SUITE = """
import pytest
from ci_agent_eval import conversation
from ci_agent_eval.engine import Agent, Provider
from pydantic_ai import Agent as Loop
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

async def ask(message):
    model = OpenAIChatModel(
        "gpt-5-mini", provider=OpenAIProvider(base_url={url!r}, api_key="k")
    )
    try:
        async with model:
            return (await Loop(model, instructions={instructions!r}).run(message)).output
    except Exception:
        return "fine"

class Desk:
    async def respond(self, message):
        return await ask(message)
"""

BY_HAND = """
async def test_by_hand(episode):
    with episode.turn("hello") as turn:
        turn.reply(await ask("hello"))
    assert turn.message == "hello"
"""
CONVERSATION = """
@conversation("desk", Desk)
async def test_conversation(agent):
    assert (await agent.send("hello")).content == "fine"
"""
SKIPS = BY_HAND.replace("by_hand", "skips") + "    pytest.skip('no weather')\n"
CATCHES = """
async def test_catches(aitest_run, episode):
    agent = Agent(provider=Provider("openai:gpt-5-mini", base_url={url!r}), system_prompt={instructions!r})
    try:
        await aitest_run(agent, "hello")
    except Exception:
        pass
    assert episode.turns
"""


@pytest.fixture
def run(pytester, suite):
    def run(source, instructions, *arguments, name="test_suite"):
        with ModelServer([Step(text="fine")]) as server:
            code = (SUITE + source).format(url=server.base_url, instructions=instructions)
            pytester.makepyfile(**{name: code})
            result = suite.run_in_process("--episode-report-dir=out", *arguments)
            asked = len(server.requests)
        results = json.loads((pytester.path / "out/results.json").read_text())
        return result, results["episodes"], asked

    return run


def test_a_caught_miss_makes_the_episode_an_error(run):
    source = BY_HAND + CONVERSATION + SKIPS + CATCHES
    run(source, "Be brief.", "--cassette=record")
    _, replayed, asked = run(source, "Be brief.", "--cassette=replay")
    outcomes = {e["scenario_id"].rpartition("_")[2]: e["outcome"] for e in replayed}
    assert (outcomes.pop("skips"), set(outcomes.values()), asked) == ("skipped", {"passed"}, 0)
    result, missed, asked = run(source, "Be long.", "--cassette=replay")
    result.assert_outcomes(failed=4)
    assert (len(missed), asked) == (4, 0)
    for episode in missed:
        assert (episode["outcome"], episode["cassette_misses"]) == ("error", 1)
        assert "has no recording of this request" in episode["reason"]


def test_a_caught_miss_of_an_evaluation_is_no_measurement(run):
    source = BY_HAND + "    raise AssertionError('no')\n"
    options = ("--eval", "desk_eval.py")
    run(source, "Be brief.", "--cassette=record", *options, name="desk_eval")
    result, _, _ = run(source, "Be long.", "--cassette=replay", *options, name="desk_eval")
    result.assert_outcomes(failed=1)


REFUSED = """
import asyncio
from contextlib import suppress
import pytest
from ci_agent_eval import conversation

@pytest.fixture
def late(episode):
    yield
    with suppress(Exception):
        episode.check("late", True)

class Slow:
    async def respond(self, message):
        await asyncio.sleep(0)
        return message

async def test_gathered(episode):
    async def ask(message):
        with episode.turn(message) as turn:
            await asyncio.sleep(0)
            turn.reply("done")
    await asyncio.gather(*map(ask, "abc"), return_exceptions=True)
    assert episode.turns

@conversation("sent", Slow)
async def test_sent(agent):
    await asyncio.gather(*map(agent.send, "abc"), return_exceptions=True)
    assert agent.conversation.messages

@pytest.mark.parametrize("record", [
    lambda episode, turn: episode.turn("inner"),
    lambda episode, turn: turn.reply("again"),
    lambda episode, turn: turn.tool_call("look", duration_ms=-1),
    lambda episode, turn: episode.check("polite", "yes"),
], ids=["open", "second", "negative", "unclear"])
def test_caught(episode, record):
    with episode.turn("hello") as turn:
        turn.reply("hi")
        with suppress(Exception):
            record(episode, turn)
    assert turn.message == "hello"

def test_late(episode, late):
    with episode.turn("hello") as turn:
        turn.reply("hi")
    assert turn.message == "hello"
"""


def test_a_refused_record_makes_the_episode_an_error_also_if_it_is_caught(pytester, suite):
    pytester.makepyfile(REFUSED)
    suite.run_in_process("--episode-report-dir=out")
    episodes = json.loads((pytester.path / "out/results.json").read_text())["episodes"]
    reasons = {one["nodeid"].partition("::")[2]: one.get("reason", "") for one in episodes}
    assert {one["outcome"] for one in episodes} == {"error"}, reasons
    for test, sentence in {
        "test_gathered": "a turn is still open",
        "test_sent": "is still being answered",
        "test_caught[open]": "a turn is still open",
        "test_caught[second]": "it has a reply already",
        "test_caught[negative]": "duration_ms",
        "test_caught[unclear]": "polite",
        "test_late": "has ended: record the check 'late' before the test returns",
    }.items():
        assert sentence in reasons[test]
