"""Threads, pools, queues, tasks, generators, processes."""

import pytest
from helpers import replaced_word
from shopdesk import crunch, greetings, tickets, workers
from shopdesk.desk import QuietDesk

from ci_agent_eval import conversation


@conversation("thread", lambda: QuietDesk("Thread desk.", workers.estimate_in_thread))
def test_thread(agent):
    assert "#" in agent.send("Estimate in a thread the vase")


@conversation("pool", lambda: QuietDesk("Pool desk.", workers.estimate_in_pool))
def test_pool(agent):
    assert "#" in agent.send("Estimate in the pool the vase")


@pytest.mark.parametrize("item", ["lamp", "fern"])
@pytest.mark.episode
def test_queue(episode, worker, item):
    with episode.turn(f"Estimate {item}") as turn:
        turn.tool_call("estimate", {"item": item}, result=worker.ask_worker(item))
        turn.reply("Estimated.", source="scripted")
    assert episode.tool_calls


@pytest.mark.episode(scenario_id="tasks")
async def test_tasks(episode):
    with episode.turn("Estimate in tasks") as turn:
        turn.reply(await workers.estimate_in_tasks("vase"), source="scripted")
    assert episode.turns


@conversation("ticket_first", lambda: QuietDesk("Ticket desk.", tickets.draw_ticket))
def test_ticket_first(agent):
    assert "#" in agent.send("Draw a ticket for returns")


@conversation("ticket_second", lambda: QuietDesk("Ticket desk.", tickets.draw_ticket))
def test_ticket_second(agent):
    assert "#" in agent.send("Draw a ticket for repairs")


@conversation("process", lambda: QuietDesk("Weight desk.", crunch.weigh_order))
def test_process(agent):
    assert "#" in agent.send("Weigh an order of 3 kilos")


@conversation("greeting", lambda: QuietDesk("Greeting desk.", greetings.greet_customer))
def test_greeting(agent):
    assert "Hello" in agent.send("Greet customer Ada")


@pytest.mark.episode(scenario_id="greeting_replaced")
def test_greeting_replaced(episode, monkeypatch):
    monkeypatch.setattr(greetings, "choose_word", replaced_word)
    with episode.turn("Greet Ada") as turn:
        turn.reply(greetings.greet_customer("Ada"), source="scripted")
    assert episode.turns


@pytest.mark.episode(scenario_id="greeting_configured")
def test_greeting_configured(episode, greeting, visitor):
    with episode.turn("Greet the visitor") as turn:
        turn.reply(f"{greeting} {visitor}", source="scripted")
    assert episode.turns
