"""What holds for streams of every API: what waits, bytes that stay, chunks, damage."""

from __future__ import annotations

import json

from ci_agent_eval.model_traffic.formats.sse import parse_data
from ci_agent_eval.steering.proxy.answer_reviewer import NOT_RUN, StreamedAnswer
from ci_agent_eval.steering.proxy.apis import APIS, StreamJoiner
from ci_agent_eval.steering.proxy.server import find_api
from tests import llm_wire as wire
from tests.tables import each_row
from tests.unit.steering.proxy.conversation_rig import MESSAGE, USER, Rig, respond

each_api = each_row("api", APIS)
FULL, LS = wire.bash("pytest"), wire.bash("ls")
READ = ("read_file", {"path": "a.py"})
EVENTS = {
    "chat": wire.chat_events,
    "responses": wire.response_events,
    "messages": wire.message_events,
}


def stream(api, events):
    """Return what the client gets for each event, if all calls go through."""
    answer = StreamedAnswer(APIS[api], StreamJoiner())
    return [*(answer.feed(event, parse_data(event)) for event in events), answer.release()]


def proxied(api, *streams):
    """Return the bytes of the client's stream, and the requests after the first."""
    answers = [respond(*chunks, kind="text/event-stream") for chunks in streams]
    rig = Rig(api, *answers, is_streamed=True)
    return rig.send_raw([USER]).content, rig.provider.requests[1:]


def find_call(events):
    return next(at for at, event in enumerate(events) if b"bash" in event)


@each_api
def test_text_passes_at_once_and_all_from_the_first_call_on_waits(api):
    events = EVENTS[api](READ, LS, text="Let me see.")
    first = next(at for at, event in enumerate(events) if b"read_file" in event)
    parts = stream(api, events)
    assert parts[:first] == events[:first]
    assert not any(parts[first:-1])
    assert parts[-1] == b"".join(events[first:])


@each_api
def test_pings_do_not_wait_for_a_call(api):
    events = EVENTS[api](FULL)
    first = find_call(events)
    pings = [wire.data({"type": "ping"}, "ping"), b": keep-alive\n\n"]
    parts = stream(api, [*events[: first + 1], *pings, *events[first + 1 :]])
    assert parts[first + 1 : first + 3] == pings


@each_row(("item", "passes"), [("message", True), ("function_call", False)])
def test_reasoning_waits_for_what_follows_it(item, passes):
    added = "response.output_item.added"
    kinds = ["reasoning", "reasoning", item]
    events = [
        wire.data({"type": added, "output_index": at, "item": {"type": kind}}, added)
        for at, kind in enumerate(kinds)
    ]
    assert stream("responses", events)[:3] == [b"", b"", b"".join(events) if passes else b""]


@each_api
def test_a_stream_that_ends_without_its_last_line(api):
    whole = b"".join(EVENTS[api](LS)).rstrip(b"\n")
    assert proxied(api, [whole]) == (whole, [])
    told, requests = proxied(api, [b"".join(EVENTS[api](FULL)).rstrip(b"\n")], EVENTS[api]())
    assert b"bash" not in told
    assert len(requests) == 1


@each_api
def test_a_stream_that_ends_within_a_call_is_released(api):
    events = EVENTS[api](FULL)
    cut = events[: find_call(events) + 2]
    assert proxied(api, cut) == (b"".join(cut), [])


@each_api
@each_row("size", [1, 2, 3, 7])
@each_row("end", [b"\n", b"\r\n", b"\r"])
def test_small_chunks_give_the_same_bytes(api, size, end):
    streams = [EVENTS[api](LS, FULL, text="Now."), EVENTS[api](LS, READ, text="So.")]
    wholes = [b"".join(events).replace(b"\n", end) for events in streams]
    chunks = [[whole[at : at + size] for at in range(0, len(whole), size)] for whole in wholes]
    got, requests = proxied(api, *chunks)
    assert (got, requests) == proxied(api, *[[whole] for whole in wholes])
    assert b"pytest" not in got
    assert b"read_file" in got


@each_api
@each_row("depth", [100, 500, 900, 990, 1500, 5000, 50_000])
def test_no_depth_of_arguments_breaks_an_answer(api, depth):
    deep = json.loads("[" * 400 + "]" * 400)
    whole = b"".join(EVENTS[api](("bash", {"a": deep, "command": "ls"}), text="t")).decode()
    whole = whole.replace("[[[[", "[" * depth, 1).replace("]]]]", "]" * depth, 1).encode()
    assert proxied(api, [whole]) == (whole, [])


# Streams of other providers


def test_calls_with_the_same_index_are_told_apart_by_their_ids():
    events = [*wire.chat_call_events(0, LS), *wire.chat_call_events(1, FULL)]
    events = [event.replace(b'"index": 1, "id"', b'"index": 0, "id"') for event in events]
    pieces = [event.replace(b'[{"index": 1', b'[{"index": 0') for event in events]
    end = [wire.chat_chunk({}, "tool_calls"), b"data: [DONE]\n\n"]
    _, requests = proxied("chat", [*pieces, *end], EVENTS["chat"](text="ok"))
    assert [message["content"] for message in requests[0]["messages"][2:]] == [NOT_RUN, MESSAGE]


def test_further_keys_of_a_streamed_call_are_kept():
    """Gemini wants the signature back that its compatible API adds to a call."""
    extra = {"extra_content": {"google": {"thought_signature": "S"}}}
    delta = {"role": "assistant", "tool_calls": [{"index": 0, **wire.chat_call(0, FULL), **extra}]}
    events = [wire.chat_chunk(delta, "tool_calls"), b"data: [DONE]\n\n"]
    _, requests = proxied("chat", events, EVENTS["chat"](text="ok"))
    assert requests[0]["messages"][1]["tool_calls"] == [{**wire.chat_call(0, FULL), **extra}]


@each_row(("api", "end"), [("responses", b"output_item.done"), ("messages", b"content_block_stop")])
def test_a_part_that_never_ends_ends_with_its_answer(api, end):
    events = [event for event in EVENTS[api](FULL) if end not in event]
    assert b"bash" not in proxied(api, events, EVENTS[api](text="ok"))[0]


def test_a_last_event_without_the_output_stays_as_it_is():
    """Codex's own backend leaves the output out."""
    events = wire.response_events(LS)
    last = parse_data(events[-1])
    last["response"]["output"] = []
    events[-1] = wire.data(last, last["type"])
    assert proxied("responses", events) == (b"".join(events), [])


def test_numbers_rise_and_the_last_event_has_the_items_of_both_responses():
    got, _ = proxied(
        "responses",
        wire.response_events(FULL, text="Now:"),
        wire.response_events(LS, READ, text="So:"),
    )
    payloads = [parse_data(e + b"\n\n") for e in got.split(b"\n\n")[:-1]]
    numbers = [payload["sequence_number"] for payload in payloads]
    assert numbers == sorted(set(numbers))
    assert {p["output_index"] for p in payloads if "output_index" in p} == {0, 1, 2, 3}
    kinds = [item["type"] for item in payloads[-1]["response"]["output"]]
    assert kinds == ["message", "message", "function_call", "function_call"]
    assert len({p["response"]["id"] for p in payloads if "response" in p}) == 1


@each_row(
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
    assert find_api(method, path) == api
