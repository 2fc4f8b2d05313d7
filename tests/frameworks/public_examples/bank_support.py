"""A suite for PydanticAI's example `bank_support`."""

import sqlite3

import pytest
from pydantic_ai_examples import bank_support

from ci_agent_eval import conversation
from ci_agent_eval.engine import LoopAgent


@pytest.fixture
def support(monkeypatch):
    """The example's agent, with the customer of its main part."""
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE customers(id, name, balance)")
        connection.execute("INSERT INTO customers VALUES (123, 'John', 123.45)")
        # Its functions read a global variable that only its main part sets.
        monkeypatch.setattr(bank_support, "cur", connection.cursor(), raising=False)
        bank = bank_support.DatabaseConn(sqlite_conn=connection)
        deps = bank_support.SupportDependencies(customer_id=123, db=bank)
        yield LoopAgent(bank_support.support_agent, deps=deps)


@pytest.mark.episode("balance", budgets={"max_turns": 3, "tool_calls": 1, "cost_usd": 0.01})
async def test_balance(aitest_run, support):
    result = await aitest_run(support, "What is my balance?")
    assert result.tool_calls_for("customer_balance")[0].result == "$123.45"
    assert result.turns[-1].typed_output["risk"] == 1


@conversation("lost card", lambda support: support)
async def test_lost_card(agent):
    assert "$123.45" in await agent.send("How much is on my card?")
    assert '"block_card": true' in await agent.send("I just lost it!")


@pytest.mark.episode("runaway", budgets={"max_turns": 3})
async def test_runaway(aitest_run, support):
    await aitest_run(support, "Tell me my balance for ever")
