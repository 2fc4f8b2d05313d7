"""The same expectations of every format."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.model_traffic.formats.json_values import UnreadableTrafficError
from ci_agent_eval.model_traffic.formats.registry import FORMATS, find_format, is_model_request
from ci_agent_eval.model_traffic.messages import ModelAnswer, ToolResult
from tests.tables import each_row
from tests.traffic_wire import JSON, SSE_WIRES, WIRES, cut

# Other tests keep the processors busy.
calmly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
every_format = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
every_sse_format = pytest.mark.parametrize("wire", SSE_WIRES.values(), ids=SSE_WIRES)
formats = st.sampled_from(list(WIRES.values()))

ENDED_BY_CLOSE = {"gemini", "bedrock-converse"}
"""Formats whose streams have no last event."""
LOOKUP = ("lookup", {"order": 7, "id": "order-7"})
READ = ("read_file", {"path": "a.py"})


def without_ids(calls):
    return [call.model_copy(update={"id": None}) for call in calls]


def test_every_format_has_traffic_to_test_with():
    assert set(WIRES) == set(FORMATS)
    assert {name: item.name for name, item in FORMATS.items()} == {name: name for name in FORMATS}


@every_format
def test_a_plain_answer_has_text_calls_usage_and_finish_reason(wire):
    answer = wire.read(wire.build_body(LOOKUP, READ, text="Let me see."))
    assert answer.text == "Let me see."
    assert without_ids(answer.tool_calls) == [
        ToolCall(name=name, arguments=arguments) for name, arguments in (LOOKUP, READ)
    ]
    assert len({call.id for call in answer.tool_calls}) == 2
    assert answer.tokens is not None
    assert answer.tokens.total > 0
    assert answer.finish_reason is not None
    assert answer.error is None


@every_format
def test_a_streamed_answer_is_the_same_as_the_plain_one(wire):
    plain = wire.read(wire.build_body(LOOKUP, READ, text="Let me see."))
    streamed = wire.assemble(wire.build_events(LOOKUP, READ, text="Let me see."))
    assert streamed.is_complete
    assert streamed.is_ended or wire.name in ENDED_BY_CLOSE
    assert dataclasses.replace(streamed.answer, usage=None) == dataclasses.replace(
        plain, usage=None
    )


@calmly
@given(formats, st.lists(st.integers(0), max_size=30), st.booleans(), st.booleans())
def test_an_answer_does_not_depend_on_the_chunking(wire, places, is_streamed, is_crlf):
    if is_streamed:
        stream = b"".join(wire.build_events(LOOKUP, READ, text="Schön \u2028 ok"))
        if is_crlf and wire.name in SSE_WIRES:
            stream = stream.replace(b"\n", b"\r\n")
        headers = wire.event_headers
    else:
        stream = json.dumps(wire.build_body(LOOKUP, READ, text='"}\\"{[')).encode()
        headers = {**JSON, "content-length": str(len(stream))}
    whole, pieces = wire.assemble([stream], 200, headers), wire.assemble([], 200, headers)
    for chunk in cut(stream, places):
        assert not pieces.is_ended
        pieces.feed(chunk)
    assert pieces.is_complete
    assert pieces.is_ended or wire.name in ENDED_BY_CLOSE
    assert pieces.answer == whole.answer
    assert without_ids(whole.answer.tool_calls) == [
        ToolCall(name=name, arguments=arguments) for name, arguments in (LOOKUP, READ)
    ]


@every_format
def test_a_stream_cut_in_the_middle_gives_the_text_so_far(wire):
    events = wire.build_events(text="Hello world")
    second = next(at for at, event in enumerate(events) if b" world" in event)
    assembler = wire.assemble(events[:second])
    assert not assembler.is_ended
    assert not assembler.is_complete
    assert assembler.answer.text == "Hello"
    assert assembler.answer.tokens is None
    assert assembler.answer.finish_reason is None


@each_row("wire", [item for name, item in WIRES.items() if name != "gemini"])
def test_a_stream_cut_in_a_call_gives_the_call_so_far(wire):
    events = wire.build_events(LOOKUP, text="Now.")
    half = next(at for at, event in enumerate(events) if b"order-7" in event)
    answer = wire.read_events(events[:half])
    assert answer.text == "Now."
    (call,) = answer.tool_calls
    assert call.name == "lookup"
    assert call.arguments != LOOKUP[1]


@every_format
def test_a_stream_without_an_end_event_is_complete_with_its_finish_reason(wire):
    events = wire.build_events(text="Hello")
    finish = wire.read_events(events).finish_reason
    until = next(
        n for n in range(len(events) + 1) if wire.read_events(events[:n]).finish_reason == finish
    )
    assert wire.assemble(events[:until]).is_complete


@every_sse_format
def test_an_event_without_its_last_empty_line_counts(wire):
    stream = b"".join(wire.build_events(LOOKUP, text="Hello")).rstrip(b"\n")
    assert wire.read_events([stream]) == wire.read_events([stream + b"\n\n"])


@every_sse_format
@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}])
def test_the_encoding_is_seen_without_its_content_type(wire, headers):
    stream = b"".join(wire.build_events(LOOKUP, text="Hello"))
    assert wire.assemble([stream], 200, headers).answer.text == "Hello"
    body = json.dumps(wire.build_body(LOOKUP, text="Hello")).encode()
    assert wire.assemble([b"\n ", body], 200, headers).answer.text == "Hello"


@every_format
def test_the_length_of_an_encoded_body_is_not_its_end(wire):
    body = json.dumps(wire.build_body(text="Hello")).encode()
    headers = {"content-length": "20", "content-encoding": "gzip"}
    assert not wire.assemble([body[:30]], 200, headers).is_ended
    assert wire.assemble([body], 200, headers).is_complete


@every_format
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"error": {"message": "Too long."}}, "HTTP 400: Too long."),
        ({"error": "Too long."}, "HTTP 400: Too long."),
        ({"message": "Too long."}, "HTTP 400: Too long."),
        ({"detail": "Too long."}, "HTTP 400: Too long."),
        ([{"error": {"message": "Too long."}}], "HTTP 400: Too long."),
        ({"error": {"code": 7}}, 'HTTP 400: {"code": 7}'),
        ({}, "HTTP 400: no reason given"),
    ],
)
def test_an_error_has_the_provider_s_message(wire, body, error):
    assert wire.read(body, 400).error == error
    assert wire.read({"error": {"message": "x" * 10_000}}, 400).error == f"HTTP 400: {'x' * 2000}"


@every_format
def test_a_body_that_is_no_json_is_an_error(wire):
    page = wire.assemble([b"<html>Bad gateway</html>"], 502, {})
    assert page.answer.error == "HTTP 502: the body is no complete JSON: <html>Bad gateway</html>"
    assert page.is_complete
    page = wire.assemble([b"<html>"], 200, {})
    assert page.answer == ModelAnswer(error="the body is no complete JSON: <html>")
    assert not page.is_complete
    half = wire.assemble([b'{"choices": ['], 200, {})
    assert "no complete JSON" in half.answer.error
    assert not half.is_complete
    assert "no complete event" in wire.assemble([b"nothing"], 200, {}).answer.error


@every_format
def test_no_byte_is_no_answer(wire):
    assembler = wire.assemble([], 200, {})
    assert not assembler.is_complete
    assert assembler.answer == ModelAnswer()


@every_format
def test_a_request_has_its_conversation(wire):
    request = wire.parse(wire.build_request("Where is it?", LOOKUP, "c1", "in Rome"))
    assert request.format == wire.name
    models = ("gpt-5", "claude-sonnet-5", "gemini-3-pro", "us.amazon.nova-pro-v1:0")
    assert request.model in models
    system, user, assistant, tool = request.messages
    assert (system.role, system.text) == ("system", "Be brief.")
    assert (user.role, user.text) == ("user", "Where is it?")
    assert assistant.role == "assistant"
    assert assistant.tool_calls == (ToolCall(id="c1", name="lookup", arguments=LOOKUP[1]),)
    assert tool.role == "tool"
    (result,) = tool.tool_results
    assert result == ToolResult(call_id="c1", name=result.name, value="in Rome")
    assert not request.is_streamed
    assert wire.parse(request_of(wire, stream=True), wire.streamed_url).is_streamed


def request_of(wire, call_id="c1", **more):
    return wire.build_request("Where is it?", LOOKUP, call_id, "in Rome", **more)


@every_format
def test_sampling_settings_keep_their_names(wire):
    request = wire.parse(request_of(wire, **wire.temperature(0.5), top_p=None, user="me"))
    assert request.settings["temperature"] == 0.5
    assert not {"top_p", "user", "model", "messages"} & set(request.settings)


@every_format
def test_keys_of_two_runs_with_different_ids_are_equal(wire):
    first = wire.key(request_of(wire, "call_a"))
    second = wire.key(request_of(wire, "toolu_zz"))
    assert first == second
    assert "call_a" not in first
    # An argument with the name `id` belongs to the tool.
    assert "order-7" in first
    assert json.loads(first)["model"] == wire.parse(request_of(wire)).model


def chat_results(order):
    calls = [{"id": one, "function": {"name": "f", "arguments": "{}"}} for one in CALL_IDS]
    results = [{"role": "tool", "tool_call_id": one, "content": f"by {one}"} for one in order]
    return {"model": "m", "messages": [{"role": "assistant", "tool_calls": calls}, *results]}


def response_results(order):
    kind = "function_call_output"
    results = [{"type": kind, "call_id": one, "output": f"by {one}"} for one in order]
    return {"model": "m", "previous_response_id": "r", "input": results}


def anthropic_results(order):
    calls = [{"type": "tool_use", "id": one, "name": "f", "input": {}} for one in CALL_IDS]
    kind = "tool_result"
    results = [{"type": kind, "tool_use_id": one, "content": f"by {one}"} for one in order]
    contents = [("assistant", calls), ("user", results)]
    return {"model": "m", "messages": [{"role": role, "content": c} for role, c in contents]}


CALL_IDS = [f"call_{name}" for name in "caxbfghijklm"]


@each_row(
    ("name", "build"),
    [
        ("openai-chat", chat_results),
        ("openai-responses", response_results),
        ("anthropic-messages", anthropic_results),
    ],
)
def test_parallel_tools_may_end_in_any_order(name, build):
    def key(order, text=""):
        request = json.dumps(build(order)).replace("by call_a", f"by call_a{text}")
        return WIRES[name].format.build_key(WIRES[name].url, request.encode())

    assert key(CALL_IDS) == key(CALL_IDS[::-1]) == key(sorted(CALL_IDS))
    assert key(CALL_IDS) != key(CALL_IDS, "!")


@every_format
def test_keys_tell_requests_apart(wire):
    key = wire.key(request_of(wire))
    others = [
        wire.build_request("Where?", LOOKUP, "c1", "in Rome"),
        wire.build_request("Where is it?", READ, "c1", "in Rome"),
        wire.build_request("Where is it?", LOOKUP, "c1", "in Oslo"),
        request_of(wire, **wire.temperature(0.5)),
        request_of(wire, tools=[{"type": "function", "name": "lookup"}]),
    ]
    another = {**request_of(wire), "model": "another"}
    keys = {key, *(wire.key(other) for other in others), wire.key(another, wire.other_url)}
    assert len(keys) == len(others) + 2


@every_format
def test_streaming_is_not_in_the_key(wire):
    options = {} if wire.streamed_url else {"stream": True}
    assert wire.key(request_of(wire, **options), wire.streamed_url) == wire.key(request_of(wire))


@every_format
def test_ids_that_refer_to_each_other_stay_connected_in_keys(wire):
    """Two results in another order are another request."""
    request = json.dumps(wire.build_request("Where?", LOOKUP, "c1", "in Rome"))
    crossed = request.replace('"c1"', '"c2"', 1)
    assert wire.key(json.loads(request)) != wire.key(json.loads(crossed))


@every_format
def test_a_refusal_has_status_400_and_is_read_as_an_error(wire):
    refusal = wire.format.build_refusal("over budget: 4 of 4 turns")
    assert refusal.status == 400
    assert refusal.headers["x-should-retry"] == "false"
    assembler = wire.assemble(refusal.chunks, refusal.status, dict(refusal.headers))
    assert assembler.is_complete
    assert assembler.answer.error == "HTTP 400: over budget: 4 of 4 turns"


@every_format
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"null", b"\xff", b"[" * 100_000, b'{"a":' * 100_000]
)
def test_a_body_that_is_no_object_is_unreadable(wire, body):
    for read in (wire.format.parse_head, wire.format.parse_request, wire.format.build_key):
        with pytest.raises(UnreadableTrafficError, match="not a JSON object"):
            read(wire.url, body)


def mutated(value, draw):
    """Replace some of a body's values by others."""
    if draw(st.integers(0, 5)) == 0:
        return draw(JUNK)
    if isinstance(value, dict):
        return {key: mutated(item, draw) for key, item in value.items()}
    if isinstance(value, list):
        return [mutated(item, draw) for item in value]
    return value


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@every_format
def test_a_conversation_that_is_no_list_is_unreadable(wire):
    for key in ("messages", "contents", "input"):
        body = json.dumps({**request_of(wire), key: 7}).encode()
        if key in request_of(wire):
            for read in (wire.format.parse_head, wire.format.parse_request, wire.format.build_key):
                with pytest.raises(UnreadableTrafficError, match=f"`{key}` is n"):
                    read(wire.url, body)


