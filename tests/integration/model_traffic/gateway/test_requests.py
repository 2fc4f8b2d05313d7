"""Requests to the gateway: providers, episodes, clients."""

from __future__ import annotations

import gzip
import json
import logging
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import httpx2
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from botocore.session import Session

from ci_agent_eval.model_traffic.gateway import app
from ci_agent_eval.model_traffic.gateway.aws_signing import sign_request
from ci_agent_eval.model_traffic.gateway.server import serve_episode
from ci_agent_eval.model_traffic.recorder import READER_STOPPED
from tests.integration.model_traffic.gateway.rig import (
    ALL,
    APIS,
    STEPS,
    Tape,
    ask,
    ask_through,
    child_environ,
    new_recorder,
    provider_environ,
    started,
)
from tests.model_server import ModelServer, Step
from tests.processes import SECONDS
from tests.tables import each_row

# Requests on the wire: addresses, requests that are no model calls, slow and broken streams.


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


# Requests to Bedrock, whose signature covers the host.


KEYS = {"AWS_ACCESS_KEY_ID": "AKIA-agent", "AWS_SECRET_ACCESS_KEY": "secret-of-agent"}
MESSAGES = [{"role": "user", "content": [{"text": "How much?"}]}]


def create_client(address):
    session = Session()
    session.set_credentials("AKIA-other", "other-secret")
    return session.create_client(
        "bedrock-runtime",
        region_name="eu-west-1",
        endpoint_url=f"{address.url}/bedrock",
        config=Config(retries={"total_max_attempts": 1}),
    )


def test_a_call_is_signed_for_its_upstream_with_the_agents_keys(server):
    recorder = new_recorder()
    environ = {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.root_url, **KEYS}
    with serve_episode(recorder, environ) as address:
        client = create_client(address)
        answer = client.converse(modelId="m:0", messages=MESSAGES)
        streamed = client.converse_stream(modelId="m:0", messages=MESSAGES)
        events = [next(iter(event)) for event in streamed["stream"]]
        client.close()
    assert answer["output"]["message"]["content"][0]["text"] == "Let me look."
    assert events[-1] == "metadata"
    assert [call.state for call in recorder.calls] == ["complete", "complete"]
    assert recorder.calls[0].url == f"{server.root_url}/model/m%3A0/converse"
    for asked in server.requests:
        authorization = asked.headers["authorization"]
        assert re.search(r"Credential=AKIA-agent/\d+/eu-west-1/bedrock/aws4", authorization)


def test_the_signature_is_that_of_the_upstreams_host():
    url, body = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m%3A0/converse", b"{}"
    client = AWSRequest("POST", "http://127.0.0.1:4000/e/t/bedrock/model/m%3A0/converse", {}, body)
    SigV4Auth(Credentials("AKIA-other", "other-secret"), "bedrock", "eu-west-1").add_auth(client)
    given = [(name.lower().encode(), value.encode()) for name, value in client.headers.items()]
    given += [(b"content-type", b"application/json"), (b"accept-encoding", b"identity")]

    signed = dict(sign_request("POST", url, given, body, KEYS))

    expected = AWSRequest("POST", url, {"content-type": "application/json"}, body)
    expected.context["timestamp"] = signed[b"x-amz-date"].decode()
    expected.headers["X-Amz-Date"] = signed[b"x-amz-date"].decode()
    auth = SigV4Auth(Credentials(*KEYS.values()), "bedrock", "eu-west-1")
    text = auth.string_to_sign(expected, auth.canonical_request(expected))
    assert signed[b"authorization"].decode().endswith(auth.signature(text, expected))
    assert signed[b"accept-encoding"] == b"identity"


def test_a_request_with_a_bearer_token_keeps_it():
    given = [(b"authorization", b"Bearer token")]
    assert sign_request("POST", "https://host/", given, b"", {}) == given


def test_without_botocore_the_agent_gets_a_sentence(server, monkeypatch):
    recorder = new_recorder()
    environ = {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.root_url, **KEYS}
    with serve_episode(recorder, environ) as address:
        client = create_client(address)
        monkeypatch.setitem(sys.modules, "botocore.session", None)
        with pytest.raises(ClientError, match="pip install botocore"):
            client.converse(modelId="m", messages=MESSAGES)
        client.close()
    assert recorder.calls[0].state == "failed"
    assert "pip install botocore" in recorder.calls[0].error


# Real SDKs in child processes: recorded, replayed, refused.


