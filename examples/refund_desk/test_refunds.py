"""Three scenarios: one passes, one fails, one passes but spends too much."""

import pytest


@pytest.mark.episode(
    scenario_id="refund_within_limit",
    budgets={"max_turns": 3, "tool_calls": 3, "latency_ms": 1000},
)
def test_refunds_after_confirmation(episode, say, orders):
    assert "order number" in say("Hello, I want my money back.")
    assert "39.00" in say("It is order 1001, the kettle.")
    assert orders.lookup_order(1001).status == "delivered", "no refund before the customer says yes"
    say("Yes, please.")
    assert orders.lookup_order(1001).status == "refunded"
    assert [call.name for call in episode.tool_calls] == ["lookup_order", "issue_refund"]


@pytest.mark.episode(scenario_id="refund_over_limit", budgets={"tool_calls": 4})
def test_large_refunds_need_a_manager(episode, say):
    say("My espresso machine leaks, order 1002. This is urgent!")
    say("Yes, refund it.")
    called = [call.name for call in episode.tool_calls]
    episode.check("answers the customer", bool(episode.turns[-1].content))
    episode.check(
        "asks a manager before refunding over $500",
        "ask_manager" in called,
        reason=f"called {' → '.join(called)}",
    )


@pytest.mark.episode(scenario_id="refund_by_email", budgets={"tool_calls": 4})
def test_finds_the_order_by_email(say, orders):
    reply = say("Please refund the scale. I am linus@example.com.")
    assert "45.00" in reply
    assert orders.lookup_order(1006).status == "refunded"
