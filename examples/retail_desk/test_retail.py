"""Scenarios that are judged by the database: all but one pass, one does more than it says."""

import pytest
from shop import Shop

from ci_agent_eval import check, scenarios
from ci_agent_eval.checks import FinalState, ResultsHold, StateUnchanged


@pytest.mark.episode("order_status")
def test_a_question_changes_nothing(say):
    say("Has order W1002 arrived?")
    check(ResultsHold("find_order", {"status": "delivered"}))
    check(StateUnchanged())


@pytest.mark.episode("cancel_order")
def test_a_pending_order_is_cancelled_and_paid_back(say):
    say("Please cancel order W1001.")
    check(StateUnchanged(), "before the customer says yes")
    say("Yes, please.")
    check(
        FinalState(
            {
                "orders/W1001": {"status": "cancelled"},
                "items/W1001,K-1": {"status": "cancelled"},
                "items/W1001,M-1": {"status": "cancelled"},
                "payments/*": {"order_id": "W1001", "usd": -48},
            }
        )
    )


@pytest.mark.episode("return_mug")
def test_the_database_is_as_after_the_right_actions(say, tmp_path):
    say("I want to return the mug of order W1002.")
    say("Yes.")
    reference = Shop(tmp_path / "reference.db")
    reference.return_item("W1002", "M-1")
    check(FinalState(tmp_path / "reference.db"))
    reference.close()


@pytest.mark.episode("return_lamp")
def test_only_the_lamp_is_returned(episode, say):
    say("I want to return the lamp of order W1003.")
    say("Yes.")
    assert "$59 are on their way" in episode.turns[-1].content
    check(
        FinalState(
            {
                "items/W1003,L-1": {"status": "returned"},
                "payments/4": {"order_id": "W1003", "usd": -59},
            }
        )
    )


@scenarios("customers.yaml")
def test_simulated_customers(scenario, desk):
    def answer(message):
        return {"text": desk.respond(message), "source": "scripted"}

    scenario.run(answer)
