"""What holds for streams of every API: bytes that stay, chunks, limits, faults, damage."""

from __future__ import annotations

import json

from ci_agent_eval.model_traffic.formats.sse import parse_data
from ci_agent_eval.steering.policy.model import ToolCallRequest
from ci_agent_eval.steering.proxy.dialects import DIALECTS, find_api
from ci_agent_eval.steering.proxy.held_exchange import HeldExchange
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls, SessionReview
from ci_agent_eval.steering.proxy.streamed_answer import StreamedAnswer
from tests import llm_wire as wire
from tests.tables import each_row
from tests.unit.steering.proxy.conversation_rig import APIS, Once, assemble

each_api = each_row("api", APIS)
FULL, ONE, LS = wire.bash("pytest"), wire.bash("pytest tests/test_a.py"), wire.bash("ls")
READ = ("read_file", {"path": "a.py"})
EVENTS = {
    "chat": wire.chat_events,
    "responses": wire.response_events,
    "messages": wire.message_events,
}


def review_once(call):
    return _ONCE.review(ToolCallRequest(call.tool, call.arguments), None, 0.0)


_ONCE = Once()


def answer_of(api, review=None, most=1_000_000):
    _ONCE.met.clear()
    tools = {"bash", "shell", "local_shell"}
    calls = ReviewedCalls(SessionReview(review or review_once, lambda tool: tool in tools))
    dialect = DIALECTS[api]
    exchange = HeldExchange(dialect, {}, True, lambda *_: None, lambda: 0.0)
    return StreamedAnswer(dialect, dialect.create_editor(), calls, most, exchange.complete)


def stream(answer, chunks):
    """Return what the client gets for each chunk; of an answer with held calls the others."""
    parts = [answer.feed(chunk) for chunk in chunks]
    last = b"" if answer.is_held else answer.finish()
    if answer.is_held:
        body = answer.assemble()
        answer.editor.set_merged(answer.dialect.hold_calls(body, answer.messages)[0])
        last = answer.release_others(is_continued=False)
    return [*parts, last]


@each_api
def test_text_before_a_held_call_passes_at_once(api):
    events = EVENTS[api](FULL, text="Let me see.")
    first = next(at for at, event in enumerate(events) if b"bash" in event)
    assert stream(answer_of(api), events)[:first] == events[:first]


@each_row("api", ["responses", "messages"])
def test_a_call_that_goes_through_is_held_until_it_is_complete(api):
    events = EVENTS[api](LS, READ)
    parts = stream(answer_of(api), events)
    held = [at for at, part in enumerate(parts[:-1]) if not part]
    assert held
    assert parts[max(held) + 1] == b"".join(events[min(held) : max(held) + 2])
    assert b"read_file" not in b"".join(parts[: max(held) + 2])


@each_api
def test_pings_do_not_wait_for_a_call(api):
    events = EVENTS[api](FULL)
    first = next(at for at, event in enumerate(events) if b"bash" in event)
    pings = [wire.data({"type": "ping"}, "ping"), b": keep-alive\n\n"]
    parts = stream(answer_of(api), [*events[: first + 1], *pings, *events[first + 1 :]])
    assert parts[first + 1 : first + 3] == pings


@each_api
def test_a_stream_that_ends_without_its_last_line(api):
    events = EVENTS[api](LS)
    whole = b"".join(events).rstrip(b"\n")
    assert b"".join(stream(answer_of(api), [whole])) == whole
    whole = b"".join(EVENTS[api](FULL)).rstrip(b"\n")
    assert b"bash" not in b"".join(stream(answer_of(api), [whole]))


@each_api
def test_a_stream_that_ends_within_a_call_is_released(api):
    events = EVENTS[api](FULL)
    first = next(at for at, event in enumerate(events) if b"bash" in event)
    cut = events[: first + 2]
    assert b"".join(stream(answer_of(api), cut)) == b"".join(cut)


@each_api
@each_row("size", [1, 2, 3, 7])
@each_row("end", [b"\n", b"\r\n", b"\r"])
def test_small_chunks_give_the_same_bytes(api, size, end):
    whole = b"".join(EVENTS[api](LS, FULL, READ, text="Now.")).replace(b"\n", end)
    chunks = [whole[at : at + size] for at in range(0, len(whole), size)]
    got = b"".join(stream(answer_of(api), chunks))
    assert got == b"".join(stream(answer_of(api), [whole]))
    assert b"call_1" not in got
    assert b"toolu_1" not in got


