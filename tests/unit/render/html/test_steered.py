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


RUNS = [
    {"name": "bash", "test_run": "full", "steered_by": "pytest-full-suite", "duration_ms": 0},
    {"name": "bash", "test_run": "targeted", "duration_ms": 1200},
    {"name": "bash", "test_run": "targeted", "duration_ms": 800},
    {"name": "bash", "test_run": "full", "duration_ms": 312_000},
]


def figures_of(*calls):
    (row,) = data(page(calling(*calls)), "episode")
    return [figure for figure in row["figures"] if "test run" in figure]


def test_an_episode_shows_its_test_runs_with_the_measured_times():
    assert figures_of(*RUNS) == [
        "1 full test run held back",
        "1 full test run (5 min 12 s)",
        "2 targeted test runs (2.0 s)",
    ]


def test_runs_without_a_duration_are_counted_only():
    bare = {"name": "bash", "test_run": "targeted"}

    assert figures_of(RUNS[0], bare)[1:] == ["1 targeted test run (not measured)"]
    assert figures_of(*RUNS[:2], bare)[1:] == ["2 targeted test runs (1.2 s, 1 measured)"]
