"""Parametrized quotes; their rows are in this file, and in a file that is read at collection."""

import json
from pathlib import Path

import pytest
from shopdesk import shipping
from shopdesk.desk import Desk

CASES = json.loads((Path(__file__).parent / "cases.json").read_text("utf-8"))
ROWS = [("light", 1), ("heavy", 50)]


def record_quote(episode, message):
    with episode.turn(message) as turn:
        reply = Desk("parcel", shipping.quote_parcel).respond(message)
        turn.reply(reply["text"], source="scripted")
    assert episode.turns


@pytest.mark.parametrize(("name", "weight"), ROWS, ids=[name for name, _ in ROWS])
@pytest.mark.episode
def test_quote_row(episode, name, weight):
    record_quote(episode, f"Quote a {name} parcel of weight {weight}")


@pytest.mark.parametrize(("name", "weight"), CASES, ids=[name for name, _ in CASES])
@pytest.mark.episode
def test_quote_case(episode, name, weight):
    record_quote(episode, f"Quote a {name} parcel of weight {weight}")