@each_api
def test_an_event_above_the_limit_passes_as_it_is(api):
    answer = answer_of(api, most=100)
    chunk = b"data: " + b"x" * 200
    assert answer.feed(chunk) == chunk
    assert answer.feed(b"y\n\n") + answer.finish() == b"y\n\n"


@each_api
def test_a_fault_in_the_review_loses_nothing(api):
    def review(_call):
        raise ZeroDivisionError

    events = EVENTS[api](LS, READ)
    answer = answer_of(api, review)
    assert b"".join(stream(answer, events)) == b"".join(events)
    assert answer.bypass_reason == "unexpected ZeroDivisionError"


@each_api
@each_row("depth", [100, 500, 900, 990, 1500, 5000, 50_000])
def test_no_depth_of_arguments_breaks_an_answer(api, depth):
    deep = json.loads("[" * 400 + "]" * 400)
    whole = b"".join(EVENTS[api](("bash", {"a": deep, "command": "ls"}), text="t")).decode()
    whole = whole.replace("[[[[", "[" * depth, 1).replace("]]]]", "]" * depth, 1).encode()
    assert b"".join(stream(answer_of(api), [whole])) == whole


# Streams of other providers


def test_calls_with_the_same_index_are_told_apart_by_their_ids():
    events = [*wire.chat_call_events(0, LS), *wire.chat_call_events(1, FULL)]
    events = [event.replace(b'"index": 1, "id"', b'"index": 0, "id"') for event in events]
    pieces = [event.replace(b'[{"index": 1', b'[{"index": 0') for event in events]
    end = wire.chat_chunk({}, "tool_calls")
    got = b"".join(stream(answer_of("chat"), [*pieces, end, b"data: [DONE]\n\n"]))
    assert b"call_0" in got
    assert b"call_1" not in got


def test_a_chunk_that_holds_everything_is_taken_apart():
    pieces = [{"index": at, **wire.chat_call(at, call)} for at, call in enumerate((FULL, LS))]
    delta = {"role": "assistant", "content": "Now.", "tool_calls": pieces}
    events = [wire.chat_chunk(delta, "tool_calls"), b"data: [DONE]\n\n"]
    body = assemble("chat", b"".join(stream(answer_of("chat"), events)))
    message = body["choices"][0]["message"]
    assert message["content"] == "Now."
    assert [entry["id"] for entry in message["tool_calls"]] == ["call_1"]
    assert body["choices"][0]["finish_reason"] == "tool_calls"


def test_further_keys_of_a_streamed_call_are_kept():
    """Gemini wants the signature back that its compatible API adds to a call."""
    extra = {"extra_content": {"google": {"thought_signature": "S"}}}
    delta = {"tool_calls": [{"index": 0, **wire.chat_call(0, FULL), **extra}]}
    answer = answer_of("chat")
    answer.feed(wire.chat_chunk(delta, "tool_calls"))
    answer.feed(b"data: [DONE]\n\n")
    held = answer.dialect.hold_calls(answer.assemble(), answer.messages)[1]
    assert held.held[0].part == {**wire.chat_call(0, FULL), **extra}


def test_a_response_that_never_says_that_an_item_is_done():
    events = [e for e in wire.response_events(FULL) if b"output_item.done" not in e]
    assert b"bash" not in b"".join(stream(answer_of("responses"), events))


def test_a_block_that_never_ends_is_decided_before_the_message_does():
    events = [e for e in wire.message_events(FULL) if b"content_block_stop" not in e]
    assert b"bash" not in b"".join(stream(answer_of("messages"), events))


def test_a_last_event_without_the_output_stays_as_it_is():
    """Codex's own backend leaves the output out."""
    events = wire.response_events(LS)
    last = parse_data(events[-1])
    last["response"]["output"] = []
    events[-1] = wire.data(last, last["type"])
    assert b"".join(stream(answer_of("responses"), events)) == b"".join(events)


def test_numbers_rise_after_a_removed_item():
    found = stream(answer_of("responses"), wire.response_events(LS, FULL, READ, text="Now:"))
    payloads = [parse_data(e + b"\n\n") for e in b"".join(found).split(b"\n\n")[:-1]]
    numbers = [payload["sequence_number"] for payload in payloads]
    assert numbers == sorted(set(numbers))
    assert {p["output_index"] for p in payloads if "output_index" in p} == {0, 1, 2}
    kinds = [item["type"] for item in payloads[-1]["response"]["output"]]
    assert kinds == ["message", "function_call", "function_call"]


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
