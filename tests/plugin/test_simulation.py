"""Simulations in tests: the fixture, the running episode, what a model that plays a user costs."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.trajectory import TokenUsage
from tests.model_server import ModelServer
from tests.model_server.script import Step

APP = """
import pytest
from ci_agent_eval import SimulatedUser, run_simulation

def user(*responses):
    return SimulatedUser("a customer", fixed_responses=responses)

async def app(message, *, thread_id):
    return f"{message}!"
"""


def test_plain_and_async_tests_record_the_same(suite):
    suite.write(
        APP
        + """
@pytest.mark.episode(scenario_id="one")
def test_plain():
    result = run_simulation(app, user("a", "b"), max_turns=2)
    assert result.last_reply == "b!"

@pytest.mark.episode(scenario_id="one")
async def test_async():
    result = await run_simulation(app, user("a", "b"), max_turns=2)
    assert result.last_reply == "b!"

def test_no_episode():
    assert run_simulation(app, user("a"), max_turns=1).turns == 1

@pytest.mark.episode(budgets={"max_turns": 3})
def test_turns_are_the_budget_s(simulation):
    assert simulation(app, user("a")).turns == 3

def test_turns_without_a_budget(simulation):
    assert simulation(app, user("a")).turns == 5

async def test_turns_of_its_own(simulation):
    assert (await simulation(app, user("a"), max_turns=1, stop_when=lambda h: False)).turns == 1
"""
    )
    ran = suite.run("-W", "error")
    ran.result.assert_outcomes(passed=6)
    assert len(ran.episodes) == 5
    plain, awaited = ran.episodes["test_plain"], ran.episodes["test_async"]
    assert plain.trajectory == awaited.trajectory
    assert [t.content for t in plain.trajectory.turns] == ["a", "a!", "b", "b!"]
    assert plain.thread_id == awaited.thread_id
    assert plain.metadata == awaited.metadata
    assert plain.metadata["simulations"][0]["stop_reason"] == "max_turns"


def test_a_simulation_that_is_not_awaited_fails_its_test(suite):
    suite.write(
        APP
        + """
async def test_forgets(simulation):
    simulation(app, user("a"))

async def test_remembers(simulation):
    pending = simulation(app, user("a"), max_turns=1)
    assert (await pending).turns == 1
"""
    )
    ran = suite.run("-W", "error")
    ran.result.assert_outcomes(passed=1, failed=1)
    assert ran.episodes["test_forgets"].outcome != "passed"
    ran.result.stdout.fnmatch_lines(["*run_simulation(...) was not awaited; write `await *"])


def test_what_the_app_raises_is_the_episode_s_error_and_keeps_its_turns(suite):
    suite.write(
        APP
        + """
def broken(message):
    if message == "b":
        raise ConnectionError("no database")
    return "ok"

def test_broken(simulation):
    simulation(broken, user("a", "b"))
"""
    )
    ran = suite.run()
    ran.result.assert_outcomes(failed=1)
    ran.result.stdout.fnmatch_lines(["*ConnectionError: no database*"])
    episode = ran.episodes["test_broken"]
    assert episode.outcome == "error"
    assert "ConnectionError: no database" in episode.reason
    assert [t.content for t in episode.trajectory.turns] == [
        "a",
        "ok",
        "b",
        "the agent raised ConnectionError: no database",
    ]
    assert episode.metadata["simulations"][0]["error"] == "ConnectionError"


def test_a_thread_is_that_of_the_scenario_its_iteration_and_retry(suite):
    suite.write(
        APP
        + """
@pytest.mark.episode(iterations=2)
def test_repeated(simulation, tmp_path_factory):
    simulation(app, user("a"), max_turns=1)
"""
    )
    first, second = (suite.run().episodes for _ in range(2))
    threads = {name: episode.thread_id for name, episode in first.items()}
    assert threads == {name: episode.thread_id for name, episode in second.items()}
    assert len(set(threads.values())) == 2


MODELLED = """
import pytest
from ci_agent_eval import SimulatedUser, run_simulation
from ci_agent_eval.engine import Agent, Provider

provider = Provider("openai:gpt-5-mini", base_url={url!r})
someone = SimulatedUser(
    "Ada, in a hurry", provider, goal="a refund of order 1001", max_history_messages=2
)

def app(message):
    return "Which order?"
"""


@pytest.fixture
def modelled(pytester, suite):
    """Run tests whose user a scripted model plays; returns the run and what was asked."""

    def run(script, tests, *arguments):
        with ModelServer(script) as server:
            suite.write(MODELLED.format(url=server.base_url) + tests)
            ran = suite.run(*arguments)
        return ran, [asked.body["messages"] for asked in server.requests]

    return run


PLAYED = """
def test_plain(episode):
    assert run_simulation(app, someone)

async def test_async(episode):
    assert await run_simulation(app, someone)

async def test_fixture(simulation):
    assert await simulation(app, someone)
