"""Refunds: prompts, examples, policies, databases."""

import pytest
from shopdesk import orders, refunds
from shopdesk.desk import Desk, RefundDesk

from ci_agent_eval import conversation

REFUND_TOOLS = (refunds.issue_refund, refunds.refund_gold, orders.lookup_order)


@conversation("refund_issue", lambda: RefundDesk("refund", *REFUND_TOOLS))
def test_refund_issue(agent):
    assert "#" in agent.send("Issue the refund of order 1001")


@conversation("refund_gold", lambda: RefundDesk("refund", *REFUND_TOOLS))
def test_refund_gold(agent):
    assert "#" in agent.send("Refund for the gold customer of order 1002")


@conversation("order_lookup", lambda: Desk("refund", orders.lookup_order, refunds.cancel_order))
def test_order_lookup(agent):
    assert "#" in agent.send("Look up number 1001")
    assert "#" in agent.send("Look up number 1002")


@conversation("customer_first", lambda: Desk("general", orders.lookup_customer))
def test_customer_first(agent):
    assert "#" in agent.send("Look up customer 7")


@conversation("customer_second", lambda: Desk("general", orders.lookup_customer))
def test_customer_second(agent):
    assert "#" in agent.send("Look up customer 8")


@conversation("archive", lambda: Desk("general", orders.lookup_archive))
def test_archive(agent):
    assert "#" in agent.send("Look up the archived order 900")


@conversation("policy", lambda: Desk("policy", orders.lookup_order))
def test_policy(agent):
    assert "#" in agent.send("May I return it?")


@pytest.mark.episode(scenario_id="refund_function")
async def test_refund_function(aitest_run):
    from ci_agent_eval.engine import Reply

    desk = RefundDesk("refund", refunds.issue_refund)

    def respond(message):
        reply = desk.respond(message)
        return Reply(text=reply["text"], tool_calls=reply["tool_calls"])

    result = await aitest_run(respond, "Refund order 5")
    assert "#" in result.final_response