@every_format
def test_deep_requests_have_a_key_or_are_unreadable(wire):
    for depth in range(100, 1200, 20):
        deep = json.dumps(request_of(wire, extra="deep"))
        body = deep.replace('"deep"', "[" * depth + "]" * depth).encode()
        with contextlib.suppress(UnreadableTrafficError):
            assert wire.format.build_key(wire.url, body)
        with contextlib.suppress(UnreadableTrafficError):
            assert wire.format.parse_request(wire.url, body).messages


@every_format
def test_lone_surrogates_are_replaced(wire):
    answer = wire.read(wire.build_body(("a", {"b\ud800": "\ud800"}), text="Hi \ud800"))
    assert answer.text == "Hi \ufffd"
    assert answer.tool_calls[0].arguments == {"b\ufffd": "\ufffd"}
    request = wire.parse(wire.build_request("Hi \ud800", LOOKUP, "c1", "\ud800"))
    assert request.messages[1].text == "Hi \ufffd"
    assert request.messages[3].tool_results[0].value == "\ufffd"


@calmly
@given(formats, st.data())
def test_hostile_requests_raise_only_unreadable_traffic_errors(wire, data):
    body = json.dumps(mutated(request_of(wire), data.draw)).encode()
    for read in (wire.format.parse_head, wire.format.parse_request, wire.format.build_key):
        with contextlib.suppress(UnreadableTrafficError):
            read(wire.url, body)


