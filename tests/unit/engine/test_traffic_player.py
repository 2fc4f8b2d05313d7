"""Recorded and replayed calls, as a hook makes them; the real clients are in tests/integration."""

from __future__ import annotations

import itertools
import json

from ci_agent_eval.engine.cassette import CassetteStore
from ci_agent_eval.engine.cassette.document import Cassette, parse_cassette, render_cassette
from ci_agent_eval.engine.cassette.store import load_cassette
from ci_agent_eval.model_traffic.recorder import READER_STOPPED, ModelCall, TrafficRecorder
from ci_agent_eval.redaction import Redactor
from tests import llm_wire
from tests.tables import each_row
from tests.traffic_wire import EVENTS, JSON, WIRES

CHAT = WIRES["openai-chat"]


class Episode:
    """Asks as an agent does, through a recorder and a cassette in a folder."""

    def __init__(self, folder, mode, **options):
        self.store = CassetteStore(mode, Redactor.of(["a-long-secret-value"]), **options)
        self.folder = folder
        self.asked = 0

    def __enter__(self):
        self.opened = self.store.episode("e", self.folder, "s")
        self.session = self.opened.__enter__()
        clock = itertools.count()
        self.recorder = TrafficRecorder(lambda: next(clock), player=self.session.player)
        return self

    def __exit__(self, *error):
        self.opened.__exit__(*error)

    def call(self, wire, body, *, status=200, headers=JSON, answer=b"{}", error=None) -> ModelCall:
        call = self.recorder.start_call(wire.format, wire.url, json.dumps(body).encode())
        given = call.decide().answer
        if given is not None:
            status, headers, chunks = given.status, given.headers, given.chunks
        else:
            self.asked += 1
            chunks = answer if isinstance(answer, list) else [answer]
        if call.state == "open":
            call.set_response(status, headers)
            for chunk in chunks:
                call.feed(chunk)
            call.end(None if given else error)
        return call

    def ask(self, prompt, text="hello", **options):
        return self.call(CHAT, ask_body(prompt), answer=chat(text), **options)


def ask_body(prompt):
    return {"model": "gpt-5-mini", "messages": [{"role": "user", "content": prompt}]}


def chat(text):
    return json.dumps(llm_wire.chat_body(text=text)).encode()


def read_takes(folder):
    (path,) = folder.iterdir()
    return load_cassette(path, "s").takes


def is_replayed(folder, hold):
    """Return whether `hold` gives the same calls live and replayed, and asks nobody then."""
    with Episode(folder, "record") as live:
        recorded = [hold(live)]
    with Episode(folder, "replay") as again:
        replayed = [hold(again)]
    assert (again.asked, again.session.counts.live) == (0, 0)
    assert again.session.counts.hits == live.session.counts.live
    return recorded == replayed


@each_row("wire", WIRES.values(), ids=lambda wire: wire.name)
@each_row("is_streamed", [False, True])
def test_an_answer_of_each_format_is_replayed(tmp_path, wire, is_streamed):
    body = wire.build_request("hello", ("lookup", {"order": 7}), "call_1", "shipped")
    answer = wire.build_events(("lookup", {"order": 8}), text="Let me see.")
    headers = wire.event_headers
    if not is_streamed:
        answer, headers = [json.dumps(wire.build_body(text="It has left.")).encode()], JSON

    def hold(episode):
        call = episode.call(wire, body, headers=headers, answer=answer)
        return call.answer, call.state, call.status

    assert is_replayed(tmp_path, hold)


def test_the_latency_of_the_live_call_is_kept(tmp_path):
    with Episode(tmp_path, "record") as episode:
        live = episode.ask("hi")
    with Episode(tmp_path, "replay") as episode:
        call = episode.ask("hi")
    latency_ms = (live.ended_s - live.started_s) * 1000
    assert call.recorded_latency_ms == latency_ms
    assert 0 < call.recorded_first_byte_ms < latency_ms


def test_a_key_of_unreadable_requests_is_their_hash(tmp_path):
    with Episode(tmp_path, "record") as episode:
        episode.call(CHAT, ["no object"], status=400, answer=b'{"error": {"message": "no"}}')
    with Episode(tmp_path, "replay") as episode:
        assert episode.call(CHAT, ["no object"]).status == 400
        assert episode.call(CHAT, ["another"]).state == "refused"


