"""What becomes of a steered call in a streamed response, or a streamed message."""

from __future__ import annotations

import pytest

from ci_agent_eval.steering.policy.model import Allow, Steer
from tests import llm_wire as wire
from tests.unit.steering.proxy.rewriting_rig import (
    FULL,
    LS,
    MESSAGE,
    READ,
    payloads,
    rewritten,
    streamed,
)


def test_a_steered_call_of_a_streamed_response():
    parts = streamed("responses", wire.response_events(LS, FULL, READ, text="Now:"))
    found = payloads(parts)
    numbers = [payload["sequence_number"] for payload in found]
    assert numbers == sorted(set(numbers))
    item = [p for p in found if p.get("output_index") == 2]
    assert [p["type"] for p in item] == [
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ]
    final = found[-1]["response"]["output"]
    assert final[2] == item[-1]["item"]
    assert [i["type"] for i in final] == ["message", "function_call", "message", "function_call"]


def test_numbers_rise_when_more_events_come_out_than_went_in():
    found = payloads(streamed("responses", wire.response_events(("bash", '{"command":"pytest"}'))))
    numbers = [payload["sequence_number"] for payload in found]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    "more",
    [
        {"type": "local_shell_call", "action": {"type": "exec", "command": "pytest", "env": {}}},
        {"type": "shell_call", "action": {"commands": ["pytest"]}, "environment": None},
    ],
)
def test_the_shell_tools_of_the_provider_are_tools(more):
    def review(call):
        return Steer(MESSAGE, "r", "h") if "pytest" in str(call.arguments) else Allow("a")

    item = {"id": "x_1", "call_id": "call_9", "status": "completed", **more}
    new = rewritten("responses", wire.response_body(items=[item]), review)
    assert new["output"][0]["content"][0]["text"] == MESSAGE
    found = payloads(streamed("responses", wire.response_events(items=[item]), review))
    assert found[-1]["response"]["output"] == new["output"]


def test_a_response_that_never_says_that_an_item_is_done():
    events = [e for e in wire.response_events(FULL) if b"output_item.done" not in e]
    found = payloads(streamed("responses", events))
    assert found[-1]["response"]["output"][0]["content"][0]["text"] == MESSAGE
    assert [p["type"] for p in found].count("response.output_item.added") == 1
    assert b"function_call" not in b"".join(streamed("responses", events))
    found = payloads(streamed("responses", events[:-1]))
    assert found[-1]["item"]["content"][0]["text"] == MESSAGE


def test_a_steered_block_of_a_streamed_message():
    parts = streamed("messages", wire.message_events(LS, FULL, text="Now:"))
    found = payloads(parts)
    block = [p for p in found if p.get("index") == 2]
    assert block == [
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "text_delta", "text": MESSAGE},
        },
        {"type": "content_block_stop", "index": 2},
    ]
    assert found[-2]["delta"]["stop_reason"] == "tool_use"
    alone = payloads(streamed("messages", wire.message_events(FULL)))
    assert alone[-2]["delta"]["stop_reason"] == "end_turn"
    assert alone[-2]["usage"] == {"output_tokens": 89}


def test_pings_pass_a_block_that_is_held():
    events = wire.message_events(FULL)
    ping = wire.data({"type": "ping"}, "ping")
    parts = streamed("messages", [*events[:4], ping, *events[4:]])
    assert parts[4] == ping


def test_a_block_that_never_ends_is_decided_before_the_message_does():
    events = [e for e in wire.message_events(FULL) if b"content_block_stop" not in e]
    assert b"tool_use" not in b"".join(streamed("messages", events))
    assert b"tool_use" not in b"".join(streamed("messages", events[:-2]))


def test_blocks_that_arrive_mixed_keep_their_order():
    events = wire.message_events(LS, FULL)
    starts = [at for at, event in enumerate(events) if b"content_block_start" in event]
    first, second = events[starts[0] : starts[1]], events[starts[1] : -2]
    mixed = [first[0], second[0], *first[1:], *second[1:]]
    parts = streamed("messages", [*events[: starts[0]], *mixed, *events[-2:]])
    blocks = [p["index"] for p in payloads(parts) if "index" in p]
    assert blocks == sorted(blocks)
    assert [p["content_block"]["type"] for p in payloads(parts) if "content_block" in p] == [
        "tool_use",
        "text",
    ]
