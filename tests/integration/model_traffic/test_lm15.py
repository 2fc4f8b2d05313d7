"""lm15, the client inside DSPy, played by transports of the same form on `http.client`."""

from __future__ import annotations

import asyncio
import http.client
import json
from contextlib import closing
from types import ModuleType, SimpleNamespace
from urllib.parse import urlsplit

import pytest

from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from ci_agent_eval.model_traffic.hooks import lm15_transports
from tests.integration.model_traffic.conftest import run_episode
from tests.model_server import ModelServer

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()


class Response:
    """lm15's `TransportResponse`, as far as its clients use it."""

    def __init__(self, *, status, reason, headers, http_version, chunks, release):
        self.status, self.headers = status, headers
        self._chunks, self._release = chunks, release

    def __iter__(self):
        yield from self._chunks


class AsyncResponse(Response):
    async def __aiter__(self):
        async for chunk in self._chunks:
            yield chunk


def respond(kind, request, read):
    """Send a request; return its response, which is read in pieces."""
    address = urlsplit(request.url)
    with closing(http.client.HTTPConnection(address.netloc)) as connection:
        headers = {"content-type": "application/json"}
        connection.request(request.method, address.path, request.body, headers)
        answer = connection.getresponse()
        content = answer.read()
    pieces = [content[place : place + 10] for place in range(0, len(content), 10)]
    fields = {"reason": "", "http_version": "1.1", "release": print, "chunks": read(pieces)}
    return kind(status=answer.status, headers=answer.getheaders(), **fields)


async def read_async(pieces):
    for piece in pieces:
        yield piece


class Transport:
    def stream(self, request):
        return respond(Response, request, iter)


class AsyncTransport:
    async def _do_stream(self, request):
        return respond(AsyncResponse, request, read_async)


def ask(url, *, is_read_to_end=True) -> tuple[int, bytes]:
    response = Transport().stream(SimpleNamespace(method="POST", url=url, body=BODY))
    if not is_read_to_end:
        return response.status, next(iter(response))
    return response.status, b"".join(response)


def ask_async(url) -> tuple[int, bytes]:
    async def main():
        request = SimpleNamespace(method="POST", url=url, body=BODY)
        response = await AsyncTransport()._do_stream(request)
        return response.status, b"".join([chunk async for chunk in response])

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def hooked():
    library = ModuleType("lm15")
    library.TransportResponse, library.AsyncTransportResponse = Response, AsyncResponse
    library.StdlibTransport, library.StdlibAsyncTransport = Transport, AsyncTransport
    restore = [patch.apply() for patch in lm15_transports.list_patches(library)]
    yield
    for each in restore:
        each()


@pytest.mark.parametrize("client", [ask, ask_async])
def test_an_answer_is_recorded_and_passed_on(client):
    with ModelServer(["hi"]) as server, run_episode() as recorder:
        status, content = client(server.chat_url)
        client(f"{server.root_url}/health")  # no model call
    [call] = recorder.calls
    assert (call.state, call.answer.text, call.status) == ("complete", "hi", status)
    assert b"".join(call.chunks) == content


@pytest.mark.parametrize("client", [ask, ask_async])
def test_a_request_is_answered_instead_of_the_provider(client):
    class Player:
        is_replay = True

        def find_answer(self, call):
            return HTTPAnswer(200, {"content-type": "application/json"}, (b'{"choices": ', b"[]}"))

        def store(self, call):
            raise AssertionError("it is recorded already")

    with ModelServer([]) as server:
        with run_episode(player=Player()) as recorder:
            assert client(server.chat_url) == (200, b'{"choices": []}')
        with run_episode(refusal="over budget") as refusing:
            assert b"over budget" in client(server.chat_url)[1]
        assert server.requests == []
    assert [call.source for call in recorder.calls] == ["replayed"]
    assert [call.state for call in refusing.calls] == ["refused"]


def test_an_answer_that_is_not_read_to_its_end_is_incomplete():
    with ModelServer(["hi"]) as server, run_episode() as recorder:
        ask(server.chat_url, is_read_to_end=False)
    assert recorder.calls[0].state == "broken"
