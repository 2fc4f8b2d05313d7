"""The fixture `aitest_run`: the document's banking example, against real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call
from tests.servers.rig import wait_until_gone

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
            head = SUITE.format(bank=str(BANK), url=server.base_url)
            pytester.makepyfile(head + source)
            result = suite.run_in_process("--episode-report-dir=out", *arguments)
        results = json.loads((pytester.path / "out/results.json").read_text())
        return result, results["episodes"]

    return run


def test_the_banking_example_of_the_document_and_its_conditions(suite):
    result, (episode,) = suite(
        BALANCE,
        """
@pytest.mark.episode(
    scenario_id="balance", was="checking_balance", budgets={"max_turns": 3, "tool_calls": 2}
)
async def test_balance(aitest_run):
    result = await aitest_run(agent, "What's my checking balance?")
    assert result.success
    assert result.tool_was_called("get_balance")
    assert result.tool_call_arg("get_balance", "account") == "checking"
    assert "$1,500.00" in result.final_response
""",
    )
    result.assert_outcomes(passed=1)
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


def test_a_hard_budget_stops_a_runaway_while_it_runs(suite):
    forever = [Step(tool_calls=[call("get_balance", account="checking")])] * 9
    _, (episode,) = suite(
        forever,
        """
@pytest.mark.episode(scenario_id="runaway", budgets={"tool_calls": 2})
async def test_runaway(aitest_run):
    result = await aitest_run(agent, "What's my checking balance?")
    assert result.stop_reason == "tool_call_limit"
""",
    )
    assert episode["stop_reason"] == "tool_call_limit"
    assert len(episode["trajectory"]["turns"]) <= 5


def test_the_world_s_fault_is_an_error_with_what_happened_until_then(suite):
    result, (episode,) = suite(
        [Step(status=500)],
        """
async def test_down(aitest_run):
    await aitest_run(plain, "hello")
""",
    )
    result.assert_outcomes(failed=1)
    assert (episode["outcome"], episode["stop_reason"]) == ("error", "model_error")
    assert "model_error" in episode["reason"]


def test_a_run_by_the_function_is_that_of_the_fixture_in_an_episode_and_its_own_outside(suite):
    result, episodes = suite(
        {"balance": BALANCE, "there": [Step(status=500)]},
        """
import asyncio
from ci_agent_eval.engine import RunLimits, aitest_run as run

async def ask(prompt, **options):
    return await run(agent, prompt, timeout_ms=30_000, **options)

@pytest.mark.episode(scenario_id="in an episode")
async def test_in_an_episode(episode):
    result = await ask("What's my checking balance?")
    assert "$1,500.00" in result.final_response
    with pytest.raises(Exception, match="the running episode sets limits; leave it out"):
        await ask("again", limits=RunLimits(max_turns=1))

@pytest.mark.episode(scenario_id="down")
async def test_down(aitest_run):
    result = await ask("Are you there?")
    assert (result.success, result.stop_reason, result.outcome) == (False, "model_error", "error")

def test_outside():
    result = asyncio.run(ask("What's my savings balance?", limits=RunLimits(max_turns=2)))
    assert "$1,500.00" in result.final_response
""",
    )
    result.assert_outcomes(passed=2, failed=1)
    found = {e["scenario_id"]: (e["outcome"], len(e["trajectory"]["turns"])) for e in episodes}
    assert found == {"in an episode": ("passed", 3), "down": ("error", 1)}


def test_the_fixture_takes_the_timeout_in_milliseconds(suite):
    _, (episode,) = suite(
        [Step(hang=True)],
        """
async def test_slow(aitest_run):
    result = await aitest_run(plain, "hello", timeout_ms=200, raises=False)
    assert result.error.startswith("it was not done after 0.2 s")
""",
    )
    assert episode["stop_reason"] == "timeout"


def test_one_server_serves_all_episodes_of_a_session_and_is_gone_after_it(suite, pytester):
    script = [Step(tool_calls=[call("process_id")]), Step(text="It is {tool}.")]
    result, episodes = suite(
        script,
        """
@pytest.mark.parametrize("number", range(3))
async def test_pid(aitest_run, number):
    result = await aitest_run(agent, f"Who are you? ({number})")
    assert result.success
""",
    )
    result.assert_outcomes(passed=3)
    pids = {e["trajectory"]["turns"][1]["tool_calls"][0]["result"] for e in episodes}
    assert len(pids) == 1
    assert not Path(f"/proc/{pids.pop()}").exists()


def test_an_end_that_the_marker_allows_passes_the_run(suite):
    result, _ = suite(
        [Step(refusal="I will not.")],
        """
@pytest.mark.episode(allowed_stops="refusal")
async def test_refused(aitest_run):
    result = await aitest_run(plain, "hello")
    assert (result.stop_reason, result.outcome) == ("refusal", "passed")
""",
    )
    result.assert_outcomes(passed=1)


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


def test_the_connections_of_models_are_closed_with_the_session(suite, pytester):
    pytester.makeconftest(WITNESS)
    result, _ = suite(
        ["hi"],
        """
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
import pydantic_ai

async def test_open(aitest_run, models):
    provider = OpenAIProvider(base_url=agent.provider.base_url, api_key="k")
    models.append(OpenAIChatModel("m", provider=provider))
    result = await aitest_run(pydantic_ai.Agent(models[0]), "hello")
    assert result.success
    assert not models[0].client.is_closed()
