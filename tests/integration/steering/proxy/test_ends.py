"""Ends, faults, limits and streams of the proxy."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading

import httpx2
import pytest

from ci_agent_eval.steering.proxy.server import silence_libraries
from tests import llm_wire as wire
from tests.integration.steering.proxy.asking import (
    ASK,
    BODY,
    FULL,
    PATHS,
    STREAM,
    breaking,
    every_api,
    exchanged,
    post,
)
from tests.integration.steering.proxy.rig import (
    EVENTS,
    JSON,
    MESSAGE,
    Rig,
    answer,
    answering,
    events,
)
from tests.tables import each_row

# Ends of connections, on either side and at any moment.


@each_row("path", [*PATHS.values(), "/v1/files"])
@each_row("begun", [False, True], ids=["before the answer", "in the stream"])
def test_a_client_that_hangs_up_ends_the_providers_work(path, begun):
    gone, asked_for = threading.Event(), threading.Event()

    async def work(_asked, exchange):
        if begun:
            await exchange.start()
            await exchange.part(b": begun\n\n")
        asked_for.set()
        await exchange.wait_until_disconnected()
        gone.set()

    with Rig(work) as rig:
        host, port = rig.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(
                f"POST {path} HTTP/1.1\r\nHost: p\r\nContent-Length: 2\r\n\r\n{{}}".encode()
            )
            assert asked_for.wait(600)
            if begun:
                assert client.recv(10)
        assert gone.wait(600)


@each_row("path", ["/v1/messages", "/v1/files"])
def test_a_client_that_hangs_up_in_its_request_gets_no_answer(path, caplog):
    caplog.clear()
    with Rig(answer({})) as rig:
        host, port = rig.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(
                f"POST {path} HTTP/1.1\r\nHost: p\r\nContent-Length: 9\r\n\r\n{{".encode()
            )
        assert httpx2.get(f"{rig.url}/v1/models", trust_env=False, timeout=120).json() == {}
    assert [asked.method for asked in rig.asked] == ["GET"]
    assert "unexpected" not in caplog.text


def read_into(got, url):
    with httpx2.stream("POST", url, json=ASK, trust_env=False) as response:
        for chunk in response.iter_raw():
            got += chunk


@every_api
@each_row("length", [None, 100_000])
def test_a_stream_that_breaks_off_has_no_end(api, length, caplog):
    caplog.clear()
    parts = STREAM[api](FULL, text="Now.")
    parts = parts[: len(parts) // 2 + 1]
    headers = [("content-type", EVENTS)]
    headers += [("content-length", str(length))] if length else []
    got = bytearray()
    with Rig(breaking(parts, headers)) as rig, pytest.raises(httpx2.RemoteProtocolError):
        read_into(got, rig.url + PATHS[api])
    assert b"".join(parts).startswith(bytes(got))
    assert got
    assert "Expected ASGI message" not in caplog.text
    assert MESSAGE.encode() not in got


@every_api
def test_a_second_stream_that_breaks_off_has_no_end(api):
    parts = STREAM[api](text="Let me see what there is.")
    parts = parts[: len(parts) // 2 + 1]
    broken = breaking(parts, [("content-type", EVENTS)])
    got = bytearray()
    with Rig(answering(events(STREAM[api](FULL)), broken)) as rig:
        with pytest.raises(httpx2.RemoteProtocolError):
            read_into(got, rig.url + PATHS[api])
        assert len(rig.asked) == 2
    assert b"Let me see" in got
    assert not any(end in got for end in (b"[DONE]", b"message_stop", b"response.completed"))


@every_api
def test_a_second_whole_answer_that_breaks_off_lets_the_call_through(api):
    broken = breaking([b'{"id": '], [("content-type", JSON)])
    with Rig(answering(answer(BODY[api](FULL)), broken)) as rig:
        assert post(rig, PATHS[api]).json() == BODY[api](FULL)


@every_api
def test_a_client_that_hangs_up_ends_the_second_request(api):
    gone, asked_for = threading.Event(), threading.Event()

    async def work(_asked, exchange):
        asked_for.set()
        await exchange.wait_until_disconnected()
        gone.set()

    body = json.dumps(ASK).encode()
    with Rig(answering(events(STREAM[api](FULL)), work)) as rig:
        host, port = rig.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            head = f"POST {PATHS[api]} HTTP/1.1\r\nHost: p\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            assert asked_for.wait(600)
        assert gone.wait(600)


def test_a_whole_answer_that_breaks_off_is_an_error():
    with Rig(breaking([b'{"id": '], [("content-type", JSON)])) as rig:
        got = post(rig)
    assert (got.status_code, got.json()["error"]["code"]) == (502, "upstream_unreachable")


def test_other_answers_that_break_off_have_no_end():
    headers = [("content-type", "application/octet-stream"), ("content-length", "9")]
    with Rig(breaking([b"1234"], headers)) as rig, pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(f"{rig.url}/v1/files/f/content", trust_env=False, timeout=120)


# Faults of ours, what is refused, and what stays secret.


class Faulty:
    def review(self, call, session, now):
        raise ZeroDivisionError


@every_api
def test_a_fault_in_steering_lets_the_call_through(api, caplog):
    caplog.clear()
    with Rig(answer(BODY[api](FULL)), reviewer=Faulty()) as rig:
        assert post(rig, PATHS[api]).json() == BODY[api](FULL)
    assert "a call goes through unreviewed: unexpected ZeroDivisionError" in caplog.text


def test_websockets_are_refused_with_a_sentence():
    request = (
        "GET /v1/realtime?model=m HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n"
    )
    with Rig(answer({})) as rig:
        got = exchanged(rig, request.encode().replace(b"Upgrade\r\n", b"Upgrade, close\r\n", 1))
    assert got.startswith(b"HTTP/1.1 426 ")
    assert b"This proxy carries no WebSockets." in got
    assert rig.asked == []


@pytest.fixture
def levels_restored():
    loggers = [logging.getLogger(name) for name in ("httpx2", "httpcore2", "uvicorn", "hpack")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@each_row("target", ["http://example.org/v1/models", "example.org:443"])
def test_it_is_no_forward_proxy(target):
    method = "GET" if "/" in target else "CONNECT"
    with Rig(answer({})) as rig:
        got = exchanged(
            rig, f"{method} {target} HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n".encode()
        )
    assert got.startswith(b"HTTP/1.1 400 ")
    assert b"forwards to no other" in got
    assert rig.asked == []


def test_a_fault_of_its_own_is_an_error_without_what_was_asked(caplog):
    class Unreadable(str):
        __slots__ = ()

        def lower(self):
            raise ZeroDivisionError("SECRET")

    with Rig(answer({}), session_header=Unreadable("x")) as rig:
        got = post(rig)
        assert httpx2.get(f"{rig.url}/v1/models", trust_env=False, timeout=120).json() == {}
    assert (got.status_code, got.json()["error"]["code"]) == (500, "proxy_error")
    assert "SECRET" not in caplog.text + got.text


def test_credentials_are_passed_on_and_never_logged(caplog, levels_restored):
    caplog.set_level(logging.DEBUG)
    headers = {"authorization": "Bearer SECRET-1", "x-api-key": "SECRET-2", "cookie": "c=SECRET-3"}
    cookie = [("set-cookie", "s=SECRET-4")]
    secret = wire.bash("TOKEN=SECRET-7 pytest")
    whole, stream = answer(wire.chat_body(secret), headers=cookie), events(STREAM["chat"](secret))
    broken = breaking([b"{"], [("content-type", JSON)])
    silence_libraries()
    ask = {**ASK, "messages": [{"role": "user", "content": "SECRET-6"}]}
    with Rig(answering(whole, stream, broken, answer({}))) as rig:
        for _ in range(3):
            post(rig, "/v1/chat/completions?key=SECRET-5", ask, headers=headers)
        httpx2.get(
            f"{rig.url}/v1/models?key=SECRET-5", headers=headers, trust_env=False, timeout=120
        )
    for asked in rig.asked:
        assert b"key=SECRET-5" in asked.target
        assert asked.values("authorization") == ["Bearer SECRET-1"]
    ours = [r for r in caplog.records if r.name.startswith("ci_agent_eval")]
    assert any("Steering full-suite pytest command" in r.getMessage() for r in ours)
    assert "SECRET" not in caplog.text


def test_cookies_of_one_client_are_not_anothers():
    with Rig(answer({}, headers=[("set-cookie", "s=1; Path=/")])) as rig:
        for _ in range(2):
            httpx2.get(f"{rig.url}/v1/models", trust_env=False, timeout=120)
    assert rig.asked[1].values("cookie") == []


# Nothing of a stream is held back, however many are open.


MANY = 120
"""More than the 100 connections that a client of httpx opens by itself."""


class InStep:
    """A provider whose next part waits until the client has the one before."""

    def __init__(self, parts):
        self._parts = parts
        self.received = {}

    async def __call__(self, asked, exchange):
        name = dict(asked.headers)[b"x-session-id"]
        steps = self.received.setdefault(name, asyncio.Semaphore(0))
        await exchange.start()
        for part in self._parts:
            await exchange.part(part)
            await steps.acquire()
        await exchange.end()


async def followed(client, rig, provider, *, api, name, parts):
    """Read a stream part by part, and tell the provider of each one."""
    got = b""
    async with client.stream(
        "POST", rig.url + PATHS[api], json=ASK, headers={"x-session-id": name}
    ) as response:
        expected = iter(parts)
        due = next(expected, b"")
        async for chunk in response.aiter_raw():
            got += chunk
            while due and got.endswith(due):
                rig.on_loop(provider.received[name.encode()].release)
                due = next(expected, b"")
    return got


@every_api
def test_each_event_reaches_the_client_before_the_next_is_sent(api):
    parts = STREAM[api](text="Let me see.")
    provider = InStep(parts)

    async def go():
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            return await followed(client, rig, provider, api=api, name="s", parts=parts)

    with Rig(provider) as rig:
        assert asyncio.run(go()) == b"".join(parts)


@pytest.mark.timeout(600)
def test_many_steered_streams_that_are_open_together():
    arrived, all_here = [], asyncio.Event()

    async def meet(asked, exchange):
        arrived.append(asked)
        if len(arrived) == MANY:
            all_here.set()
        await exchange.start()
        await all_here.wait()
        is_first = len(asked.json["messages"]) == 1
        for part in STREAM["messages"](FULL) if is_first else STREAM["messages"](text="Fine."):
            await exchange.part(part)
        await exchange.end()

    async def one(client, at):
        headers = {"x-session-id": str(at)}
        return (await client.post(rig.url + PATHS["messages"], json=ASK, headers=headers)).text

    async def go():
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(trust_env=False, timeout=None, limits=limits) as client:
            return await asyncio.gather(*(one(client, at) for at in range(MANY)))

    with Rig(meet) as rig:
        got = asyncio.run(go())
    assert all("Fi" in text and "tool_use" not in text for text in got)
    assert len(arrived) == 2 * MANY
