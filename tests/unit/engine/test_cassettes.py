"""Exchanges in a cassette: their text, their keys, and what a miss says."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.engine.cassette import CassetteMissError, CassetteSession
from ci_agent_eval.engine.cassette.answers import build_answer, dump_answer
from ci_agent_eval.engine.cassette.document import (
    Cassette,
    RecordedExchange,
    ToolRequest,
    TrafficRequest,
    parse_cassette,
    render_cassette,
)
from ci_agent_eval.engine.cassette.misses import describe_changes, parse_rules
from ci_agent_eval.engine.cassette.yaml_text import parse_cassette_yaml, render_cassette_yaml
from ci_agent_eval.errors import InputError
from ci_agent_eval.redaction import Redactor
from tests.tables import each_row

JSON_TYPE = {"content-type": "application/json"}
STREAM_TYPE = {"content-type": "text/event-stream; charset=utf-8"}
TOOLS = [{"type": "function", "function": {"name": "balance", "parameters": {"type": "object"}}}]


def same(value):
    return value


def user(text):
    return {"role": "user", "content": text}


def request(*messages, previous=None, tools=TOOLS, **fields) -> TrafficRequest:
    body = {"model": "gpt-5-mini", "messages": [*messages], **fields}
    return TrafficRequest("openai-chat", body | ({"tools": tools} if tools else {}), previous)


def exchange(asked, content="hello"):
    body = json.dumps({"choices": [{"message": {"content": content}}]}).encode()
    return RecordedExchange(asked, dump_answer(200, JSON_TYPE, body, same))


def conversation():
    first = user("my balance?")
    call = {"role": "assistant", "tool_calls": [{"id": "id-1", "function": {"name": "balance"}}]}
    result = {"role": "tool", "tool_call_id": "id-1", "content": "1500"}
    other = request(first, tools=None, temperature=0.5)
    return (
        exchange(request(first)),
        exchange(request(first, call, result)),
        exchange(other),
        exchange(request(first, call, result, user("and now?"), previous=2, temperature=1)),
        RecordedExchange(ToolRequest("balance", {"account": "a"}), {"result": "1500"}),
    )


def session(*exchanges, mode="replay", rules=()):
    cassette = Cassette("s", {1: tuple(exchanges)})
    return CassetteSession(cassette, mode, same, rules=parse_rules(rules))


def test_a_cassette_of_traffic_is_read_as_it_was_written(golden):
    text = render_cassette(Cassette("banking", {1: conversation()}))
    read = parse_cassette(text, "x")
    assert read.takes[1] == conversation()
    assert render_cassette(read) == text
    golden("cassette.yaml", text)


def test_a_long_difference_is_cut_and_says_so():
    said = describe_changes(request(user("a\n" * 50)), request(user("b\n" * 50)))
    assert "more lines" in said
    assert len(said.splitlines()) < 20


@each_row(
    "text",
    [
        "",
        "[]",
        "cassette: 3\nscenario: s",
        "cassette: 3\nscenario: s\ntakes: [{iteration: 1, exchanges: [{}]}]",
        "cassette: 3\nscenario: s\ntakes: [{iteration: 1, exchanges: [{tool: x}]}]",
        "a: [",
        "!!python/object:os.system {}",
    ],
)
def test_what_is_no_cassette_is_said_with_its_place(text):
    with pytest.raises(InputError, match=r"(?s)cassette some\.yaml cannot be read: .*repair it"):
        parse_cassette(text, "some.yaml")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text().map(clean_text),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text().map(clean_text), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
@example(["\n", "a\n", "a\n\n", "\n\n a\n\nb\n\n", "a\n b \nc", "a\nb ", "a\n\u2028b"])
def test_any_value_survives_yaml(value):
    assert parse_cassette_yaml(render_cassette_yaml(value)) == value


@each_row(
    ("content_type", "body"),
    [
        ("application/json", b'{"a":[1,2.5,null,"\\u00e4"]}'),
        ("application/json", b'{"n":1180591620717411303424}'),
        ("application/json", b"{ broken"),
        ("application/json", b'"text"'),
        ("text/event-stream", b'data: {"a":1}\n\ndata: {"a":"x\\ny"}\n\ndata: [DONE]\n\n'),
        ("text/event-stream", b'event: start\ndata: {"type":"start","n":1}\n\n'),
        ("text/event-stream", b'event: other\ndata: {"type":"start"}\n\n'),
        ("text/event-stream", b'data: {"n":1180591620717411303424}\n\n'),
        ("text/event-stream", b"data: one\ndata: two\n\n"),
        ("text/event-stream", b""),
        ("application/vnd.amazon.eventstream", b"\x00\x00\x01\xff"),
    ],
)
def test_a_body_is_built_again(content_type, body):
    answer = dump_answer(200, {"content-type": content_type, "x-request-id": "r"}, body, same)
    text = render_cassette(Cassette("s", {1: (RecordedExchange(request(), answer),)}))
    built = build_answer(parse_cassette(text, "x").takes[1][0].response)
    assert (built.status, dict(built.headers)) == (200, {"content-type": content_type})
    assert b"".join(built.chunks) == body


def test_each_event_is_a_chunk_and_a_broken_one_is_dropped():
    stream = b': ping\n\ndata: {"a": 1}\r\n\r\ndata: {"b": 2}\n\ndata: {"c'
    chunks = build_answer(dump_answer(200, STREAM_TYPE, stream, same)).chunks
    assert chunks == (b'data: {"a":1}\n\n', b'data: {"b":2}\n\n')


def chunk(text, index=0):
    return {"id": "chat-1", "choices": [{"index": index, "delta": {"content": text}}]}


def test_a_secret_in_several_events_is_redacted():
    secret = "sesame-open-the-door-4711"
    pieces = ["say ", secret[:7], secret[7:], " now"]
    events = [event for piece in pieces for event in (chunk(piece), chunk("other ", 1))]
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    redact = Redactor.of([secret]).value
    answer = dump_answer(200, STREAM_TYPE, stream, redact)
    assert secret[7:] not in str(answer)
    texts = [event["choices"][0]["delta"]["content"] for event in answer["events"]]
    assert texts[::2] == ["say [redacted] now", "", "", ""]
    assert texts[1::2] == ["other "] * 4
    assert {event["id"] for event in answer["events"]} == {"chat-1"}


def test_a_secret_in_a_binary_answer_is_refused():
    redact = Redactor.of(["sesame-open-the-door"]).value
    with pytest.raises(ValueError, match="holds a secret"):
        dump_answer(200, {}, b"\xff sesame-open-the-door", redact)


@each_row(
    ("changes", "problem"),
    [
        ({"status": "fine"}, "'fine', which is not an HTTP status"),
        ({"headers": 3}, "headers 3"),
        ({"text": "x"}, "json and text; give one of json, events, text, base64"),
        ({"json": None, "events": [4]}, "json and events"),
    ],
)
def test_a_wrong_answer_is_one_sentence(changes, problem):
    good = exchange(request(user("a")))
    take = (RecordedExchange(good.request, good.response | changes),)
    with pytest.raises(InputError, match=rf"cassette some.yaml cannot be read: .*{problem}"):
        parse_cassette(render_cassette(Cassette("s", {1: take})), "some.yaml")


@each_row(
    ("old", "new", "problem"),
    [
        ("format: openai-chat", "format: smoke", "'smoke' is not a format; use openai-chat"),
        ("previous: 2", "previous: 4", "exchange 4: `previous` is 4, no earlier exchange"),
        ("previous: 2", "previous: x", "exchange 4: `previous` is 'x', no earlier exchange"),
        ("tools: ", "tools: z", "there is no 'z"),
        ("request:", "requests:", "there is no 'request'"),
        ("json:\n", "json: 3\n            x:\n", ""),
    ],
)
def test_a_text_edited_wrongly_is_one_sentence(old, new, problem):
    text = render_cassette(Cassette("s", {1: conversation()}))
    assert old in text
    with pytest.raises(InputError, match=f"cassette some.yaml cannot be read: .*{problem}"):
        parse_cassette(text.replace(old, new, 1), "some.yaml")


def test_an_edited_answer_is_replayed():
    text = render_cassette(Cassette("s", {1: conversation()}))
    (first, *_) = parse_cassette(text.replace("content: hello", "content: bye", 1), "x").takes[1]
    assert b'"content":"bye"' in build_answer(first.response).chunks[0]


@each_row(
    ("other", "label", "lines"),
    [
        (request(user("a"), model="gpt-5"), "model", ["-gpt-5-mini", "+gpt-5"]),
        (request(user("a"), temperature=1), "temperature", ["+1"]),
        (request(user("b")), "messages[0].content", ["-a", "+b"]),
        (request({"role": "system", "content": "b"}), "messages[0]", ["+content: b"]),
        (request(user("a"), user("b")), "messages[1]", ["+role: user", "+content: b"]),
        (request(user("a"), tools=None), "tools", ["-- type: function"]),
        (request(user("a"), previous=1), "the exchange whose answer is continued", ["+1"]),
    ],
)
def test_the_first_difference_of_each_field_is_shown(other, label, lines):
    said = describe_changes(request(user("a")), other).splitlines()
    assert said[0] == f"changed: {label}"
    assert set(lines) <= set(said)


def test_equal_requests_are_answered_in_the_recorded_order():
    asked = request(user("a"))
    replay = session(exchange(asked, "one"), exchange(asked, "two"))
    assert [replay.find_exchange(asked), replay.find_exchange(asked)] == [1, 2]
    with pytest.raises(CassetteMissError, match="asked more often than it was recorded"):
        replay.find_exchange(asked)


def test_answers_that_the_provider_continues_keep_conversations_apart():
    replay = session(
        exchange(request(user("a"))),
        exchange(request(user("a"))),
        exchange(request(user("go on"), previous=2)),
        exchange(request(user("go on"), previous=1)),
    )
    assert replay.find_exchange(request(user("go on"), previous=1)) == 4
    assert replay.find_exchange(request(user("go on"), previous=2)) == 3


VARYING = [
    ("it is 2026-11-23", "it is 2027-01-02", r"\d{4}-\d\d-\d\d => <date>"),
    ("at 10:20:30.5", "at 11:00:00.25", "=> <time>"),
    ("at 2026-11-23T10:20:30Z", "at 2027-01-02T11:00:00Z", "=> <time>"),
    ("on November 3, 2026", "on May 12, 2027", "=> <date>"),
    ("in /tmp/abc/x.txt", "in /tmp/def/y.txt", "=> <temporary path>"),
    ("<object at 0x7f00aa>", "<object at 0x7f11bb>", "=> <address>"),
    ("id 0123456789abcdef01", "id 1123456789abcdef02", "=> <id>"),
    ("at 1763900000", "at 1763900042", "=> <timestamp>"),
    ("my pid is 3, pid: 4711", "my pid is 3, pid: 42", "<number>"),
    (
        "run 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "run 6ba7b811-9dad-11d1-80b4-00c04fd430c9",
        "=> <uuid>",
    ),
]


@each_row(("old", "new", "rule"), VARYING)
def test_a_miss_names_the_rule_that_helps_and_it_does(old, new, rule):
    recorded = exchange(request(user(old)))
    with pytest.raises(CassetteMissError, match="add to the ini setting cassette_replace") as miss:
        session(recorded).find_exchange(request(user(new)))
    suggested = str(miss.value).splitlines()[-1].strip()
    assert rule in suggested
    with_rule = session(recorded, rules=[suggested])
    asked = TrafficRequest("openai-chat", with_rule.normalize(request(user(new)).body))
    assert with_rule.find_exchange(asked) == 1


def test_several_kinds_of_varying_texts_need_several_rules():
    old, new = "pid 4711 in /tmp/a on 2026-11-23", "pid 42 in /tmp/b on 2027-01-02"
    said = describe_changes(request(user(old)), request(user(new)))
    assert len(said.partition("cassette_replace:\n")[2].splitlines()) == 3


def test_a_change_of_an_unknown_kind_suggests_no_rule():
    said = describe_changes(request(user("refund 50")), request(user("refund 60")))
    assert "cassette_replace" not in said


@each_row(
    ("line", "problem"),
    [
        ("2026", "give a pattern, `=>` and a replacement"),
        ("( => x", "missing \\), unterminated subpattern"),
        ("x* => y", "matches an empty text"),
        (r"x => \2", "invalid group reference"),
    ],
)
def test_a_wrong_rule_is_one_sentence(line, problem):
    with pytest.raises(InputError, match=rf"^cassette_replace: .* is not a rule: .*{problem}"):
        parse_rules([line])
