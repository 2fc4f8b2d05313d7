"""The recorder of an episode: states of calls, limits of stored bytes, decisions, threads."""

from __future__ import annotations

import itertools
import json
import threading

from ci_agent_eval.model_traffic import recorder as recorder_module
from ci_agent_eval.model_traffic.formats.anthropic_messages import AnthropicMessages
from ci_agent_eval.model_traffic.formats.openai_chat import OpenAIChat
from ci_agent_eval.model_traffic.formats.protocol import HTTPAnswer
from ci_agent_eval.model_traffic.recorder import (
    READER_STOPPED,
    MissingRecordingError,
    TrafficRecorder,
)
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
    return recorder.start_call(OpenAIChat(), URL, body)


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


STREAMS = [
    (OpenAIChat(), FIRST + LAST + DONE),
    (AnthropicMessages(), b'event: message_stop\ndata: {"type": "message_stop"}\n\n'),
]


@each_row(("message_format", "stream"), STREAMS)
@each_row("size", [1, 2, 3, 5, 7, 1000])
def test_the_last_event_ends_a_call_wherever_the_stream_is_cut(message_format, stream, size):
    call = create_recorder().start_call(message_format, URL, BODY)
    call.set_response(200, {"content-type": "text/event-stream"})
    for at in range(0, len(stream), size):
        assert call.state == "open"
        call.feed(stream[at : at + size])
    assert call.state == "complete"


def test_a_call_keeps_no_query_and_few_headers():
    call = start(create_recorder())
    call.set_response(
        200, {"Content-Type": "application/json", "Set-Cookie": "id=1", "X-Request-Id": "7"}
    )
    assert call.url == "https://api.example/v1/chat/completions"
    assert call.headers == {"content-type": "application/json", "x-request-id": "7"}
    assert call.number == 1


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


class Player:
    def __init__(self, answer=None, error=None):
        self.answer, self.error, self.stored = answer, error, []

    def find_answer(self, call):
        if self.error is not None:
            raise self.error
        return self.answer

    def store(self, call):
        self.stored.append(call.number)


def test_live_calls_are_stored_and_no_others():
    player = Player()
    recorder = create_recorder(player=player)
    live = start(recorder)
    assert live.decide().answer is None
    live.set_response(200, {})
    live.feed(WHOLE)
    player.answer = HTTPAnswer(200, {}, (WHOLE,))
    replayed = start(recorder)
    assert replayed.decide().answer is player.answer
    replayed.set_response(200, {})
    replayed.feed(WHOLE)
    player.error = MissingRecordingError("no recording: the question differs")
    missing = start(recorder)
    answer = missing.decide().answer
    assert json.loads(b"".join(answer.chunks))["error"]["message"] == str(player.error)
    assert player.stored == [1]
    assert [call.state for call in recorder.calls] == ["complete", "complete", "refused"]
    assert recorder.refusal is None  # other requests may have a recording


def test_a_refusal_holds_for_every_further_call():
    reasons = iter(["over budget"])
    recorder = create_recorder(check_limits=lambda _: next(reasons, None))
    for _ in range(2):
        assert start(recorder).decide().answer.status == 400
    assert recorder.refusal == "over budget"
    assert [call.error for call in recorder.calls] == ["over budget"] * 2


def test_the_end_of_an_episode_ends_its_open_calls():
    recorder = create_recorder()
    silent, begun, ended = (start(recorder) for _ in range(3))
    begun.set_response(200, {})
    begun.feed(FIRST)
    ended.set_response(200, {})
    ended.feed(WHOLE)
    recorder.finish()
    assert recorder.is_ended
    assert [call.state for call in recorder.calls] == ["failed", "broken", "complete"]
    assert silent.error == begun.error == "the episode ended before the answer"


def test_calls_of_many_threads_have_numbers_without_gap():
    ended = []
    recorder = create_recorder(on_call_ended=lambda call: ended.append(call.number))
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        for _ in range(50):
            call = start(recorder)
            call.decide()
            call.set_response(200, {})
            call.feed(WHOLE)
            call.end()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [call.number for call in recorder.calls] == list(range(1, 401))
    assert sorted(ended) == list(range(1, 401))