@each_row("status", [401, 408, 429, 500, 529])
def test_an_error_that_may_pass_is_not_recorded_but_its_next_attempt_is(tmp_path, status):
    with Episode(tmp_path, "record") as episode:
        episode.ask("first", "one")
        episode.ask("hi", status=status)
        episode.ask("other", "two")
        episode.ask("hi", "three")
    texts = [str(exchange.response) for exchange in read_takes(tmp_path)[1]]
    assert ["one" in texts[0], "three" in texts[1], "two" in texts[2]] == [True] * 3
    assert len(texts) == 3


def test_an_error_event_in_a_stream_is_not_recorded(tmp_path):
    event = b'event: error\ndata: {"type": "error", "error": {"message": "overloaded"}}\n\n'
    with Episode(tmp_path, "record") as episode:
        episode.call(WIRES["anthropic-messages"], ask_body("hi"), headers=EVENTS, answer=[event])
    assert list(tmp_path.iterdir()) == []


@each_row(
    ("error", "is_recorded"),
    [(READER_STOPPED, True), (None, True), ("the connection broke", False)],
)
def test_a_stream_that_ended_early_is_recorded_unless_the_connection_broke(
    tmp_path, error, is_recorded
):
    events = llm_wire.chat_events(text="hello")[:2]
    with Episode(tmp_path, "record") as episode:
        call = episode.call(CHAT, ask_body("hi"), headers=EVENTS, answer=events, error=error)
    assert call.state == "broken"
    assert bool([*tmp_path.iterdir()]) == is_recorded


def test_a_secret_in_the_pieces_of_a_binary_stream_fails_the_episode(tmp_path):
    wire = WIRES["bedrock-converse"]
    events = wire.build_events(text="it is a-long-secret-value")
    with Episode(tmp_path, "record") as episode:
        body = ask_body("hi")
        call = episode.call(wire, body, headers=wire.event_headers, answer=events)
    assert call.answer.text == "it is a-long-secret-value"
    assert (
        "call 1 cannot be recorded: its binary answer holds a secret" in episode.session.refusals[0]
    )
    assert list(tmp_path.iterdir()) == []


def continue_twice(episode):
    """Hold two conversations whose state the provider keeps, with the same words."""

    def ask(text, answer_id, previous=None):
        body = {"model": "gpt-5", "input": text}
        body |= {"previous_response_id": previous} if previous else {}
        answer = llm_wire.response_body(text=f"{answer_id}: {text}", name=answer_id)
        return episode.call(
            WIRES["openai-responses"], body, answer=json.dumps(answer).encode()
        ).answer

    episode.ask("noise", status=500)
    first, second = ask("hi", "resp_1"), ask("hi", "resp_2")
    return [ask("go on", f"{one.id}_next", one.id).text for one in (second, first, second)]


def test_conversations_that_the_provider_keeps_are_told_apart(tmp_path):
    with Episode(tmp_path, "record") as episode:
        live = continue_twice(episode)
    with Episode(tmp_path, "replay") as episode:
        episode.session.refusals = []
        assert continue_twice(episode) == live
    assert live == ["resp_2_next: go on", "resp_1_next: go on", "resp_2_next: go on"]
    assert [e.request.previous for e in read_takes(tmp_path)[1]] == [None, None, 2, 1, 2]


def test_the_content_of_files_is_not_kept_in_requests(tmp_path):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBO" * 300}}
    with Episode(tmp_path, "record") as episode:
        episode.call(CHAT, ask_body([image]), answer=chat("a cat"))
    (path,) = tmp_path.iterdir()
    assert "iVBO" not in path.read_text()
    assert "url: sha256:" in path.read_text()


def test_parallel_calls_keep_the_order_of_their_requests(tmp_path):
    with Episode(tmp_path, "record") as episode:
        bodies = [json.dumps(ask_body(text)).encode() for text in "abc"]
        calls = [episode.recorder.start_call(CHAT.format, CHAT.url, body) for body in bodies]
        for call in calls:
            call.decide()
        for call, text in zip(reversed(calls), "cba", strict=True):
            call.set_response(200, JSON)
            call.feed(chat(text))
            call.end()
    (path,) = tmp_path.iterdir()
    takes = parse_cassette(path.read_text(), "x").takes
    prompts = [e.request.body["messages"][0]["content"] for e in takes[1]]
    assert prompts == ["a", "b", "c"]
    assert render_cassette(Cassette("s", takes)) == path.read_text()
