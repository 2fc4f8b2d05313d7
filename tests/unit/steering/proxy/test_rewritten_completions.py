"""What becomes of a steered call in a streamed completion."""

from __future__ import annotations

import json

from ci_agent_eval.model_traffic.formats.sse import parse_data
from ci_agent_eval.steering.policy.model import Allow, Steer
from tests import llm_wire as wire
from tests.unit.steering.proxy.rewriting_rig import (
    FULL,
    LS,
    MESSAGE,
    ONE,
    READ,
    payloads,
    rewritten,
    streamed,
)


def accumulated_chat(parts):
    """Put a streamed completion together, as a client does."""
    text, calls, finish = "", {}, None
    for payload in payloads(parts):
        for choice in payload["choices"]:
            delta = choice["delta"]
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls", []):
                call = calls.setdefault(piece["index"], [None, ""])
                call[0] = piece["function"].get("name", call[0])
                call[1] += piece["function"].get("arguments", "")
            finish = choice["finish_reason"] or finish
    return text, [calls[at] for at in sorted(calls)], finish


def test_a_steered_call_of_a_streamed_completion():
    parts = streamed("chat", wire.chat_events(FULL))
    assert accumulated_chat(parts) == (MESSAGE, [], "stop")
    assert b"".join(parts).endswith(b"data: [DONE]\n\n")
    assert payloads(parts)[-1]["usage"] == wire.CHAT_USAGE


def test_calls_behind_a_steered_one_move_up():
    parts = streamed("chat", wire.chat_events(LS, FULL, READ, ONE, text="Now:"))
    text, calls, finish = accumulated_chat(parts)
    assert text == f"Now:\n\n{MESSAGE}"
    assert calls == [[t, json.dumps(a)] for t, a in (LS, READ, ONE)]
    assert finish == "tool_calls"
    indexes = [
        piece["index"]
        for payload in payloads(parts)
        for choice in payload["choices"]
        for piece in choice["delta"].get("tool_calls", [])
    ]
    assert indexes == sorted(indexes)
    assert set(indexes) == {0, 1, 2}


def test_a_chunk_that_holds_everything_is_taken_apart():
    message = wire.chat_body(READ, FULL, text="Now:")["choices"][0]["message"]
    calls = [{"index": at, **call} for at, call in enumerate(message["tool_calls"])]
    delta = {"role": "assistant", "content": "Now:", "tool_calls": calls}
    parts = streamed("chat", [wire.chat_chunk(delta, "tool_calls"), b"data: [DONE]\n\n"])
    assert accumulated_chat(parts) == (
        f"Now:\n\n{MESSAGE}",
        [["read_file", json.dumps(READ[1])]],
        "tool_calls",
    )


def test_calls_that_share_a_place_are_told_apart_by_their_ids():
    calls = [{**wire.chat_call(at, call), "index": 0} for at, call in enumerate((FULL, READ))]
    events = [wire.chat_chunk({"tool_calls": [call]}) for call in calls]
    parts = streamed("chat", [*events, wire.chat_chunk({}, "tool_calls")])
    text, calls, finish = accumulated_chat(parts)
    assert (text, calls, finish) == (MESSAGE, [["read_file", json.dumps(READ[1])]], "tool_calls")
    quirk = [
        wire.chat_chunk({"tool_calls": [c]})
        for c in [{**wire.chat_call(at, call), "index": 0} for at, call in enumerate((LS, READ))]
    ]
    assert b"".join(streamed("chat", quirk)) == b"".join(quirk)


def test_a_place_is_never_below_the_first():
    calls = [{**wire.chat_call(at, FULL), "index": 0} for at in range(3)]
    calls.append({**wire.chat_call(3, READ), "index": 1})
    events = [wire.chat_chunk({"tool_calls": [call]}) for call in calls]
    parts = streamed("chat", [*events, wire.chat_chunk({}, "tool_calls")])
    pieces = [p for p in payloads(parts) if "tool_calls" in p["choices"][0]["delta"]]
    assert [p["choices"][0]["delta"]["tool_calls"][0]["index"] for p in pieces] == [0]


def test_a_message_that_two_calls_share_is_streamed_once():
    parts = streamed("chat", wire.chat_events(FULL, FULL))
    assert accumulated_chat(parts) == (MESSAGE, [], "stop")


def test_calls_that_arrive_mixed_are_decided_when_they_are_whole():
    first, second = (wire.chat_call_events(at, call) for at, call in enumerate((LS, FULL)))
    mixed = [first[0], second[0], first[1], second[1], first[2], second[2]]
    parts = streamed("chat", [*mixed, wire.chat_chunk({}, "tool_calls")])
    assert accumulated_chat(parts) == (MESSAGE, [["bash", json.dumps(LS[1])]], "tool_calls")
    kept = streamed("chat", mixed, lambda _call: Allow("all"))
    assert b"".join(kept) == b"".join(mixed)


