"""The document's banking agent: a declared agent, a real MCP server, recorded answers."""

import sys
from pathlib import Path

import pytest

from ci_agent_eval.engine import Agent, MCPServer, Provider

BANK = MCPServer(
    command=[sys.executable, str(Path(__file__).parent / "bank_server.py")],
    isolation="reset",
    reset="reset_balances",
)
AGENT = Agent(
    provider=Provider(model="openai-chat:gpt-5-mini"),
    mcp_servers=[BANK],
    system_prompt="You are a bank's assistant. Use the tools; never guess a balance.",
)


@pytest.mark.episode(
    scenario_id="checking_balance", budgets={"max_turns": 3, "tool_calls": 2, "cost_usd": 0.01}
)
async def test_checking_balance(aitest_run):
    result = await aitest_run(AGENT, "What's my checking balance?")
    assert result.tool_call_arg("get_balance", "account") == "checking"
    assert "balance is $1,500.00" in result.final_response


@pytest.mark.episode(scenario_id="transfer", budgets={"max_turns": 6, "tool_calls": 4})
async def test_transfers_and_remembers(aitest_run, episode):
    first = await aitest_run(AGENT, "Move $200 from savings to checking.")
    (transfer,) = first.tool_calls_for("transfer")
    assert transfer.arguments == {"source": "savings", "target": "checking", "amount": 200}
    second = await aitest_run(AGENT, "And what is in savings now?", messages=first.messages)
    assert second.tool_call_arg("get_balance", "account") == "savings"
    episode.check("says the new balance", "now holds $3,000.00" in second.final_response)


@pytest.mark.episode(scenario_id="too_much", budgets={"max_turns": 4})
async def test_says_so_when_there_is_not_enough(aitest_run):
    result = await aitest_run(AGENT, "Move $9,000 from checking to savings.")
    (call,) = result.tool_calls_for("transfer")
    assert call.arguments == {"source": "checking", "target": "savings", "amount": 9000}
    assert "holds only $1,500.00" in call.error
    assert "I did not move it: there is not enough" in result.final_response
