from __future__ import annotations

import asyncio

import httpx2

from ci_agent_eval.model_traffic.forwarding.answer_sender import AnswerSender
from ci_agent_eval.steering.policy.model import Allow
from ci_agent_eval.steering.proxy.answer_reviewer import RememberingRewriter
from ci_agent_eval.steering.proxy.answer_rewriter import AnswerRewriter, EventRewriter
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls, SessionReview
from tests import llm_wire as wire


def test_what_a_request_may_refer_to_is_known_before_the_client_has_it():
    order = []

    async def parts():
        for event in wire.response_events(text="Now."):
            yield event

    async def send(message):
        if message.get("body"):
            order.append("sent")

    async def go():
        answered = httpx2.Response(200, content=parts())
        answer = AnswerRewriter("responses", ReviewedCalls(SessionReview(lambda _call: Allow(""))))
        events = EventRewriter(answer.create_stream(), 100_000)
        remembering = RememberingRewriter(events, lambda: order.append("remembered"))
        await AnswerSender(answered, send).send_rewritten(remembering)
        assert answer.response_id == "resp_1"

    asyncio.run(go())
    assert order[:2] == ["remembered", "sent"]
    assert all(order[at - 1] == "remembered" for at, what in enumerate(order) if what == "sent")
