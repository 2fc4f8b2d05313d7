"""JUnit properties: scenario, outcome and budgets on every episode's case."""

from __future__ import annotations

SUITE = """
import pytest

@pytest.mark.episode(scenario_id="refund", budgets={"tool_calls": 4, "cost_usd": 0.5})
def test_passes(episode):
    with episode.turn("Hello") as turn:
        turn.tool_call("lookup")
        turn.reply("Hi", cost_usd=0.125)

@pytest.mark.episode(gate="advisory")
def test_fails(episode, record_property):
    record_property("mine", "kept")
    episode.budget("emails", 1)
    assert False

@pytest.fixture
def broken():
    raise OSError

def test_setup_breaks(episode, broken): pass

@pytest.fixture
def broken_later():
    yield
    raise OSError

def test_teardown_breaks(episode, broken_later): pass

@pytest.mark.skip
def test_skipped(episode): pass

def test_plain(): pass
"""


def test_every_episodes_case_has_its_properties(suite):
    suite.write(SUITE)
    properties = suite.run("-o", "junit_family=xunit1").properties
    assert properties["test_plain"] == {}
    assert properties["test_passes"] == {
        "agent_eval.nodeid": "test_suite.py::test_passes",
        "agent_eval.scenario_id": "refund",
        "agent_eval.outcome": "passed",
        "agent_eval.gate": "required",
        "agent_eval.budget.tool_calls": "1/4",
        "agent_eval.budget.cost_usd": "0.125/0.5",
    }
    assert properties["test_fails"] == {
        "mine": "kept",
        "agent_eval.nodeid": "test_suite.py::test_fails",
        "agent_eval.scenario_id": "test_suite.py::test_fails",
        "agent_eval.outcome": "failed",
        "agent_eval.gate": "advisory",
        "agent_eval.budget.emails": "not measured/1",
    }
    outcomes = {name: found.get("agent_eval.outcome") for name, found in properties.items()}
    assert outcomes == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_setup_breaks": "error",
        "test_teardown_breaks": "error",
        "test_skipped": "skipped",
        "test_plain": None,
    }
