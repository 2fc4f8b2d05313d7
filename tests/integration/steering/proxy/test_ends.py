"""Ends of connections, on either side and at any moment."""

from __future__ import annotations

import json
import socket
import threading

import httpx2
import pytest

from tests.integration.steering.proxy.asking import (
    ASK,
    BODY,
    FULL,
    PATHS,
    STREAM,
    breaking,
    every_api,
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
