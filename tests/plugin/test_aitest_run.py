"""The fixture `aitest_run`: the document's banking example, against real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call

BANK = Path(__file__).parents[1] / "servers/bank.py"

SUITE = """
import sys
import pytest
from ci_agent_eval.engine import Agent, MCPServer, Provider

banking = MCPServer(command=[sys.executable, {bank!r}])
agent = Agent(
    provider=Provider("openai:gpt-5-mini", base_url={url!r}),
    mcp_servers=[banking],
    system_prompt="You are a bank.",
)
plain = Agent(provider=agent.provider)
gallery = MCPServer([sys.executable, {gallery!r}], name="gallery")
"""

BALANCE = [
    Step(tool_calls=[call("get_balance", account="checking")]),
    Step(text="Your checking balance is {tool}."),
]


@pytest.fixture
def suite(pytester, suite):
    """Run tests against a scripted model; returns pytest's result and the episodes."""

    def run(script, source, *arguments):
        with ModelServer(script) as server:
            gallery = str(BANK.with_name("gallery.py"))
            head = SUITE.format(bank=str(BANK), url=server.base_url, gallery=gallery)
            pytester.makepyfile(head + source)
            result = suite.run_in_process("--episode-report-dir=out", *arguments)
        results = json.loads((pytester.path / "out/results.json").read_text())
        return result, results["episodes"]

    return run


WITNESS = """
from pathlib import Path
import pytest

MODELS = []

def pytest_configure(config):
    # Called after the cleanups that are added later, such as the one that closes the loop.
    config.add_cleanup(lambda: Path("closed").write_text(str([m.client.is_closed() for m in MODELS])))

@pytest.fixture
def models():
    return MODELS
"""


RUNS = """
import asyncio
import pydantic_ai
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from ci_agent_eval import conversation
from ci_agent_eval.engine import RunLimits, get_prompt, read_resource
from ci_agent_eval.engine import aitest_run as run

@pytest.mark.episode(
    scenario_id="balance", was="checking_balance", budgets={"max_turns": 3, "tool_calls": 2}
)
async def test_balance(aitest_run):
    result = await aitest_run(agent, "What's my checking balance?")
    assert result.success
    assert result.tool_was_called("get_balance")
    assert result.tool_call_arg("get_balance", "account") == "checking"
    assert "$1,500.00" in result.final_response

async def test_forgets(aitest_run):
    aitest_run(agent, "hi")

async def test_uses(aitest_run):
    assert aitest_run(agent, "hi").success

@pytest.mark.episode(budgets={"tool_calls": 2})
async def test_runaway(aitest_run):
    result = await aitest_run(agent, "Run away")
    assert result.stop_reason == "tool_call_limit"

async def ask(prompt, **options):
    return await run(agent, prompt, timeout_ms=30_000, **options)

async def test_function(episode):
    result = await ask("What's my checking balance?")
    assert "$1,500.00" in result.final_response
    with pytest.raises(Exception, match="the running episode sets limits; leave it out"):
        await ask("again", limits=RunLimits(max_turns=1))

async def test_down(aitest_run):
    result = await ask("Are you there?")
    assert (result.success, result.stop_reason, result.outcome) == (False, "model_error", "error")

def test_outside():
    result = asyncio.run(ask("What's my savings balance?", limits=RunLimits(max_turns=2)))
    assert "$1,500.00" in result.final_response

async def test_slow(aitest_run):
    result = await aitest_run(plain, "Be slow", timeout_ms=200, raises=False)
    assert result.error.startswith("it was not done after 0.2 s")

@pytest.mark.parametrize("number", range(3))
async def test_pid(aitest_run, number):
    result = await aitest_run(agent, f"Who are you? ({number})")
    assert result.success

@pytest.mark.episode(allowed_stops="refusal")
async def test_refused(aitest_run):
    result = await aitest_run(plain, "Refuse")
    assert (result.stop_reason, result.outcome) == ("refusal", "passed")

async def test_open(aitest_run, models):
    provider = OpenAIProvider(base_url=agent.provider.base_url, api_key="k")
    models.append(OpenAIChatModel("m", provider=provider))
    result = await aitest_run(pydantic_ai.Agent(models[0]), "hello")
    assert result.success
    assert not models[0].client.is_closed()

async def test_slip(aitest_run):
    slip = Agent(
        provider=agent.provider, mcp_servers=[banking], allowed_tools=["get_balnce"], name="clerk"
    )
    await aitest_run(slip, "What's my checking balance?")

async def test_prompt(aitest_run):
    (message,) = await get_prompt(gallery, "describe_picture", {"title": "Dawn"})
    result = await aitest_run(Agent(plain.provider, mcp_servers=[gallery]), message["content"])
    assert result.final_response == "It is red."
    process = await read_resource(gallery, "gallery://process")
    assert await read_resource(gallery, "gallery://process") == process

@pytest.mark.episode(budgets={"max_turns": 3})
@conversation("Declared", lambda: plain)
async def test_declared(agent):
    assert await agent.send("first") == "one"
    assert await agent.send("second") == "two"
    assert agent.conversation.last.tokens.total > 0
    agent.reset()
    assert await agent.send("third") == "three"

@conversation("Declared, in a plain test", lambda: plain)
def test_plainly(agent):
    assert agent.send("first") == "one"
    assert agent.send("second") == "two"
    assert [m.role for m in agent.conversation.messages] == ["user", "assistant"] * 2

@conversation("PydanticAI's", lambda: pydantic_ai.Agent("test", name="its own"))
async def test_pydantic_ai(agent):
    assert await agent.send("first") == "success (no tool calls)"
    await agent.send("second")
    assert len(agent.conversation.messages) == 4
"""
SCRIPT = {
    "balance": BALANCE,
    "Run away": BALANCE[:1] * 9,
    "there": [Step(status=500)],
    "Be slow": [Step(hang=True)],
    "Who are you": [Step(tool_calls=[call("process_id")]), Step(text="It is {tool}.")],
    "Refuse": [Step(refusal="I will not.")],
    "hello": ["hi"],
    "Describe Dawn": ["It is red."],
    "first": ["one", "two"],
    "third": ["three"],
}


