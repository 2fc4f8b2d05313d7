"""The recorder of an episode: states of calls, limits of stored bytes, decisions, threads."""

from __future__ import annotations

import itertools
import json

from ci_agent_eval.model_traffic import recorder as recorder_module
from ci_agent_eval.model_traffic.formats.openai_chat import OPENAI_CHAT
from ci_agent_eval.model_traffic.recorder import READER_STOPPED, TrafficRecorder
from tests.tables import each_row

URL = "https://api.example/v1/chat/completions?key=secret"
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
WHOLE = b'{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}'
FIRST = b'data: {"choices": [{"delta": {"content": "hi"}}]}\n\n'
LAST = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
REFUSED = "connection refused"


def create_recorder(**options) -> TrafficRecorder:
    clock = itertools.count(10.0)
    return TrafficRecorder(lambda: next(clock), **options)


def start(recorder, body=BODY):
    return recorder.start_call(OPENAI_CHAT, URL, body)


@each_row(
    ("status", "chunks", "error", "expected"),
    [
        (200, [WHOLE], None, ("complete", None)),
        (200, [WHOLE[:20], WHOLE[20:]], None, ("complete", None)),
        (200, [WHOLE], READER_STOPPED, ("complete", None)),  # nothing was left to read
        (200, [WHOLE[:20]], None, ("broken", "the answer broke off")),
        (200, [WHOLE[:20]], "ReadError", ("broken", "ReadError")),
        (200, [FIRST, LAST, DONE], None, ("complete", None)),
        (200, [FIRST, LAST], None, ("complete", None)),
        (200, [FIRST], None, ("broken", "the answer broke off")),
        (200, [FIRST], READER_STOPPED, ("broken", READER_STOPPED)),
        (200, [FIRST[:9]], READER_STOPPED, ("broken", READER_STOPPED)),
        (200, [], READER_STOPPED, ("failed", READER_STOPPED)),
        (None, [], REFUSED, ("failed", REFUSED)),
        (500, [b"oops"], None, ("complete", None)),
        (429, [], "ClientResponseError: 429", ("complete", None)),
        (307, [], None, ("complete", None)),
    ],
)
def test_state_of_an_ended_call(status, chunks, error, expected):
    ended = []
    recorder = create_recorder(on_call_ended=ended.append)
    call = start(recorder)
    if status is not None:
        call.set_response(status, {"Content-Type": "text/event-stream"})
    for chunk in chunks:
        call.feed(chunk)
    call.end(error)
    call.end("a later end")
    call.feed(b"a later chunk")
    assert (call.state, call.error) == expected
    assert call.chunks == chunks
    assert ended == [call]
    assert call.ended_s > call.started_s


def test_a_large_answer_is_cut(monkeypatch):
    monkeypatch.setattr(recorder_module, "MAX_ANSWER_BYTES", len(FIRST) + 5)
    call = start(create_recorder())
    call.set_response(200, {})
    call.feed(FIRST)
    assert (call.state, call.is_cut) == ("open", False)
    call.feed(LAST)
    call.feed(DONE)
    call.end()
    assert (call.state, call.is_cut) == ("broken", True)
    assert b"".join(call.chunks) == (FIRST + LAST)[: len(FIRST) + 5]
    assert call.error == f"the answer has more than {len(FIRST) + 5} bytes; the rest is not kept"
    assert call.answer.text == "hi"


def test_a_large_request_is_cut(monkeypatch):
    monkeypatch.setattr(recorder_module, "MAX_REQUEST_BYTES", 10)
    call = start(create_recorder())
    assert (call.body, call.is_cut) == (BODY[:10], True)
    assert call.error == f"the request has {len(BODY)} bytes; 10 are kept"
    assert call.request is None
