"""What becomes of a steered call in a whole answer."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.steering.policy.model import Steer
from tests import llm_wire as wire
from tests.unit.steering.proxy.rewriting_rig import (
    APIS,
    BODIES,
    FULL,
    LS,
    MESSAGE,
    READ,
    Once,
    rewritten,
)


def test_a_steered_call_of_a_completion_becomes_its_content():
    new = rewritten("chat", wire.chat_body(FULL))
    choice = new["choices"][0]
    assert choice["message"]["content"] == MESSAGE
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "stop"
    assert new["usage"] == wire.CHAT_USAGE


def test_other_calls_of_a_completion_stay():
    body = wire.chat_body(LS, FULL, READ, text="Now:")
    new = rewritten("chat", body)
    message = new["choices"][0]["message"]
    assert message["content"] == f"Now:\n\n{MESSAGE}"
    before = body["choices"][0]["message"]["tool_calls"]
    assert message["tool_calls"] == [before[0], before[2]]
    assert new["choices"][0]["finish_reason"] == "tool_calls"


def test_an_answer_that_was_cut_short_keeps_its_reason():
    new = rewritten("chat", wire.chat_body(FULL, finish="length"))
    assert new["choices"][0]["finish_reason"] == "length"
    new = rewritten("messages", wire.message_body(FULL, stop="max_tokens"))
    assert new["stop_reason"] == "max_tokens"


def test_a_steered_call_of_a_response_becomes_a_message_in_its_place():
    body = wire.response_body(LS, FULL, READ)
    new = rewritten("responses", body)
    assert [item["type"] for item in new["output"]] == ["function_call", "message", "function_call"]
    assert new["output"][0] == body["output"][0]
    assert new["output"][1]["content"][0]["text"] == MESSAGE
    assert new["output"][1]["id"] == "msg_call_1"
    assert {k: v for k, v in new.items() if k != "output"} == {
        k: v for k, v in body.items() if k != "output"
    }


def test_a_steered_block_of_a_message_becomes_text_in_its_place():
    body = wire.message_body(LS, FULL, text="Now:")
    new = rewritten("messages", body)
    assert new["content"][:2] == body["content"][:2]
    assert new["content"][2] == {"type": "text", "text": MESSAGE}
    assert new["stop_reason"] == "tool_use"
    assert rewritten("messages", wire.message_body(FULL))["stop_reason"] == "end_turn"


@pytest.mark.parametrize("api", APIS)
def test_the_same_call_twice_in_one_answer_is_no_second_attempt(api):
    review = Once()
    assert rewritten(api, BODIES[api](FULL, FULL), review) is not None
    assert len(review.asked) == 1
    assert rewritten(api, BODIES[api](FULL), review) is None


def test_a_message_that_two_calls_share_stands_once_in_the_content():
    new = rewritten("chat", wire.chat_body(FULL, FULL))
    assert new["choices"][0]["message"]["content"] == MESSAGE


@pytest.mark.parametrize("api", APIS)
def test_an_empty_message_is_filled_with_the_reason(api):
    new = rewritten(api, BODIES[api](FULL), Once(" "))
    assert "Held back: the whole suite" in json.dumps(new)


def test_a_content_that_is_a_list_gets_one_more_part():
    body = wire.chat_body(FULL)
    body["choices"][0]["message"]["content"] = [{"type": "text", "text": "Now."}]
    new = rewritten("chat", body)
    assert new["choices"][0]["message"]["content"] == [
        {"type": "text", "text": "Now."},
        {"type": "text", "text": MESSAGE},
    ]


def test_what_runs_at_the_provider_is_left_alone():
    program = {**wire.response_item(0, FULL), "caller": {"type": "program", "caller_id": "p"}}
    remote = {
        "id": "sh_1",
        "type": "shell_call",
        "call_id": "c",
        "action": {"commands": ["pytest"]},
        "environment": {"type": "container_reference", "container_id": "x"},
    }
    body = wire.response_body(items=[program, remote])
    assert rewritten("responses", body, lambda _call: Steer("m", "r", "h")) is None
    body = wire.message_body(FULL)
    body["content"][0]["caller"] = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    assert rewritten("messages", body) is None
    body["content"][0]["caller"] = {"type": "direct"}
    assert rewritten("messages", body) is not None
