"""All of it together: a model's API, a real tool server, and the loop between them."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from ci_agent_eval.engine import Agent, AgentResult, EngineSession, Provider, aitest_run
from tests.integration.engine.rig import Clock, go
from tests.model_server import ModelServer
from tests.model_server.script import call
from tests.servers.rig import a_bank, a_web_bank

QUESTION = "What's my checking balance?"
BALANCE = {"tool_calls": [call("get_balance", account="checking")]}


def ask(
    script: Any, *servers: Any, prompts: Any = (QUESTION,), at_once: bool = True
) -> list[AgentResult]:
    """Ask an agent with these servers, all prompts at once or in turn."""

    async def once(server):
        clock = Clock()
        async with EngineSession(os.environ, clock, sleep=clock.sleep) as session:
            provider = Provider("openai:gpt-5-mini", base_url=server.base_url)
            agent = Agent(provider, mcp_servers=servers)
            work = [aitest_run(agent, prompt, session=session) for prompt in prompts]
            return await asyncio.gather(*work) if at_once else [await one for one in work]

    with ModelServer(script) as server:
        return go(once(server))


def test_a_bank_on_the_web_answers_the_question_of_the_document():
    (result,) = ask([BALANCE, "Your checking account: {tool}"], a_web_bank())
    assert result.success
    assert "$1,500.00" in result.final_response
    assert result.tool_call_arg("get_balance", "account") == "checking"
    assert "get_balance" in result.available_tools


def test_twenty_episodes_share_a_server_and_mix_nothing_up():
    echo = {"tool_calls": [{"name": "echo", "arguments": {"text": "{prompt}"}}]}
    prompts = [f"word-{number}" for number in range(20)]
    results = ask([echo, "{tool}"], a_bank(), prompts=prompts)
    assert [result.final_response for result in results] == prompts


def test_a_server_that_dies_in_a_call_ends_that_episode_and_not_the_next():
    script = {"dies": [{"tool_calls": [call("crash")]}, "no"], "works": [BALANCE, "{tool}"]}
    dead, fine = ask(script, a_bank(), prompts=("dies", "works"), at_once=False)
    assert (dead.stop_reason, dead.outcome) == ("server_error", "error")
    assert "about to crash" in dead.error
    assert dead.tool_calls_for("crash")[0].error
    assert [turn.role for turn in dead.turns] == ["user", "assistant"]
    assert fine.success
