"""Faults of ours, what is refused, and what stays secret."""

from __future__ import annotations

import logging

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
from tests.integration.steering.proxy.rig import JSON, Rig, answer, answering, events
from tests.tables import each_row


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