"""


def test_a_model_plays_the_user_and_is_not_counted_as_the_agent(modelled):
    begins, ends = ["I want my money."], ["1001, please. [DONE]"]
    script = {"begins": begins * 3, "Which order?": ends * 3}
    ran, asked = modelled(script, PLAYED, "-W", "error")
    ran.result.assert_outcomes(passed=3)
    for episode in ran.episodes.values():
        said = [t.content for t in episode.trajectory.turns if t.role == "user"]
        assert said == ["I want my money.", "1001, please."]
        (noted,) = episode.metadata["simulations"]
        assert noted["stop_reason"] == "stop_token"
        user = episode.simulated_user
        assert (user.calls, user.tokens) == (2, TokenUsage(input=200, output=40))
        assert user.cost_usd > 0
        assert episode.trajectory.total_tokens is None
        assert len(episode.trajectory.agent_turns) == 2
    system, prompt = (message["content"] for message in asked[1])
    assert "Ada, in a hurry" in system
    assert "a refund of order 1001" in system
    assert "[DONE]" in system
    assert '{"you": "I want my money."}\n{"assistant": "Which order?"}' in prompt


def test_a_model_that_cannot_play_is_an_error_and_no_fault_of_the_agent(modelled):
    ran, _ = modelled(
        [Step(refusal="I will not")], "def test_it(simulation):\n    simulation(app, someone)"
    )
    ran.result.assert_outcomes(failed=1)
    episode = ran.episodes["test_it"]
    assert episode.outcome == "error"
    assert "the simulated user's model openai:gpt-5-mini failed" in episode.reason


def test_an_engine_agent_talks_to_a_scripted_user(modelled):
    script = {"a": [Step(text="one: {prompt}"), Step(text="two: {prompt}")]}
    tests = """
@pytest.mark.episode(budgets={"max_turns": 4})
def test_it(simulation):
    agent = Agent(provider, system_prompt="You are a desk.")
    result = simulation(agent, SimulatedUser("x", script=["a", "b"]))
    assert [m["content"] for m in result.conversation_history] == ["a", "one: a", "b", "two: b"]
"""
    ran, asked = modelled(script, tests)
    ran.result.assert_outcomes(passed=1)
    episode = ran.episodes["test_it"]
    assert episode.trajectory.total_tokens == 240
    assert episode.stop_reason == "completed"
    assert [message["role"] for message in asked[1]] == ["system", "user", "assistant", "user"]


def test_a_simulated_user_is_sent_an_agents_typed_output_as_text(modelled):
    said = {"name": "final_result", "arguments": {"response": ["1001", "1002"]}}
    script = {"a": [Step(tool_calls=[said]), Step(tool_calls=[said])]}
    tests = """
from pydantic_ai import Agent as Typed
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

heard = []

def writes(persona, history):
    heard.extend(m["content"] for m in history[1:2])
    return "a"

def test_it(simulation):
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=provider.base_url, api_key="k"))
    simulation(Typed(model, output_type=list[str]), SimulatedUser("x", writes), max_turns=2)
    assert heard == ['["1001", "1002"]']
"""
    ran, _ = modelled(script, tests)
    ran.result.assert_outcomes(passed=1)
    episode = ran.episodes["test_it"]
    assert list(episode.trajectory.tool_calls()) == []


def test_a_model_s_user_is_replayed_from_the_cassette(modelled):
    test = "def test_it(episode):\n    assert run_simulation(app, someone, max_turns=1)"
    ran, asked = modelled(["I want my money."], test, "--cassette=record")
    assert (ran.episodes["test_it"].outcome, len(asked)) == ("passed", 1)
    ran, asked = modelled([401], test, "--cassette=replay")
    assert (ran.episodes["test_it"].outcome, len(asked)) == ("passed", 0)


OWN_AGENTS = """
from pydantic_ai import Agent as Own
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

async def asks(prompt):
    connection = OpenAIProvider(base_url=provider.base_url, api_key="k")
    async with OpenAIChatModel("m", provider=connection) as model:
        return (await Own(model).run(prompt)).output

async def writes(persona, history):
    return await asks("write" + {question!r})

async def desk(message):
    return await asks("answer: " + message)

@pytest.mark.episode
async def test_it(episode):
    await run_simulation(desk, SimulatedUser("x", writes), max_turns=1)
    assert episode.trajectory.turns[1].content == "Which order?"
    assert await asks("judge") == "fine"
"""


def test_agents_in_the_code_of_an_episode_are_replayed_and_never_asked_live(modelled):
    script = {"write": ["My refund?"], "answer": ["Which order?"], "judge": ["fine"]}
    ran, asked = modelled(script, OWN_AGENTS.replace("{question!r}", "'a'"), "--cassette=record")
    ran.result.assert_outcomes(passed=1)
    assert len(asked) == 3
    ran, asked = modelled(script, OWN_AGENTS.replace("{question!r}", "'a'"), "--cassette=replay")
    ran.result.assert_outcomes(passed=1)
    ran, missed = modelled(script, OWN_AGENTS.replace("{question!r}", "'b'"), "--cassette=replay")
    assert (len(asked), len(missed)) == (0, 0)
    assert ran.episodes["test_it"].outcome == "error"
    assert "changed: the prompt" in ran.episodes["test_it"].reason
