"""What becomes of whole answers and of streams of events, for each API."""

from __future__ import annotations

import copy
import itertools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_agent_eval.steer.proxy.calls import Calls, Gate
from ci_agent_eval.steer.proxy.rewriting import Answer, Events, api_of
from ci_agent_eval.steer.proxy.sse import parse_data
from ci_agent_eval.steering.model import Allow, Steer
from tests import llm_wire as wire

# Other tests keep the processors busy.
calmly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

MESSAGE = "Run fewer tests."
FULL, ONE, LS = wire.bash("pytest"), wire.bash("pytest tests/test_a.py"), wire.bash("ls")
READ = ("read_file", {"path": "a.py"})
APIS = ["chat", "responses", "messages"]
BODIES = {
    "chat": wire.chat_body,
    "responses": wire.response_body,
    "messages": wire.message_body,
}
EVENTS = {
    "chat": wire.chat_events,
    "responses": wire.response_events,
    "messages": wire.message_events,
}


class Once:
    """Steers a full run of a command that it has not met, in the way of the real handler."""

    def __init__(self, message=MESSAGE):
        self.message = message
        self.asked = []

    def __call__(self, call):
        first = call not in self.asked
        self.asked.append(call)
        command = call.arguments.get("command") if isinstance(call.arguments, dict) else None
        if command == "pytest" and first:
            return Steer(self.message, "the whole suite", "pytest-full-suite", command)
        return Allow("targeted")


def answer_of(api, review=None):
    gate = Gate(review or Once(), lambda tool: tool in {"bash", "shell", "local_shell"})
    return Answer(api, Calls(gate))


def rewritten(api, body, review=None):
    new = answer_of(api, review).rewrite(json.dumps(body).encode())
    return None if new is None else json.loads(new)


def streamed(api, events, review=None, most=1_000_000):
    rewriting = Events(answer_of(api, review).stream(), most)
    parts = [rewriting.feed(event) for event in events]
    return [*parts, rewriting.finish()]


def payloads(parts):
    events = b"".join(parts).split(b"\n\n")
    return [p for e in events if (p := parse_data(e + b"\n\n")) is not None]


# What is not steered


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("calls", [(), (ONE,), (READ, LS), (LS, READ, ONE)])
@pytest.mark.parametrize("text", [None, "Let me see."])
def test_what_is_not_steered_stays_byte_for_byte(api, calls, text):
    assert rewritten(api, BODIES[api](*calls, text=text)) is None
    events = EVENTS[api](*calls, text=text)
    assert b"".join(streamed(api, events)) == b"".join(events)


@pytest.mark.parametrize("api", APIS)
def test_texts_and_calls_of_other_tools_are_not_held_for_an_event(api):
    events = EVENTS[api](READ, text="Let me see.")
    assert streamed(api, events)[:-1] == events


@pytest.mark.parametrize("api", APIS)
def test_a_call_that_goes_through_is_held_until_it_is_complete(api):
    events = EVENTS[api](LS)
    parts = streamed(api, events)
    held = [at for at, part in enumerate(parts[:-1]) if not part]
    assert held
    assert parts[max(held) + 1] == b"".join(events[min(held) : max(held) + 2])


# What is steered


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


# Streams


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


def test_a_content_that_is_a_list_gets_one_more_part():
    body = wire.chat_body(FULL)
    body["choices"][0]["message"]["content"] = [{"type": "text", "text": "Now."}]
    new = rewritten("chat", body)
    assert new["choices"][0]["message"]["content"] == [
        {"type": "text", "text": "Now."},
        {"type": "text", "text": MESSAGE},
    ]


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


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_ends_without_its_last_line(api):
    events = EVENTS[api](LS)
    whole = b"".join(events).rstrip(b"\n")
    assert b"".join(streamed(api, [whole])) == whole


@pytest.mark.parametrize("api", APIS)
@calmly
@given(cuts=st.lists(st.integers(0, 4000), max_size=40))
def test_any_chunking_gives_the_same_bytes(api, cuts):
    stream = b"".join(EVENTS[api](LS, FULL, READ, text="Grüße"))
    at = sorted({min(c, len(stream)) for c in cuts} | {0, len(stream)})
    chunks = [stream[a:b] for a, b in itertools.pairwise(at)]
    assert b"".join(streamed(api, chunks)) == b"".join(streamed(api, [stream]))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_small_chunks_give_the_same_bytes(api, size, end):
    stream = b"".join(EVENTS[api](LS, FULL, READ, text="Now.")).replace(b"\n", end)
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    got = b"".join(streamed(api, chunks))
    assert got == b"".join(streamed(api, [stream]))
    assert MESSAGE.encode() in got


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


