"""Requests on the wire: addresses, requests that are no model calls, slow and broken streams."""

from __future__ import annotations

import gzip
import json
import logging
from contextlib import suppress

import httpx2
import pytest

from ci_agent_eval.model_traffic.gateway import app
from ci_agent_eval.model_traffic.gateway.server import serve_episode
from ci_agent_eval.model_traffic.recorder import READER_STOPPED
from tests.integration.model_traffic.gateway.rig import (
    STEPS,
    Tape,
    ask_through,
    new_recorder,
    provider_environ,
    started,
)
from tests.model_server import ModelServer
from tests.tables import each_row

CHAT = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "How much?"}]}


@pytest.fixture
def server():
    with ModelServer(STEPS) as server:
        yield server


def test_an_unknown_address_is_refused_with_a_sentence(server):
    with serve_episode(new_recorder(), provider_environ(server)) as address:
        url = address.url
        for wrong in (f"{url}x/openai/v1/chat/completions", f"{url}/other/v1", f"{url}/../"):
            refused = httpx2.post(wrong, json=CHAT)
            assert refused.status_code == 404
            assert "belongs to no running episode" in refused.json()["error"]["message"]


def test_other_requests_pass_unrecorded(server):
    recorder = new_recorder()
    with serve_episode(recorder, provider_environ(server)) as address:
        passed = httpx2.get(f"{address.url}/openai/v1/models?limit=1")
        survey = httpx2.post(f"{address.url}/openai/v1/responses", json={"model": "s7"})
    assert (passed.status_code, passed.text) == (405, "Method Not Allowed")
    assert survey.status_code == 200
    assert not recorder.calls


def test_in_replay_other_requests_are_refused(server):
    with serve_episode(
        new_recorder(player=Tape(is_replay=True)), provider_environ(server)
    ) as address:
        refused = httpx2.get(f"{address.url}/openai/v1/models")
    assert refused.status_code == 400
    assert "In replay the gateway answers only model calls" in refused.json()["message"]


def test_websockets_are_refused_with_a_sentence(server):
    with serve_episode(new_recorder(), provider_environ(server)) as address:
        refused = httpx2.get(
            f"{address.url}/openai/v1/realtime",
            headers={"connection": "upgrade", "upgrade": "websocket"},
        )
    assert refused.status_code == 426
    assert "carries no WebSockets" in refused.json()["message"]


def test_a_delayed_call_waits_and_passes(server):
    waits = [0.001, 0.001]
    recorder = new_recorder(get_wait_s=lambda _: waits.pop() if waits else 0.0)
    with serve_episode(recorder, provider_environ(server)) as address:
        answered = httpx2.post(f"{address.url}/openai/v1/chat/completions", json=CHAT)
    assert answered.json()["choices"][0]["message"]["content"] == "Let me look."
    assert not waits


def test_a_compressed_request_is_recorded_as_text(server):
    recorder = new_recorder(check_limits=lambda _: "enough")
    with serve_episode(recorder, provider_environ(server)) as address:
        httpx2.post(
            f"{address.url}/openai/v1/chat/completions",
            content=gzip.compress(json.dumps(CHAT).encode()),
            headers={"content-encoding": "gzip"},
        )
    assert recorder.calls[0].request.model == "gpt-5-mini"


def test_a_request_over_the_size_limit_is_refused(server, monkeypatch):
    monkeypatch.setattr(app, "MAX_REQUEST_BYTES", 10)
    recorder = new_recorder()
    with serve_episode(recorder, provider_environ(server)) as address:
        refused = httpx2.post(f"{address.url}/openai/v1/chat/completions", json=CHAT)
    assert refused.status_code == 413
    assert not recorder.calls


def test_a_provider_that_is_away_is_a_failed_call():
    recorder = new_recorder()
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    with serve_episode(recorder, environ) as address:
        answered = httpx2.post(f"{address.url}/openai/v1/chat/completions", json=CHAT)
    assert answered.status_code == 502
    assert "the provider gave no complete answer" in answered.json()["message"]
    assert (recorder.calls[0].state, recorder.calls[0].status) == ("failed", None)
    assert "ConnectError" in recorder.calls[0].error


def test_a_base_url_that_is_no_address_is_said():
    with serve_episode(new_recorder(), {"OPENAI_BASE_URL": "localhost"}) as address:
        refused = httpx2.post(f"{address.url}/openai/v1/chat/completions", json=CHAT)
    assert refused.status_code == 400
    assert "OPENAI_BASE_URL has to begin with http://" in refused.json()["message"]


def test_a_provider_that_does_not_know_stream_options_is_asked_without_them():
    refusal = {"status": 400, "code": "unknown field: stream_options"}
    with ModelServer([refusal, *STEPS]) as server:
        recorder = new_recorder()
        with serve_episode(recorder, provider_environ(server)) as address:
            chunks = ask_through(address, "openai-chat+stream")["openai-chat+stream"]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert [("stream_options" in asked.body) for asked in server.requests] == [True, False]
    (call,) = recorder.calls
    assert (call.state, call.status, call.answer.tokens) == ("complete", 200, None)


def test_another_error_of_the_provider_is_passed_on_once():
    with ModelServer([{"status": 400, "code": "context_length_exceeded"}]) as server:
        recorder = new_recorder()
        with serve_episode(recorder, provider_environ(server)) as address:
            url = f"{address.url}/openai/v1/chat/completions"
            answered = httpx2.post(url, json={**CHAT, "stream": True})
    assert (answered.status_code, answered.json()["error"]["message"]) == (400, "scripted 400")
    assert len(server.requests) == 1
    assert recorder.calls[0].status == 400


STREAMS = [
    ("openai/v1/chat/completions", CHAT),
    ("openai/v1/responses", {"model": "gpt-5-mini", "input": "How much?"}),
    ("anthropic/v1/messages", CHAT),
]


@each_row(("path", "body"), STREAMS)
def test_a_stream_passes_event_by_event_and_may_break_off(path, body):
    with ModelServer([{"text": "Let me look.", "break_after": 2}]) as server:
        recorder = new_recorder()
        with (
            serve_episode(recorder, provider_environ(server)) as address,
            httpx2.stream("POST", f"{address.url}/{path}", json={**body, "stream": True}) as answer,
        ):
            # The provider sends its first events and hangs: the client has them nevertheless.
            events = answer.iter_raw()
            assert b"data: " in next(events)
            assert recorder.calls[0].state == "open"
            server.release()
            with suppress(httpx2.TransportError):
                list(events)
        (call,) = recorder.calls
        assert call.state == "broken"
        assert "Let me".startswith(call.answer.text)


@each_row("end", ["killed", "episode over"])
def test_a_call_that_is_left_is_a_broken_record(end):
    with ModelServer([{"text": "Let me look.", "break_after": 2}]) as server:
        recorder = new_recorder()
        with (
            serve_episode(recorder, provider_environ(server)) as address,
            started(address, "openai-chat+stream") as process,
        ):
            for _ in range(2):
                process.stdout.readline()
            if end == "killed":
                process.kill()
                process.wait()
        (call,) = recorder.calls
        assert (call.state, call.answer.text) == ("broken", "Let me")
        assert call.error == READER_STOPPED


def test_the_gateway_logs_nothing(server, caplog):
    caplog.set_level(logging.DEBUG)
    with serve_episode(new_recorder(), provider_environ(server)) as address:
        httpx2.post(f"{address.url}/openai/v1/chat/completions", json=CHAT)
    lines = [record for record in caplog.records if record.threadName == "model-gateway"]
    assert not lines