""",
    )
    result.assert_outcomes(passed=1)
    assert (pytester.path / "closed").read_text() == "[True]"


RECORDED = """
@pytest.mark.episode(scenario_id="balance")
async def test_balance(aitest_run):
    result = await aitest_run(agent, {prompt!r})
    assert "$1,500.00" in result.final_response
"""


def test_a_recording_answers_without_key_network_or_server_unless_the_prompt_changed(
    suite, pytester, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-of-nobody-0123456789")
    source = RECORDED.format(prompt="What's my checking balance?")
    recorded, (live,) = suite(BALANCE, source, "--cassette=record")
    recorded.assert_outcomes(passed=1)
    (cassette,) = (pytester.path / "cassettes").iterdir()
    assert "sk-test-of-nobody" not in cassette.read_text()
    monkeypatch.delenv("OPENAI_API_KEY")
    # The server answers nothing now: every reply has to come from the recording.
    replayed, (again,) = suite([Step(status=500)], source, "--cassette=replay")
    replayed.assert_outcomes(passed=1)

    def sources(episode):
        return [turn.get("source") for turn in episode["trajectory"]["turns"]]

    assert sources(live) == [None, "live", "live"]
    assert sources(again) == [None, "replayed", "replayed"]
    changed = RECORDED.format(prompt="What is in my checking account?")
    _, (missed,) = suite(BALANCE, changed, "--cassette=replay")
    # An error, not a failure.
    assert (missed["outcome"], missed["cassette_misses"]) == ("error", 1)
    assert "prompt" in missed["reason"]


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
    result.stderr.fnmatch_lines(["*ini setting cassette: 'sometimes' is no mode*"])


def test_no_server_outlives_a_worker_that_was_killed(suite, pytester):
    script = {
        "pid": [Step(tool_calls=[call("process_id")]), Step(text="{tool}")],
        "child": [Step(tool_calls=[call("start_child")]), Step(text="{tool}")],
    }
    _, (episode,) = suite(
        script,
        """
import os, signal
from pathlib import Path

web = MCPServer(
    command=[*banking.command, "--http", "{port}"],
    transport="streamable-http",
    url="http://127.0.0.1:{port}/mcp",
)

async def test_killed(aitest_run):
    pids = []
    for server in (banking, web):
        client = Agent(provider=agent.provider, mcp_servers=[server])
        pids += [(await aitest_run(client, what)).final_response for what in ("pid", "child")]
    assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    Path("pids").write_text(" ".join(pids))
    os.kill(os.getpid(), signal.SIGKILL)
""",
        "-n1",
    )
    assert episode["outcome"] == "error"
    pids = [int(pid) for pid in (pytester.path / "pids").read_text().split()]
    assert len(set(pids)) == 4
    for pid in pids:
        wait_until_gone(pid)


def test_an_allowed_tool_that_nobody_offers_is_an_error_of_the_test(suite):
    _, (episode,) = suite(
        BALANCE,
        """
async def test_slip(aitest_run):
    slip = Agent(
        provider=agent.provider, mcp_servers=[banking], allowed_tools=["get_balnce"], name="clerk"
    )
    await aitest_run(slip, "What's my checking balance?")
""",
    )
    assert episode["outcome"] == "error"
    slip = "Agent.allowed_tools: agent 'clerk': no server of it offers get_balnce; there are: ask_model"
    assert slip in episode["reason"]


def test_a_conversation_with_a_declared_agent_goes_on_from_turn_to_turn(suite):
    script = {"first": ["one", "two"], "third": ["three"]}
    result, episodes = suite(
        script,
        """
from ci_agent_eval import conversation

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

@conversation("PydanticAI's", lambda: __import__("pydantic_ai").Agent("test", name="its own"))
async def test_pydantic_ai(agent):
    assert await agent.send("first") == "success (no tool calls)"
    await agent.send("second")
    assert len(agent.conversation.messages) == 4
""",
    )
    result.assert_outcomes(passed=3)
    by_scenario = {episode["scenario_id"]: episode for episode in episodes}
    assert by_scenario["Declared"]["model"] == "openai:gpt-5-mini"
    assert by_scenario["Declared"]["budgets"]["max_turns"]["used"] == 3
    assert by_scenario["PydanticAI's"]["agent"] == "its own"


def test_prompts_and_resources_are_those_of_the_episode_s_server(suite):
    gallery = str(BANK.with_name("gallery.py"))
    result, (episode,) = suite(
        {"Describe Dawn": ["It is red."]},
        f"""
from ci_agent_eval.engine import get_prompt, read_resource

gallery = MCPServer([sys.executable, {gallery!r}], name="gallery")

async def test_prompt(aitest_run):
    (message,) = await get_prompt(gallery, "describe_picture", {{"title": "Dawn"}})
    result = await aitest_run(
        Agent(plain.provider, mcp_servers=[gallery]), message["content"]
    )
    assert result.final_response == "It is red."
    process = await read_resource(gallery, "gallery://process")
    assert await read_resource(gallery, "gallery://process") == process
""",
    )
    result.assert_outcomes(passed=1)
    assert episode["trajectory"]["turns"][0]["content"] == "Describe Dawn in a short text."