def test_each_agent_runs_and_ends_in_its_episode(suite, pytester):
    pytester.makeconftest(WITNESS)
    result, found = suite(SCRIPT, RUNS)
    result.assert_outcomes(passed=12, failed=6)
    episodes = {episode["nodeid"].rpartition("::")[2]: episode for episode in found}
    ends = {name: e["outcome"] for name, e in episodes.items() if e["outcome"] != "passed"}
    assert ends == {
        "test_forgets": "error",
        "test_uses": "error",
        "test_runaway": "failed",
        "test_down": "error",
        "test_slow": "error",
        "test_slip": "error",
    }
    expect_the_banking_example_of_the_document_with_its_conditions(episodes["test_balance"])
    await_it = "aitest_run(...) was not awaited; write `await aitest_run(...)`"
    assert episodes["test_forgets"]["reason"] == await_it
    result.stdout.fnmatch_lines(
        ["E *'coroutine' object has no attribute 'success'", f"E *{await_it}"]
    )
    runaway = episodes["test_runaway"]
    assert runaway["stop_reason"] == "tool_call_limit"
    assert len(runaway["trajectory"]["turns"]) <= 5
    assert len(episodes["test_function"]["trajectory"]["turns"]) == 3
    assert len(episodes["test_down"]["trajectory"]["turns"]) == 1
    assert episodes["test_slow"]["stop_reason"] == "timeout"
    expect_one_server_for_all_episodes_that_is_gone(
        [e for name, e in episodes.items() if name.startswith("test_pid")]
    )
    assert (pytester.path / "closed").read_text() == "[True]", "the model's connections"
    slip = "Agent.allowed_tools: agent 'clerk': no server of it offers get_balnce; there are: ask_model"
    assert slip in episodes["test_slip"]["reason"]
    asked = episodes["test_prompt"]["trajectory"]["turns"][0]["content"]
    assert asked == "Describe Dawn in a short text."
    assert episodes["test_declared"]["model"] == "openai:gpt-5-mini"
    assert episodes["test_declared"]["budgets"]["max_turns"]["used"] == 3
    assert episodes["test_pydantic_ai"]["agent"] == "its own"


def expect_the_banking_example_of_the_document_with_its_conditions(episode):
    turns = episode["trajectory"]["turns"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "assistant"]
    assert turns[1]["tool_calls"][0]["result"] == "$1,500.00"
    assert episode["stop_reason"] == "completed"
    assert episode["budgets"]["max_turns"]["used"] == 2
    assert turns[1]["cost_usd"] > 0
    tools = episode["conditions"]["tools"]
    assert "get_balance" in tools
    assert tools == sorted(tools)
    assert episode["conditions"]["prices"].startswith("genai-prices ")
    assert episode["was"] == ["checking_balance"]


def expect_one_server_for_all_episodes_that_is_gone(episodes):
    pids = [e["trajectory"]["turns"][1]["tool_calls"][0]["result"] for e in episodes]
    assert len(pids) == 3
    assert len(set(pids)) == 1
    assert not Path(f"/proc/{pids[0]}").exists()


def test_the_misses_of_several_runs_are_counted_once(suite):
    _, (episode,) = suite(
        {"first": ["one"], "second": ["two"]},
        """
async def test_two(aitest_run):
    await aitest_run(plain, "the first")
    await aitest_run(plain, "the second")
""",
        "--cassette=auto",
    )
    assert episode["cassette_misses"] == 2


def test_a_mode_that_is_none_is_a_usage_error(pytester):
    pytester.makeini("[pytest]\ncassette = sometimes\n")
    result = pytester.runpytest_inprocess()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*ini setting cassette: 'sometimes' is not a mode*"])
