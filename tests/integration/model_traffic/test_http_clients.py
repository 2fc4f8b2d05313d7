"""Each HTTP client is seen once, gets the bytes that it gets without the hooks, and can be answered."""

from __future__ import annotations

import gzip
import json
import socket

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from ci_agent_eval.model_traffic import hooks
from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from tests.integration.model_traffic.clients import CLIENTS, AIOHTTPClient
from tests.integration.model_traffic.conftest import run_episode
from tests.model_server import ModelServer, Step

BODY = {"model": "m", "messages": [{"role": "user", "content": "héllo"}]}
STREAM = {**BODY, "stream": True}
ANSWER = '{"choices": [{"message": {"content": "hi"}}]}'
EVENTS = [f"data: {json.dumps({'choices': [], 'id': str(n)})}\n\n" for n in range(3)]
EVENTS.append("data: [DONE]\n\n")
EVENT_STREAM = "text/event-stream"
BREAKS = (
    httpx.TransportError,
    httpx2.TransportError,
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    aiohttp.ClientError,
)


VARIANTS = {"httpx", "httpx2-async", "urllib3"}
"""Clients whose hook another one shows as well: the full tests run them."""


@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.full if name in VARIANTS else ()) for name in CLIENTS
    ]
)
def client(request):
    """A client that was built before the hooks are installed."""
    client = CLIENTS[request.param]()
    yield client
    client.close()


def read_all(client, url: str, body=STREAM) -> bytes:
    chunks: list[bytes] = []
    client.stream(url, body, lambda chunk: chunks.append(chunk) is None)
    return b"".join(chunks)


def test_a_plain_answer(client, recorder):
    with ModelServer([Step(body=ANSWER, headers={"set-cookie": "secret=1"})]) as server:
        status, content = client.post(f"{server.chat_url}?key=secret", BODY)
        [call] = recorder.calls
        assert call.url == server.chat_url
    assert (status, json.loads(content)["choices"][0]["message"]["content"]) == (200, "hi")
    assert (call.state, call.status, call.error) == ("complete", 200, None)
    assert b"".join(call.chunks) == content
    assert json.loads(call.body) == BODY
    assert json.loads(call.body) == server.requests[0].body
    assert call.headers == {"content-type": "application/json"}
    assert call.started_s <= call.first_byte_s <= call.ended_s


def test_a_request_of_another_service_is_not_a_model_call(client, recorder):
    with ModelServer([Step(body=ANSWER), Step(body=ANSWER)]) as server:
        for path, body in [
            ("messages", {"to": "+41790000000", "content": "Your code is 1"}),
            ("responses", {"survey": 7, "answers": ["yes"]}),
        ]:
            assert client.post(f"{server.base_url}/{path}", body) == (200, ANSWER.encode())
    assert server.requests[0].body["to"] == "+41790000000"
    assert recorder.calls == ()


def test_a_stream_passes_without_delay(client, recorder):
    with ModelServer([Step(chunks=EVENTS, hang_after=1, content_type=EVENT_STREAM)]) as server:
        chunks: list[bytes] = []

        def go_on(chunk: bytes) -> bool:
            chunks.append(chunk)
            if b"".join(chunks) == EVENTS[0].encode():  # the server sends the others after this
                assert recorder.calls[0].state == "open"
                server.release()
            return True

        client.stream(server.chat_url, STREAM, go_on)
    [call] = recorder.calls
    assert b"".join(chunks) == b"".join(call.chunks) == "".join(EVENTS).encode()
    assert (call.state, call.error) == ("complete", None)


def test_an_answer_that_is_encoded_though_plain_was_asked_for_is_said(client, recorder):
    encoded = gzip.compress("".join(EVENTS).encode())
    pieces = [encoded[at : at + 7] for at in range(0, len(encoded), 7)]
    headers = {"content-encoding": "gzip"}
    with ModelServer([Step(chunks=pieces, headers=headers, content_type=EVENT_STREAM)]) as server:
        assert read_all(client, server.chat_url) == "".join(EVENTS).encode()
    [call] = recorder.calls
    if isinstance(client, AIOHTTPClient):  # it decodes below its readers
        assert b"".join(call.chunks) == "".join(EVENTS).encode()
    else:
        assert server.requests[0].headers["accept-encoding"] == "identity"
        assert "content encoding gzip, although none was asked for" in call.error


def test_a_reader_that_stops_leaves_a_broken_call(client, recorder):
    with ModelServer([Step(chunks=EVENTS, hang_after=1, content_type=EVENT_STREAM)]) as server:
        client.stream(server.chat_url, STREAM, lambda _: False)
    [call] = recorder.calls
    assert (call.state, call.error) == ("broken", "its reader stopped before the end")
    assert EVENTS[0].encode().startswith(b"".join(call.chunks))
    assert call.chunks


