from __future__ import annotations

import itertools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ci_agent_eval.model_traffic.formats.json_values import parse_object
from ci_agent_eval.model_traffic.formats.sse import Splitter, parse_data, replace_data
from tests.tables import each_row

# Other tests keep the processors busy.
calmly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

PIECES = st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"data: {}", b"event: x", b":", b"\xff"]))


def cut(chunks):
    splitter = Splitter()
    return [event for chunk in chunks for event in splitter.feed(chunk)], splitter.take_rest()


@calmly
@given(st.lists(st.binary()) | PIECES)
def test_events_and_the_rest_are_the_stream(chunks):
    events, rest = cut(chunks)
    assert b"".join(events) + rest == b"".join(chunks)


@calmly
@given(PIECES.map(b"".join), st.lists(st.integers(0, 200)))
def test_any_chunking_gives_the_same_data(stream, cuts):
    at = sorted({min(c, len(stream)) for c in cuts} | {0, len(stream)})
    whole, _ = cut([stream])
    parts, _ = cut([stream[a:b] for a, b in itertools.pairwise(at)])
    assert [d for e in parts if (d := parse_data(e))] == [d for e in whole if (d := parse_data(e))]


@each_row("end", ["\n", "\r\n", "\r"])
def test_an_event_is_there_with_the_line_that_ends_it(end):
    splitter = Splitter()
    event = f'event: a{end}data: {{"x":1}}{end}{end}'.encode()
    assert splitter.feed(event) == [event]
    assert splitter.feed(event[:-1]) in ([], [event[:-1]])


def test_data_of_several_lines_is_one_value():
    assert parse_data(b': hi\nevent: x\ndata: {"a":\ndata:1}\nid: 3\n\n') == {"a": 1}
    assert parse_data(b'\xef\xbb\xbfdata: {"a":1}\n\n') == {"a": 1}


@each_row(
    "raw",
    [
        b"data: [DONE]\n\n",
        b": ping\n\n",
        b"data: [1]\n\n",
        b"\n\n",
        b'data: {"a"\n\n',
        b"data: \xff",
    ],
)
def test_what_is_no_object_has_no_data(raw):
    assert parse_data(raw) is None


def test_no_json_breaks_the_parser():
    assert parse_object("[" * 100_000) is None
    assert parse_object('{"a":' * 100_000) is None
    assert parse_object(b'{"a": ' + b"9" * 10_000 + b"}") is None
    assert parse_object(b"\xff\xfe") is None


@calmly
@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_what_is_rendered_is_read_again(payload):
    assert parse_data(replace_data(b"data: {}\n\n", payload)) == payload


def test_an_event_keeps_its_other_lines_and_their_ends():
    raw = b'event: x\r\ndata: {"a":\r\nid: 7\r\ndata: 1}\r\n\r\n'
    assert replace_data(raw, {"b": 2}) == b'event: x\r\ndata: {"b":2}\r\nid: 7\r\n\r\n'
    assert replace_data(b'data:{"a":1}', {"b": 2}) == b'data: {"b":2}\n\n'


def test_many_small_chunks_cost_little():
    splitter = Splitter()
    for _ in range(200_000):
        splitter.feed(b"x" * 100)
    assert len(splitter.rest) == 20_000_000
