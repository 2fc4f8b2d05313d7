"""Child programs and tool servers."""

import pytest
from shopdesk import children
from shopdesk.desk import QuietDesk

from ci_agent_eval import conversation


@conversation("currency", lambda: QuietDesk("Currency desk.", children.convert_currency))
def test_currency(agent):
    assert "#" in agent.send("Convert to currency USD")


@conversation("label", lambda: QuietDesk("Label desk.", children.print_label))
def test_label(agent):
    assert "#" in agent.send("Print the label of vase")


@pytest.mark.episode(scenario_id="badge_script")
async def test_badge(episode):
    with episode.turn("Run the badge") as turn:
        turn.reply(await children.run_badge(), source="scripted")
    assert episode.turns


@pytest.mark.episode(scenario_id="shelf_lamp")
def test_shelf_lamp(episode, warehouse):
    with episode.turn("Where is the lamp?") as turn:
        tool = warehouse.ask_server(method="list")
        shelf = warehouse.ask_server(method="call", item="lamp")
        turn.tool_call(tool["name"], {"item": "lamp"}, result=shelf)
        turn.reply(f"{tool['description']} {shelf}", source="scripted")
    assert episode.tool_calls


@pytest.mark.episode(scenario_id="shelf_fern")
def test_shelf_fern(episode, warehouse):
    with episode.turn("Where is the fern?") as turn:
        turn.reply(warehouse.ask_server(method="call", item="fern"), source="scripted")
    assert episode.turns