def test_a_call_of_another_tool_waits_behind_one_that_is_held():
    first, second = (wire.chat_call_events(at, call) for at, call in enumerate((LS, READ)))
    mixed = [first[0], *second, *first[1:], wire.chat_chunk({}, "tool_calls")]
    assert b"".join(streamed("chat", mixed)) == b"".join(mixed)


def test_a_completion_that_never_says_why_it_ended():
    done = b"data: [DONE]\n\n"
    got = b"".join(streamed("chat", [*wire.chat_call_events(0, FULL), done]))
    assert got.endswith(done)
    assert accumulated_chat([got]) == (MESSAGE, [], None)


def test_text_passes_beside_a_call_that_is_held():
    begun, *rest = wire.chat_call_events(0, FULL)
    text = wire.chat_chunk({"content": "Wait."})
    parts = streamed("chat", [begun, text, *rest, wire.chat_chunk({}, "tool_calls")])
    assert parts[1] == text
    assert accumulated_chat(parts) == (f"Wait.\n\n{MESSAGE}", [], "stop")


def test_text_in_the_event_of_a_held_call_stays_before_later_text():
    begun, *rest = wire.chat_call_events(0, LS)
    call = parse_data(begun)["choices"][0]["delta"]
    events = [wire.chat_chunk({**call, "content": "A"}), wire.chat_chunk({"content": "B"}), *rest]
    assert b"".join(streamed("chat", events)) == b"".join(events)


def test_two_choices_are_kept_apart():
    def choice(at, call):
        return [
            wire.chat_chunk({"tool_calls": [{**wire.chat_call(at, call), "index": 0}]}, at=at),
            wire.chat_chunk({}, "tool_calls", at=at),
        ]

    first, second = choice(0, FULL), choice(1, LS)
    parts = streamed("chat", [first[0], second[0], second[1], first[1]])
    by_choice = {at: [] for at in (0, 1)}
    for payload in payloads(parts):
        for each in payload["choices"]:
            by_choice[each["index"]].append(each)
    assert [c["finish_reason"] for c in by_choice[0]] == [None, "stop"]
    assert [c["finish_reason"] for c in by_choice[1]] == [None, "tool_calls"]
    assert by_choice[0][0]["delta"] == {"content": MESSAGE}


def test_the_single_call_of_older_models():
    pieces = [
        {"name": "bash", "arguments": ""},
        {"arguments": '{"command": "py'},
        {"arguments": 'test"}'},
    ]
    events = [wire.chat_chunk({"function_call": piece}) for piece in pieces]
    parts = streamed("chat", [*events, wire.chat_chunk({}, "function_call")])
    assert accumulated_chat(parts) == (MESSAGE, [], "stop")
    body = wire.chat_body(finish="function_call")
    message = body["choices"][0]["message"]
    message["function_call"] = {"name": "bash", "arguments": '{"command": "pytest"}'}
    new = rewritten("chat", body)["choices"][0]
    assert (new["message"]["content"], new["finish_reason"]) == (MESSAGE, "stop")
    assert "function_call" not in new["message"]


def test_a_custom_tool_is_reviewed_by_its_text():
    def review(call):
        return Steer(MESSAGE, "r", "h") if call.arguments == "pytest -q" else Allow("a")

    entry = {"id": "call_1", "type": "custom", "custom": {"name": "shell", "input": "pytest -q"}}
    body = wire.chat_body()
    body["choices"][0]["message"]["tool_calls"] = [entry]
    assert rewritten("chat", body, review)["choices"][0]["message"]["content"] == MESSAGE
    item = {
        "id": "ctc_1",
        "type": "custom_tool_call",
        "call_id": "call_1",
        "name": "shell",
        "input": "pytest -q",
    }
    new = rewritten("responses", wire.response_body(items=[item]), review)
    assert new["output"][0]["content"][0]["text"] == MESSAGE


def test_a_streamed_custom_tool_is_reviewed_by_its_text():
    def review(call):
        return Steer(MESSAGE, "r", "h") if call.arguments == "pytest -q" else Allow("a")

    def piece(**custom):
        return wire.chat_chunk({"tool_calls": [{"index": 0, "id": "c", "custom": custom}]})

    events = [piece(name="shell", input="pyt"), piece(input="est -q")]
    parts = streamed("chat", [*events, wire.chat_chunk({}, "tool_calls")], review)
    assert accumulated_chat(parts) == (MESSAGE, [], "stop")
    item = {
        "id": "ctc_1",
        "type": "custom_tool_call",
        "call_id": "c",
        "name": "shell",
        "input": "pytest -q",
    }
    found = payloads(streamed("responses", wire.response_events(items=[item]), review))
    assert found[-1]["response"]["output"][0]["content"][0]["text"] == MESSAGE