def test_calls_are_recorded_and_replayed_as_the_client_gets_them_directly(server):
    environ = provider_environ(server)
    tape = Tape()
    recorder, replaying = new_recorder(player=tape), new_recorder(player=tape)
    direct = ask(environ, *ALL)
    with serve_episode(recorder, environ) as address:
        recorded = ask_through(address, *ALL)
    tape.is_replay = True
    with serve_episode(replaying, {}) as address:
        replayed = ask_through(address, *ALL)
    assert direct == recorded == replayed
    assert len(server.requests) == 2 * len(ALL)
    for name, asked in zip(2 * ALL, server.requests, strict=True):
        key = "sk-secret-of-anthropic" if "anthropic" in name else "sk-secret-of-openai"
        given = asked.headers.get("x-api-key") or asked.headers["authorization"]
        assert given.removeprefix("Bearer ") == key
    for recording, source in ((recorder, "live"), (replaying, "replayed")):
        assert [call.format.name for call in recording.calls] == [*APIS, *APIS]
        for call in recording.calls:
            assert "sk-secret" not in f"{vars(call)}"
            assert (call.state, call.status, call.source) == ("complete", 200, source)
            assert call.answer.text == "Let me look."
            assert [(tool.name, tool.arguments) for tool in call.answer.tool_calls] == [
                ("get_balance", {"account": "a"})
            ]
            assert (call.answer.tokens.input, call.answer.tokens.output) == (100, 20)
    assert recorder.calls[0].url == f"{server.base_url}/chat/completions"


def test_a_refused_call_reaches_no_provider_and_is_not_retried(server):
    recorder = new_recorder(check_limits=lambda _: "the budget of 3 calls is used up")
    with serve_episode(recorder, provider_environ(server)) as address:
        got = ask_through(address, *ALL)
    for name in ALL:
        (error,) = got[name]
        assert error["error"] == "BadRequestError"
        assert "the budget of 3 calls is used up" in error["text"]
    assert [call.state for call in recorder.calls] == ["refused"] * len(ALL)
    assert not server.requests


def test_in_replay_a_subprocess_gets_no_key_and_no_address(server):
    environ = provider_environ(server)
    with serve_episode(new_recorder(player=Tape(is_replay=True)), environ) as address:
        child = {**address.environ, **address.build_environment()}
    assert "sk-secret" not in f"{child}"
    assert server.base_url not in f"{child}"


# Episodes beside one another, and what is left when they are over.


EPISODES = 20
CALLS = 3
CHILD = """
import json, os, sys, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
for _ in range(int(sys.argv[2])):
    messages = [{"role": "user", "content": sys.argv[1]}]
    body = json.dumps({"model": "gpt-5-mini", "messages": messages}).encode()
    asked = urllib.request.Request(url, body, {"content-type": "application/json"})
    print(json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"])
"""


def test_twenty_episodes_at_once_keep_their_calls_apart():
    everyone = threading.Barrier(EPISODES)

    def run(number: int) -> None:
        recorder, prompt = new_recorder(), f"prompt-{number:02}."
        with serve_episode(recorder, provider_environ(server)) as address:
            everyone.wait()
            done = subprocess.run(
                [sys.executable, "-c", CHILD, prompt, str(CALLS)],
                env=child_environ(address.build_environment()),
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        assert done.stdout.splitlines() == [f"I heard {prompt}"] * CALLS
        assert [call.request.messages[-1].text for call in recorder.calls] == [prompt] * CALLS
        assert [call.answer.text for call in recorder.calls] == [f"I heard {prompt}"] * CALLS

    with ModelServer(["I heard {prompt}"]) as server, ThreadPoolExecutor(EPISODES) as pool:
        list(pool.map(run, range(EPISODES)))
        assert len(server.requests) == EPISODES * CALLS


def test_requests_that_are_open_at_the_end_of_their_episode_end_with_it():
    recorder = new_recorder()
    with (
        ModelServer([Step(hang=True)]) as server,
        serve_episode(new_recorder(), {}),  # the gateway goes on
        ExitStack() as clients,
    ):
        with serve_episode(recorder, provider_environ(server)) as address:
            clients.enter_context(started(address, "openai-chat"))
            server.wait_for_requests(1, timeout_s=SECONDS)
            assert [call.state for call in recorder.calls] == ["open"]
        assert [call.state for call in recorder.calls] == ["failed"]


PROGRAM = """
import socket, sys, threading, time, httpx2
from ci_agent_eval.model_traffic.gateway.server import serve_episode
from ci_agent_eval.model_traffic.recorder import TrafficRecorder

body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
for _ in range(3):
    recorder = TrafficRecorder(time.monotonic)
    with serve_episode(recorder, {"OPENAI_BASE_URL": sys.argv[1]}) as address:
        url = address.url + "/openai/v1/chat/completions"
        assert httpx2.post(url, json=body).status_code == 200
        host = address.url.split("/")[2].split(":")
        left = socket.create_connection((host[0], int(host[1])))
        left.sendall(b"POST /e/ HTTP/1.1\\r\\n")
    left.close()
    assert [call.state for call in recorder.calls] == ["complete"]
print([thread.name for thread in threading.enumerate()])
"""


def test_nothing_warns_and_a_half_sent_request_holds_nothing_up():
    with ModelServer(["Hello."]) as server:
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, server.base_url],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.replace("'", '"')) == ["MainThread"]