def test_a_stream_that_breaks_raises_as_without_hooks(client):
    broken = Step(chunks=EVENTS, drop_after=2, content_type=EVENT_STREAM)
    received: list[bytes] = []
    with ModelServer([broken]) as server:
        with pytest.raises(BREAKS) as bare:
            read_all(client, server.chat_url)
        with hooks.use(), run_episode() as recorder, pytest.raises(BREAKS) as hooked:
            client.stream(server.chat_url, STREAM, lambda chunk: received.append(chunk) is None)
    [call] = recorder.calls
    assert type(hooked.value) is type(bare.value)
    assert (call.state, call.is_abandoned) == ("broken", False)
    # When a connection breaks, aiohttp drops what it has not handed to its reader, and urllib3 what
    # its reader has not asked for.
    recorded, sent = b"".join(call.chunks), "".join(EVENTS[:2]).encode()
    assert sent.startswith(recorded)
    assert recorded.startswith(b"".join(received))
    assert recorded.startswith(EVENTS[0].encode())
    assert "ended early" not in call.error


def test_a_plain_answer_that_breaks_off_is_recorded_so_far(client, recorder):
    broken = Step(chunks=['{"choices', '": []}'], drop_after=1)
    with ModelServer([broken]) as server, pytest.raises(BREAKS):
        client.post(server.chat_url, BODY)
    [call] = recorder.calls
    assert call.state in ("broken", "failed")
    assert call.error


def test_a_server_that_is_not_there(client, recorder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1/chat/completions"
        with pytest.raises(BREAKS):
            client.post(url, BODY)
    [call] = recorder.calls
    assert (call.state, call.status) == ("failed", None)
    assert call.error


@pytest.mark.parametrize("raw", [{"body": "no model here"}, {"chunks": ["no model ", "here"]}])
def test_an_answer_that_is_no_json_is_recorded(raw, client, recorder):
    with ModelServer([Step(**raw, content_type="text/plain")]) as server:
        assert read_all(client, server.chat_url) == b"no model here"
    [call] = recorder.calls
    assert (call.state, call.error) == ("broken", "the answer broke off")  # read to its end
    assert b"".join(call.chunks) == b"no model here"
    assert "no model here" in call.answer.error


def test_a_refusal_is_the_providers_error_and_sends_nothing(client):
    with (
        ModelServer(["hi"]) as server,
        hooks.use(),
        run_episode(check_limits=lambda _: "over budget: 3 turns") as recorder,
    ):
        for _ in range(2):
            status, content = client.post(server.chat_url, BODY)
            assert status == 400
            assert json.loads(content)["error"]["message"] == "over budget: 3 turns"
        assert b"over budget" in read_all(client, server.chat_url)
    assert not server.requests
    assert [call.state for call in recorder.calls] == ["refused"] * 3
    assert recorder.refusal == "over budget: 3 turns"


class Player:
    """Answers every call in the same way."""

    def __init__(self, answer: HTTPAnswer):
        self.answer = answer
        self.stored = []

    def find_answer(self, call):
        return self.answer

    def store(self, call):
        self.stored.append(call)


def test_a_replayed_answer_is_what_the_server_gave(client):
    with ModelServer(["hi"]) as server:
        bare = client.post(server.chat_url, BODY)
        content_type = {"content-type": "application/json"}
        player = Player(HTTPAnswer(200, content_type, (bare[1],)))
        with hooks.use(), run_episode(player=player) as recorder:
            assert client.post(server.chat_url, BODY) == bare
            assert client.post(server.chat_url, BODY) == bare
    assert len(server.requests) == 1
    assert [call.state for call in recorder.calls] == ["complete", "complete"]
    assert [call.source for call in recorder.calls] == ["replayed", "replayed"]
    assert recorder.calls[0].chunks == [bare[1]]
    assert player.stored == []


def test_a_redirect_is_a_request_of_its_own():
    with ModelServer(["hi"]) as server, hooks.use(), run_episode() as recorder:
        moved = Step(status=307, headers={"location": server.chat_url})
        with ModelServer([moved]) as first:
            answer = httpx.post(first.chat_url, json=BODY, follow_redirects=True)
            assert urllib3.PoolManager().request("POST", first.chat_url, json=BODY).status == 200
    assert answer.status_code == 200
    assert [call.status for call in recorder.calls] == [307, 200, 307, 200]
    assert [call.state for call in recorder.calls] == ["complete"] * 4
