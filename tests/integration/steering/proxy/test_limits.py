"""Requests and answers above a limit."""

from __future__ import annotations

import gzip
import json
import socket

import httpx2

from tests import llm_wire as wire
from tests.integration.steering.proxy.asking import BODY, FULL, PATHS, STREAM, every_api, post
from tests.integration.steering.proxy.rig import Rig, answer, events
from tests.tables import each_row


@every_api
@each_row("announced", [True, False])
def test_a_request_above_the_limit_is_refused(api, announced):
    body = b"x" * 2001
    content = body if announced else iter([body])
    headers = {"anthropic-version": "2023-06-01"} if api == "messages" else {}
    with Rig(answer({}), max_request_bytes=2000) as rig:
        got = httpx2.post(
            rig.url + PATHS[api], content=content, headers=headers, trust_env=False, timeout=120
        )
        assert (
            httpx2.post(
                f"{rig.url}/v1/files", content=body, trust_env=False, timeout=120
            ).status_code
            == 200
        )
    assert got.status_code == 413
    told = got.json()["error"]
    assert "--max-request-bytes" in told["message"]
    assert told["type"] == ("request_too_large" if api == "messages" else "invalid_request_error")
    assert len(rig.asked) == 1


def test_a_request_that_announces_too_much_is_refused_before_it_is_sent():
    head = f"POST {PATHS['chat']} HTTP/1.1\r\nHost: p\r\nContent-Length: 2001\r\n\r\n"
    with Rig(answer({}), max_request_bytes=2000) as rig:
        host, port = rig.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=120) as client:
            client.sendall(head.encode())
            assert client.recv(13) == b"HTTP/1.1 413 "


def test_a_client_may_send_all_of_a_request_that_is_refused():
    """Its sentence would be lost if the connection ended while the client still writes."""
    with (
        Rig(answer({}), max_request_bytes=2000) as rig,
        httpx2.Client(trust_env=False, timeout=120) as client,
    ):
        for _ in range(2):
            got = client.post(rig.url + PATHS["chat"], content=b"x" * 30_000_000)
            assert got.json()["error"]["code"] == "request_too_large"
        assert client.get(f"{rig.url}/v1/models").json() == {}


@every_api
@each_row("coding", ["identity", "gzip"])
def test_an_answer_above_the_limit_passes_without_review(api, coding, caplog):
    caplog.clear()
    body = json.dumps(BODY[api](FULL, text="x" * 5000)).encode()
    packed = gzip.compress(body) if coding == "gzip" else body
    headers = [("content-encoding", coding)]
    with Rig(answer(packed, headers=headers), max_response_bytes=2000) as rig:
        assert post(rig, PATHS[api]).content == body
    assert "passed without review: it is larger than 2000 bytes" in caplog.text


@every_api
def test_a_stream_above_the_limit_passes_without_review(api, caplog):
    caplog.clear()
    parts = STREAM[api](wire.bash("pytest #" + "x" * 5000))
    with Rig(events(parts), max_response_bytes=2000) as rig:
        assert post(rig, PATHS[api]).content == b"".join(parts)
    assert "passed without review: it is larger than 2000 bytes" in caplog.text
