"""Agents as parameters: each is an episode of one scenario, with the agent's name on its marker."""

from __future__ import annotations

from tests.model_server import ModelServer

TESTS = """
import pytest

def agents(**values):
    return [
        pytest.param(value, id=name, marks=pytest.mark.episode(agent=name))
        for name, value in values.items()
    ]

@pytest.mark.parametrize("prompt", agents(concise="Be brief.", detailed="Explain."))
@pytest.mark.episode(scenario_id="balance", evidence="none")
def test_balance(episode, prompt):
    with episode.turn(f"{prompt} What's my balance?") as turn:
        turn.reply("$5")
    episode.check("brief", prompt == "Be brief.")

@pytest.mark.parametrize("turns", agents(short=1, long=2))
@pytest.mark.episode(scenario_id="greeting", evidence="none", budgets={"max_turns": 1})
def test_greeting(episode, turns):
    for _ in range(turns):
        with episode.turn("hi") as turn:
            turn.reply("hi")

@pytest.mark.parametrize("works", agents(good=True, bad=False))
@pytest.mark.episode(scenario_id="x", iterations="auto:2-6", min_pass_rate=1.0, evidence="none")
def test_adaptive(episode, works):
    episode.check("works", works)
"""


def test_each_agent_is_an_episode_of_the_scenario_with_its_own_verdict(suite):
    suite.write(TESTS)
    ran = suite.run("--aitest-iterations=2").results.episodes
    adaptive = [e.agent for e in ran if e.scenario_id == "x"]
    assert {agent: adaptive.count(agent) for agent in adaptive} == {"good": 6, "bad": 2}
    episodes = [e for e in ran if e.scenario_id != "x"]
    outcomes = sorted((e.scenario_id, e.agent, e.iteration, e.outcome) for e in episodes)
    assert outcomes == [
        ("balance", "concise", 1, "passed"),
        ("balance", "concise", 2, "passed"),
        ("balance", "detailed", 1, "failed"),
        ("balance", "detailed", 2, "failed"),
        ("greeting", "long", 1, "passed"),
        ("greeting", "long", 2, "passed"),
        ("greeting", "short", 1, "passed"),
        ("greeting", "short", 2, "passed"),
    ]
    over = {e.agent: len(e.violations) for e in episodes if e.scenario_id == "greeting"}
    assert over == {"short": 0, "long": 1}


ENGINE = """
import pytest
from dataclasses import replace
from ci_agent_eval.engine import Agent, Provider

CONCISE = Agent(Provider("openai:gpt-5-mini", base_url={url!r}), system_prompt="Be brief.")
DETAILED = replace(CONCISE, system_prompt="Explain.")

@pytest.mark.parametrize("case", [pytest.param(1, marks=pytest.mark.episode(scenario_id="a"))])
@pytest.mark.parametrize("agent", [
    pytest.param(CONCISE, id="concise", marks=pytest.mark.episode(agent="concise")),
    pytest.param(DETAILED, id="detailed", marks=pytest.mark.episode(agent="detailed")),
])
@pytest.mark.episode(scenario_id="balance")
async def test_balance(aitest_run, agent, case):
    result = await aitest_run(agent, "What's my balance?")
    assert result.success
"""


def test_two_prompts_of_one_model_have_cassettes_of_their_own(suite):
    with ModelServer(["$5", "You have $5."]) as server:
        suite.write(ENGINE.format(url=server.base_url))
        recorded = suite.run("-p", "no:randomly", "--cassette=record")
    recorded.result.assert_outcomes(passed=2)
    assert [e.agent for e in recorded.results.episodes] == ["concise", "detailed"]
    assert len(list((suite.pytester.path / "cassettes").iterdir())) == 2
    replayed = suite.run("-p", "no:randomly", "--cassette=replay")
    replayed.result.assert_outcomes(passed=2)
    assert [e.agent for e in replayed.results.episodes] == ["concise", "detailed"]
