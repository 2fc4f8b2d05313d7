"""Simulated users in tests, and the steps of their conversations."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.trajectory import TokenUsage
from tests.model_server import ModelServer
from tests.model_server.script import Step

# Simulations in tests: the fixture, the running episode, what a model that plays a user costs.


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

async def test_forgets(simulation):
    simulation(app, user("a"))

async def test_remembers(simulation):
    pending = simulation(app, user("a"), max_turns=1)
    assert (await pending).turns == 1

def broken(message):
    if message == "b":
        raise ConnectionError("no database")
    return "ok"

def test_broken(simulation):
    simulation(broken, user("a", "b"))

@pytest.mark.episode(iterations=2)
def test_repeated(simulation, tmp_path_factory):
    simulation(app, user("a"), max_turns=1)
"""
    )
    threads, again = (
        {name: episode.thread_id for name, episode in suite.run().episodes.items()}
        for _ in range(2)
    )
    ran = suite.run("-W", "error")
    ran.result.assert_outcomes(passed=7, failed=4)
    assert len(ran.episodes) == 10
    assert threads == again
    assert threads["test_repeated[1-of-2]"] != threads["test_repeated[2-of-2]"]
    assert ran.episodes["test_forgets"].outcome != "passed"
    ran.result.stdout.fnmatch_lines(["*run_simulation(...) was not awaited; write `await *"])
    expect_what_the_app_raised_with_the_turns_before(ran.episodes["test_broken"])
    plain, awaited = ran.episodes["test_plain"], ran.episodes["test_async"]
    assert plain.trajectory == awaited.trajectory
    assert [t.content for t in plain.trajectory.turns] == ["a", "a!", "b", "b!"]
    assert plain.thread_id == awaited.thread_id
    assert plain.metadata == awaited.metadata
    assert plain.metadata["simulations"][0]["stop_reason"] == "max_turns"


def expect_what_the_app_raised_with_the_turns_before(episode):
    assert episode.outcome == "error"
    assert "ConnectionError: no database" in episode.reason
    assert [t.content for t in episode.trajectory.turns] == [
        "a",
        "ok",
        "b",
        "the agent raised ConnectionError: no database",
    ]
    assert episode.metadata["simulations"][0]["error"] == "ConnectionError"


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
from pydantic_ai import Agent as Typed
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

@pytest.mark.episode("played")
def test_plain():
    assert run_simulation(app, someone)

@pytest.mark.episode("played")
async def test_async():
    assert await run_simulation(app, someone)

@pytest.mark.episode("played")
async def test_fixture(simulation):
    assert await simulation(app, someone)

def test_refuses(simulation):
    simulation(app, SimulatedUser("Grace, who will not play", provider, goal="a refusal"))

@pytest.mark.episode(budgets={"max_turns": 4})
def test_engine(simulation):
    agent = Agent(provider, system_prompt="You are a desk.")
    result = simulation(agent, SimulatedUser("x", script=["say a", "say b"]))
    said = [m["content"] for m in result.conversation_history]
    assert said == ["say a", "one: say a", "say b", "two: say b"]

heard = []

def writes(persona, history):
    heard.extend(m["content"] for m in history[1:2])
    return "orders?"

def test_typed(simulation):
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=provider.base_url, api_key="k"))
    simulation(Typed(model, output_type=list[str]), SimulatedUser("x", writes), max_turns=2)
    assert heard == ['["1001", "1002"]']
"""


def test_a_model_plays_the_user_and_is_not_counted_as_the_agent(modelled):
    said = Step(tool_calls=[{"name": "final_result", "arguments": {"response": ["1001", "1002"]}}])
    script = {
        "begins": ["I want my money."],
        "Which order?": ["1001, please. [DONE]"],
        "say a": ["one: {prompt}", "two: {prompt}"],
        "orders?": [said, said],
    }
    ran, asked = modelled(script, PLAYED, "-W", "error", "--deselect=test_suite.py::test_refuses")
    ran.result.assert_outcomes(passed=5, deselected=1)
    engine = ran.episodes["test_engine"]
    assert (engine.trajectory.total_tokens, engine.stop_reason) == (240, "completed")
    (second,) = (a for a in asked if a[-1]["content"] == "say b")
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]
    assert list(ran.episodes["test_typed"].trajectory.tool_calls()) == []
    played = [e for e in ran.results.episodes if e.scenario_id == "played"]
    assert len(played) == 3
    for episode in played:
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
    ran, _ = modelled([Step(refusal="I will not")], PLAYED, "-k", "refuses")
    ran.result.assert_outcomes(failed=1, deselected=5)
    (episode,) = ran.results.episodes
    assert episode.outcome == "error", "no fault of the agent"
    assert "the simulated user's model openai:gpt-5-mini failed" in episode.reason


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

async def test_played(simulation):
    assert await simulation(app, someone, max_turns=1)

@pytest.mark.episode
async def test_it(episode):
    await run_simulation(desk, SimulatedUser("x", writes), max_turns=1)
    assert episode.trajectory.turns[1].content == "Which order?"
    assert await asks("judge") == "fine"
"""


def test_agents_in_the_code_of_an_episode_are_replayed_and_never_asked_live(modelled):
    script = {
        "write": ["My refund?"],
        "answer": ["Which order?"],
        "judge": ["fine"],
        "begins": ["I ask."],
    }
    ran, asked = modelled(script, OWN_AGENTS.replace("{question!r}", "'a'"), "--cassette=record")
    ran.result.assert_outcomes(passed=2)
    assert len(asked) == 4
    ran, asked = modelled(script, OWN_AGENTS.replace("{question!r}", "'a'"), "--cassette=replay")
    ran.result.assert_outcomes(passed=2)
    ran, missed = modelled(script, OWN_AGENTS.replace("{question!r}", "'b'"), "--cassette=replay")
    assert (len(asked), len(missed)) == (0, 0)
    assert ran.episodes["test_it"].outcome == "error"
    assert "changed: messages[0].content" in ran.episodes["test_it"].reason


# Scripts of steps with agents of the engine: what their models are asked.


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
