"""A suite as an author writes it, in strict mode. `make typed-suite` checks it; it is not run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import assert_type

import pytest

from ci_agent_eval import (
    Agent,
    AgentResult,
    AgentRunner,
    AgentUnderTest,
    AsyncAgentUnderTest,
    CLIServer,
    Episode,
    EpisodeRecorder,
    MCPServer,
    Provider,
    Reply,
    Scenario,
    SimulatedUser,
    Simulation,
    SimulationResult,
    check,
    conversation,
    run_simulation,
    scenarios,
)
from ci_agent_eval.checks import ForbiddenText, RequiredTools


class DiagramAgent:
    """An author's own agent."""

    def __init__(self) -> None:
        self.boxes: list[str] = []

    async def respond(self, message: str) -> str:
        self.boxes.append(message)
        return "Done."


class OrderDesk:
    """An author's own agent, without async."""

    orders: Mapping[int, str] = {7: "kettle"}

    def respond(self, message: str) -> Reply:
        return Reply(self.orders[int(message)])


async def open_diagram() -> AsyncIterator[DiagramAgent]:
    yield DiagramAgent()


@conversation("Build incrementally", open_diagram)
async def test_incremental(agent: AsyncAgentUnderTest[DiagramAgent]) -> None:
    reply = await agent.send("Add Web Server")
    assert "Done" in reply
    assert_type(agent.wrapped, DiagramAgent)
    assert_type(agent.wrapped.boxes, list[str])
    assert agent.boxes == ["Add Web Server"]
    assert len(agent.conversation.user_messages) == 1
    await agent.reset()


@conversation("Order status", OrderDesk)
def test_order(agent: AgentUnderTest[OrderDesk]) -> None:
    assert agent.send("7") == "kettle"
    assert agent.conversation.last is not None
    assert_type(agent.wrapped.orders, Mapping[int, str])


@pytest.mark.episode("refund", budgets={"max_turns": 3, "cost_usd": 0.01}, iterations=5)
async def test_agent(aitest_run: AgentRunner, episode: EpisodeRecorder) -> None:
    agent = Agent(
        Provider("openai:gpt-5-mini"),
        system_prompt="You are a refund desk.",
        mcp_servers=[MCPServer(["python", "orders.py"])],
        cli_servers=[CLIServer("orders", "orders-cli")],
    )
    result = await aitest_run(agent, "Refund order 7", max_turns=3)
    assert_type(result, AgentResult)
    assert_type(result.final_response, str)
    assert_type(result.success, bool)
    passed = check(RequiredTools(["refund"]))
    assert_type(passed, bool)
    check(0.8, "polite", threshold=0.5)
    episode.check("refunded", passed=True)
    finished: Episode = episode.finish()
    assert finished.trajectory is not None


def test_turns(episode: EpisodeRecorder) -> None:
    with episode.turn("Where is order 7?") as turn:
        turn.reply("On its way.", tokens=12, cost_usd=0.001)
    assert_type(check(ForbiddenText(["sorry"])), bool)


def test_simulation(simulation: Simulation) -> None:
    customer = SimulatedUser("in a hurry", script=["Order 7", "Thanks"])
    result = simulation(OrderDesk(), customer, max_turns=2)
    assert_type(result, SimulationResult)
    assert_type(run_simulation(OrderDesk(), customer).last_reply, str)


@scenarios("scenarios.yaml")
async def test_scenarios(scenario: Scenario) -> None:
    result = await scenario.run(DiagramAgent())
    assert result.stop_reason != "max_turns"
