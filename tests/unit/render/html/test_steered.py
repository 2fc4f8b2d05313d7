"""A call that was held back says so in its episode's conversation."""

from __future__ import annotations

from ci_agent_eval.contract.trajectory import ToolCall
from tests.builders import calling
from tests.unit.render.html.rendered_page import data, page


def call_of(**fields):
    call = ToolCall(name="bash", result="Run one test.", **fields).model_dump()
    (row,) = data(page(calling(call)), "episode")
    return row["turns"][1]["calls"][0]


def test_a_call_that_was_held_back_says_by_whom():
    shown = call_of(steered_by="pytest-full-suite", duration_ms=0)
    assert shown == {
        "name": "bash",
        "result": "Run one test.",
        "duration": "held back by pytest-full-suite",
    }


def test_any_other_says_how_long_it_took():
    assert call_of(duration_ms=31)["duration"] == "31 ms"
