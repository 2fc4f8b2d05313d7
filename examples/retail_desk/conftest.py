"""The suite's fixtures: a fresh shop that is watched, and a conversation that is recorded."""

import pytest
from agent import RetailDesk
from shop import Shop


@pytest.fixture
def episode_clock():
    """Time stands still, so that the report is the same every time."""
    return lambda: 0.0


@pytest.fixture
def shop(episode, tmp_path):
    shop = Shop(tmp_path / "shop.db")
    episode.watch(tmp_path / "shop.db", "shop")
    yield shop
    shop.close()


@pytest.fixture
def desk(episode, shop):
    """The agent; its tool calls are recorded, and have the faults of the scenario."""

    def use(name, **arguments):
        try:
            result = episode.wrap_tool(name, getattr(shop, name))(**arguments)
        except Exception as error:
            episode.tool_call(name, arguments, error=error)
            raise
        episode.tool_call(name, arguments, result)
        return result

    return RetailDesk(use)


@pytest.fixture
def say(episode, desk):
    """Say something to the agent; the turn, its tool calls and its reply are recorded."""

    def say(message):
        with episode.turn(message) as turn:
            turn.reply(desk.respond(message), source="scripted")

    return say
