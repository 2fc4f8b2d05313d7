"""The suite's fixtures: a fresh database, the agent, and a conversation that is recorded."""

from dataclasses import asdict, is_dataclass

import pytest
from agent import RefundDesk
from orders import OrderBook

STEP_SECONDS = {"read": 0.210, "lookup_order": 0.090, "list_order_ids": 0.140}


class ScriptedClock:
    """Time passes only when the agent thinks, so that the report is the same every time."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def think(self, step):
        self.now += STEP_SECONDS.get(step, 0.120)


@pytest.fixture
def episode_clock():
    return ScriptedClock()


@pytest.fixture
def orders(tmp_path):
    book = OrderBook(tmp_path / "orders.sqlite")
    yield book
    book.close()


@pytest.fixture
def say(episode, episode_clock, orders):
    """Say something to the agent; the turn, its tool calls and its reply are recorded."""
    desk = RefundDesk(orders, think=episode_clock.think)

    def say(message):
        with episode.turn(message) as turn:
            reply = desk.respond(message)
            for call in reply.calls:
                result = asdict(call.result) if is_dataclass(call.result) else call.result
                turn.tool_call(call.name, call.arguments, result=result)
            turn.reply(reply.text, source="scripted")
        return reply.text

    return say
