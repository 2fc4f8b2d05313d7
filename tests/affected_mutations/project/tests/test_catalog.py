"""The catalogue: caches, templates, memory maps."""

import pytest
from shopdesk import catalog, similar, templates
from shopdesk.desk import Desk, QuietDesk

from ci_agent_eval import conversation


@conversation("catalog_price", lambda: Desk("catalog", catalog.find_price, catalog.count_stock))
def test_price(agent):
    assert "#" in agent.send("Find the price of lamp")


@conversation("catalog_stock", lambda: Desk("catalog", catalog.count_stock))
def test_stock(agent):
    assert "#" in agent.send("Count the stock of fern")


@conversation("discount_gold", lambda: Desk("catalog", catalog.find_discount))
def test_discount_gold(agent):
    assert "#" in agent.send("Find the discount of gold")


@conversation("discount_standard", lambda: Desk("catalog", catalog.find_discount))
def test_discount_standard(agent):
    assert "#" in agent.send("Find the discount of standard")


@pytest.mark.episode(scenario_id="template_price")
def test_template_price(episode):
    message = "What does the lamp cost?"
    with episode.turn(message) as turn:
        turn.reply(
            templates.render_template("price.j2", item="lamp", price=2900), source="scripted"
        )
    assert "lamp" in episode.turns[-1].content


@pytest.mark.episode(scenario_id="template_stock")
def test_template_stock(episode):
    with episode.turn("How many ferns?") as turn:
        reply = templates.render_template("stock.j2", item="fern", count=9, holiday=True)
        turn.reply(reply, source="scripted")
    assert "fern" in episode.turns[-1].content


@conversation("similar", lambda: QuietDesk("Similar desk.", similar.find_similar))
def test_similar(agent):
    assert "#" in agent.send("Find similar to fern")
