"""A suite for the example `customer_service` of the OpenAI Agents SDK."""

import pytest
from agents import Runner
from examples.customer_service import main as example

from ci_agent_eval import conversation


class Desk:
    """The loop of the example's main part, with one customer's context."""

    def __init__(self):
        self.agent, self.items = example.triage_agent, []
        self.context = example.AirlineAgentContext()

    async def respond(self, message):
        self.items.append({"role": "user", "content": message})
        result = await Runner.run(self.agent, self.items, context=self.context)
        self.items, self.agent = result.to_input_list(), result.last_agent
        return result.final_output


@pytest.mark.episode("bags", budgets={"max_turns": 4, "tool_calls": 2, "cost_usd": 0.01})
async def test_bags(aitest_run):
    result = await aitest_run(example.triage_agent, "May I take a bag?")
    assert "under 50 pounds" in result.tool_calls_for("faq_lookup_tool")[0].result
    assert "one bag" in result.final_response


@conversation("two questions", lambda: example.triage_agent)
async def test_two_questions(agent):
    assert "120" in await agent.send("How many seats are on the plane?")
    assert "wifi" in await agent.send("And is there wifi?")


@conversation("seat", Desk)
async def test_seat(agent):
    assert "confirmation number" in await agent.send("I want to change my seat.")
    assert "12A" in await agent.send("ABC123, to 12A please")
    assert (agent.context.seat_number, agent.context.confirmation_number) == ("12A", "ABC123")
    assert agent.agent is example.seat_booking_agent


@pytest.mark.episode("runaway", budgets={"max_turns": 3})
async def test_runaway(aitest_run):
    await aitest_run(example.faq_agent, "Look it up for ever")


@pytest.mark.episode("main part")
async def test_its_main_part(episode, monkeypatch, capsys):
    monkeypatch.setenv("EXAMPLES_INTERACTIVE_MODE", "auto")
    await example.main()
    assert "Triage Agent: I do not know" in capsys.readouterr().out
    assert len(episode.turns) == 2
