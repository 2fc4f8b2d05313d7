"""Customers from the data set, and two that only Python can describe."""

import pytest

from ci_agent_eval import SimulatedUser, scenarios


@scenarios("scenarios.yaml", "questions.csv")
def test_support(scenario, desk):
    scenario.run(desk)


@pytest.mark.episode(scenario_id="declined_restart", budgets={"max_turns": 3, "tool_calls": 3})
def test_nothing_is_restarted_after_a_no(simulation, desk, network):
    customer = SimulatedUser(
        "Grace, at work on something that must not be cut off",
        script=["I am grace@example.com, is my line all right?", "Not now!", "No. [DONE]"],
    )
    result = simulation(desk, customer)
    assert result.stop_reason == "stop_token"
    assert network.test_line(2) == "stuck"


@pytest.mark.episode(scenario_id="two_customers", budgets={"tool_calls": 8})
def test_two_customers_at_once_are_not_mixed_up(simulation, desk, network):
    linus = SimulatedUser("Linus", script=["linus@example.com", "yes", lambda reply: "Friday"])
    grace = SimulatedUser("Grace", script=["grace@example.com"])
    simulation(desk, grace, thread_id="grace")
    result = simulation(
        desk, linus, thread_id="linus", stop_when=lambda history: bool(network.visits())
    )
    assert result.stop_reason == "stop_when"
    assert network.visits() == [(3, "Friday")]
    assert network.test_line(2) == "stuck", "Grace never said yes"