# Limits and faults


@pytest.mark.parametrize("api", APIS)
def test_a_call_above_the_limit_passes_as_it_is(api):
    big = wire.bash("pytest " + "x" * 5000)
    events = EVENTS[api](big, text="Now:")
    rewriting = Events(answer_of(api, lambda _c: Steer("m", "r", "h")).stream(), 2000)
    out = [*(rewriting.feed(event) for event in events), rewriting.finish()]
    assert b"".join(out) == b"".join(events)
    assert "2000 bytes" in rewriting.given_up


@pytest.mark.parametrize("api", APIS)
def test_an_event_above_the_limit_passes_as_it_is(api):
    rewriting = Events(answer_of(api).stream(), 100)
    chunk = b"data: " + b"x" * 200
    assert rewriting.feed(chunk) == chunk
    assert rewriting.feed(b"y\n\n") + rewriting.finish() == b"y\n\n"


@pytest.mark.parametrize("api", APIS)
def test_a_fault_in_the_rewriting_loses_nothing(api):
    def review(_call):
        raise ZeroDivisionError

    events = EVENTS[api](LS, READ)
    rewriting = Events(answer_of(api, review).stream(), 1_000_000)
    out = [*(rewriting.feed(event) for event in events), rewriting.finish()]
    assert b"".join(out) == b"".join(events)
    assert rewriting.given_up == "unexpected ZeroDivisionError"


@pytest.mark.parametrize("api", APIS)
def test_a_fault_in_the_rewriting_leaves_a_whole_answer_as_it_is(api):
    def review(_call):
        raise ZeroDivisionError

    answer = answer_of(api, review)
    assert answer.rewrite(json.dumps(BODIES[api](LS)).encode()) is None
    assert answer.given_up == "unexpected ZeroDivisionError"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=6,
)


@st.composite
def damaged(draw, bodies):
    """A document with one of its values replaced by something else."""
    root = [copy.deepcopy(draw(st.sampled_from(bodies)))]
    node, key = root, 0
    while isinstance(node[key], dict | list) and node[key] and draw(st.integers(0, 9)):
        node = node[key]
        key = draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
    if isinstance(node, dict) and draw(st.booleans()):
        del node[key]
    else:
        node[key] = draw(JSON)
    return root[0]


@pytest.mark.parametrize("api", APIS)
@calmly
@given(st.data())
def test_no_shape_of_a_body_breaks_the_rewriting(api, data):
    body = data.draw(damaged([BODIES[api](LS, FULL, READ, text="t")]))
    answer_of(api).rewrite(json.dumps(body).encode())


@pytest.mark.parametrize("api", APIS)
@calmly
@given(st.data())
def test_no_shape_of_an_event_breaks_the_rewriting(api, data):
    events = EVENTS[api](LS, FULL, READ, text="t")
    at = data.draw(st.integers(0, len(events) - 1))
    payload = parse_data(events[at])
    if payload is not None:
        events[at] = wire.data(data.draw(damaged([payload])))
    rewriting = Events(answer_of(api).stream(), 1_000_000)
    for event in events:
        rewriting.feed(event)
    rewriting.finish()
    assert rewriting.given_up is None


@pytest.mark.parametrize(
    ("method", "path", "api"),
    [
        ("POST", "/v1/chat/completions", "chat"),
        ("POST", "/openai/deployments/gpt/chat/completions", "chat"),
        ("POST", "/v1/responses", "responses"),
        ("POST", "/v1/responses/", "responses"),
        ("POST", "/v1/messages", "messages"),
        ("GET", "/v1/responses", None),
        ("POST", "/v1/responses/resp_1/cancel", None),
        ("POST", "/v1/messages/count_tokens", None),
        ("POST", "/v1/threads/thread_1/messages", None),
        ("GET", "/v1/models", None),
    ],
)
def test_the_path_names_the_api(method, path, api):
    assert api_of(method, path) == api