@calmly
@given(formats, st.data())
def test_hostile_answers_raise_nothing(wire, data):
    body = json.dumps(mutated(wire.build_body(LOOKUP, READ, text="Hello"), data.draw)).encode()
    status = data.draw(st.sampled_from([200, 400]))
    assembler = wire.assemble(cut(body, data.draw(st.lists(st.integers(0)))), status, {})
    assert isinstance(assembler.answer, ModelAnswer)
    assert isinstance(assembler.is_complete, bool)


ADDRESSES = (Path(__file__).parent / "addresses.txt").read_text().splitlines()


@each_row(("name", "url"), [line.split(" ", 1) for line in ADDRESSES])
def test_model_calls_are_recognised_by_method_and_path(name, url):
    found = find_format("post", url)
    assert (found.name if found else "-") == name
    assert find_format("GET", url) is None


MODEL_REQUESTS = [
    ("openai-chat", True, {"messages": [{"role": "user", "content": "hi"}]}),
    ("openai-chat", False, {"messages": "hi"}),
    ("anthropic-messages", True, {"messages": []}),
    ("anthropic-messages", False, {"messages": [{"to": "+4179", "text": "hi"}]}),
    ("anthropic-messages", False, {"to": "+4179", "text": "hi"}),
    ("openai-responses", True, {"model": "gpt-5", "input": "hi"}),
    ("openai-responses", True, {"prompt": {"id": "pmpt_1"}, "input": []}),
    ("openai-responses", False, {"input": "hi"}),
    ("openai-responses", False, {"model": "gpt-5"}),
    ("gemini", True, {"contents": []}),
    ("gemini", False, {"content": {}}),
    ("bedrock-converse", True, {"messages": []}),
    ("bedrock-converse", False, []),
]


@each_row(("name", "expected", "body"), MODEL_REQUESTS)
def test_the_body_decides_whether_a_request_is_a_model_call(name, expected, body):
    assert is_model_request(FORMATS[name], json.dumps(body).encode()) is expected
    assert not is_model_request(FORMATS[name], b"To=%2B4179&Body=hi")
