"""What crosses the proxy, seen at both ends: bytes, headers, moments, and ends of connections."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import resource
import socket
import threading
import zlib

import anyio
import httpx2
import pytest

from ci_agent_eval.steer.proxy.answering import Limits
from ci_agent_eval.steer.proxy.serve import hush_libraries
from ci_agent_eval.steering.model import Allow
from tests import llm_wire as wire
from tests.integration.steer.proxy.rig import EVENTS, JSON, MESSAGE, Rig, answer, answering, events

FULL, LS = wire.bash("pytest"), wire.bash("ls")
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
BODY = {"chat": wire.chat_body, "responses": wire.response_body, "messages": wire.message_body}
STREAM = {
    "chat": wire.chat_events,
    "responses": wire.response_events,
    "messages": wire.message_events,
}
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

every_api = pytest.mark.parametrize("api", ["chat", "responses", "messages"])


def post(rig, path=PATHS["chat"], body=ASK, **more):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(rig.url + path, content=content, timeout=20, trust_env=False, **more)


def raw(response):
    """Return the bytes of a body as they came, without the content coding undone."""
    return b"".join(response.iter_raw())


def exchanged(rig, request):
    """Send bytes, and return all bytes that come back until the connection ends."""
    host, port = rig.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request)
        parts = iter(lambda: connection.recv(65536), b"")
        return b"".join(parts)


# What passes


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"])
def test_any_method_path_and_body_pass(method):
    body = bytes(range(256)) * 40
    target = "/v1//files/%7Ea%2fb%20c;d=1/../x?q=%ff&empty=&a=1&a=2&key=%2B"
    with Rig(answer(body, status=418, kind="application/octet-stream"), prefix="/base") as rig:
        host = rig.url.removeprefix("http://")
        got = exchanged(
            rig,
            f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n".encode()
            + b"Content-Length: %d\r\n\r\n" % len(body)
            + body,
        )
    asked = rig.asked[0]
    assert (asked.method, asked.target, asked.body) == (method, b"/base" + target.encode(), body)
    assert got.startswith(b"HTTP/1.1 418 ")
    assert body in got or b"transfer-encoding: chunked" in got.lower()


def test_a_compressed_answer_passes_as_it_is():
    packed = gzip.compress(b"x" * 100_000)
    headers = [("content-encoding", "gzip"), ("content-length", str(len(packed))), ("etag", '"1"')]
    with (
        Rig(answer(packed, kind="text/plain", headers=headers)) as rig,
        httpx2.stream("GET", f"{rig.url}/v1/files/f/content", trust_env=False) as got,
    ):
        assert raw(got) == packed
        assert [got.headers[name] for name, _ in headers] == [value for _, value in headers]
    assert rig.asked[0].values("accept-encoding") == ["gzip, deflate, zstd"]


def test_headers_pass_but_those_of_one_connection():
    theirs = [("set-cookie", "a=1"), ("set-cookie", "b=2"), ("x-request-id", "r"), ("server", "up")]
    local = [("connection", "x-hop"), ("x-hop", "1"), ("keep-alive", "timeout=5")]
    sent = [
        ("Authorization", "Bearer k"),
        ("x-api-key", "k"),
        ("Cookie", "c=1"),
        ("X-Two", "1"),
        ("X-Two", "2"),
        ("User-Agent", "me/1"),
        ("Accept", "x/y"),
        ("Connection", "x-mine"),
        ("X-Mine", "1"),
        ("TE", "trailers"),
        ("Proxy-Authorization", "Basic cA=="),
    ]
    with Rig(answer({}, headers=[*theirs, *local])) as rig:
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent)
        got = exchanged(
            rig, f"GET /v1/models HTTP/1.1\r\nHost: p\r\n{lines}Connection: close\r\n\r\n".encode()
        )
    asked = rig.asked[0]
    assert asked.values("host") == [rig.upstream.origin.removeprefix("http://")]
    for name in ("Authorization", "x-api-key", "Cookie", "User-Agent", "Accept"):
        assert asked.values(name.lower()) == [dict(sent)[name]]
    assert asked.values("x-two") == ["1", "2"]
    for name in ("x-mine", "te", "proxy-authorization", "accept-encoding"):
        assert asked.values(name) == []
    head = got.partition(b"\r\n\r\n")[0].lower()
    for name, value in theirs:
        assert f"{name}: {value}".encode() in head
    assert b"x-hop" not in head
    assert b"uvicorn" not in head
    assert b"\r\ndate:" not in head
    assert b"keep-alive" not in head


def test_an_upload_is_streamed():
    def parts():
        yield b"first"
        assert rig.arrived.acquire(timeout=20)
        yield b"second"

    with Rig(answer({})) as rig:
        httpx2.post(f"{rig.url}/v1/files", content=parts(), trust_env=False)
    assert rig.asked[0].body == b"firstsecond"
    assert rig.asked[0].values("transfer-encoding") == ["chunked"]


@pytest.mark.parametrize("status", [204, 304])
def test_answers_without_a_body_pass(status):
    with Rig(answer(b"", status=status)) as rig:
        got = httpx2.get(f"{rig.url}/v1/x", trust_env=False)
        assert (got.status_code, got.content) == (status, b"")
        assert httpx2.head(f"{rig.url}/v1/x", trust_env=False).status_code == status


@every_api
def test_a_stream_without_a_steered_call_passes_byte_for_byte(api):
    odd = [
        b": keep-alive\r\n\r\n",
        b'event: new\nid: 7\nretry: 10\ndata: {"type":"new"}\n\n',
        b"data: not json\n\n",
        b"\n\n",
    ]
    parts = [*odd, *STREAM[api](LS, text="Grüße"), *odd, b"data: cut"]
    with Rig(events(parts)) as rig:
        got = post(rig, PATHS[api])
    assert got.content == b"".join(parts)
    assert got.headers["content-type"] == EVENTS


@every_api
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no json",
        b"[]",
        b"{}",
        b'{"choices": 1, "output": {}, "content": null}',
        b"\xff\xfe",
        b'{"a": 1} trailing',
        b'{"b" : [ 1.0, 1e5 ] }\n',
    ],
)
def test_answers_of_another_shape_pass_byte_for_byte(api, body):
    with Rig(answer(body, headers=[("content-length", str(len(body))), ("etag", "e")])) as rig:
        got = post(rig, PATHS[api])
    assert got.content == body
    assert got.headers["etag"] == "e"


@every_api
def test_an_answer_without_a_steered_call_passes_byte_for_byte(api):
    body = json.dumps(BODY[api](LS, text="é"), indent=3).encode() + b"\n\n"
    with Rig(answer(body)) as rig:
        assert post(rig, PATHS[api]).content == body


@every_api
def test_errors_are_not_reviewed(api):
    with Rig(answer(BODY[api](FULL), status=400)) as rig:
        assert post(rig, PATHS[api]).json() == BODY[api](FULL)


@every_api
@pytest.mark.parametrize("body", [b"", b"no json", b"[1]", zlib.compress(b"{}")])
def test_requests_that_are_no_json_pass_and_their_answers_too(api, body):
    with Rig(answer(BODY[api](FULL))) as rig:
        assert post(rig, PATHS[api], body).json() == BODY[api](FULL)
        named = post(rig, PATHS[api], body, headers={"x-session-id": "s"})
    assert [asked.body for asked in rig.asked] == [body, body]
    assert MESSAGE in named.text


def test_a_request_that_is_reviewed_reaches_the_provider_byte_for_byte():
    body = json.dumps(ASK, indent=5).encode() + b"  \n"
    with Rig(answer(wire.chat_body(FULL))) as rig:
        post(rig, "/v1/chat/completions?api-version=1&x=%20", body)
    assert rig.asked[0].body == body
    assert rig.asked[0].target == b"/v1/chat/completions?api-version=1&x=%20"
    assert rig.asked[0].values("content-length") == [str(len(body))]


# Content codings


@every_api
def test_a_reviewed_answer_is_asked_for_without_compression(api):
    with Rig(answer(BODY[api](FULL))) as rig:
        post(rig, PATHS[api], headers={"accept-encoding": "gzip, br"})
    assert rig.asked[0].values("accept-encoding") == ["identity"]


@every_api
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_compressed_answer_is_reviewed_all_the_same(api, coding):
    pack = gzip.compress if coding == "gzip" else zlib.compress
    headers = [("content-encoding", coding), ("etag", "e"), ("content-md5", "m")]
    whole = answer(pack(json.dumps(BODY[api](FULL)).encode()), headers=headers)
    stream = answer(pack(b"".join(STREAM[api](FULL))), kind=EVENTS, headers=headers)
    kept = pack(json.dumps(BODY[api](LS)).encode())
    with Rig(answering(whole, stream, answer(kept, headers=headers))) as rig:
        for _ in range(2):
            got = post(rig, PATHS[api], headers={"x-session-id": str(_)})
            assert MESSAGE in got.text
            assert not {"content-encoding", "etag", "content-md5"} & got.headers.keys()
        path = rig.url + PATHS[api]
        with httpx2.stream("POST", path, json=ASK, trust_env=False) as got:
            assert raw(got) == kept
            assert got.headers["content-encoding"] == coding


def test_an_answer_in_an_unknown_coding_passes(caplog):
    headers = [("content-encoding", "x-strange")]
    with Rig(answer(b"\x00\x01", headers=headers)) as rig:
        got = post(rig)
    assert (got.content, got.headers["content-encoding"]) == (b"\x00\x01", "x-strange")
    assert "passed without review: its content coding" in caplog.text


def test_an_answer_that_is_not_what_its_coding_says_is_an_error():
    with Rig(answer(b"garbage", headers=[("content-encoding", "gzip")])) as rig:
        assert post(rig).json()["error"]["code"] == "upstream_unreachable"


# Nothing is held back


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
            with anyio.fail_after(60):
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
    parts = STREAM[api](("read_file", {"path": "a"}), text="Let me see.")
    provider = InStep(parts)

    async def go():
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            return await followed(client, rig, provider, api=api, name="s", parts=parts)

    with Rig(provider) as rig:
        assert asyncio.run(go()) == b"".join(parts)


@pytest.fixture
def many_files():
    """Both ends of every connection are in this process: more than some systems allow at first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = 2000 if hard == resource.RLIM_INFINITY else min(2000, hard)
    if soft == resource.RLIM_INFINITY or soft >= enough:
        yield
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.timeout(240)
def test_two_hundred_streams_at_once(many_files):
    parts = STREAM["chat"](text="one two")
    provider = InStep(parts)
    limits = httpx2.Limits(max_connections=None)

    async def go():
        async with httpx2.AsyncClient(trust_env=False, timeout=120, limits=limits) as client:
            streams = (
                followed(client, rig, provider, api="chat", name=f"s{at}", parts=parts)
                for at in range(200)
            )
            return await asyncio.gather(*streams)

    with Rig(provider) as rig:
        got = asyncio.run(go())
    assert got == [b"".join(parts)] * 200


@pytest.mark.timeout(240)
def test_two_hundred_steered_streams_that_are_open_together(many_files):
    parts = STREAM["messages"](FULL)
    arrived, all_here = [], asyncio.Event()

    async def meet(asked, exchange):
        arrived.append(asked)
        if len(arrived) == 200:
            all_here.set()
        await exchange.start()
        with anyio.fail_after(60):
            await all_here.wait()
        for part in parts:
            await exchange.part(part)
        await exchange.end()

    async def one(client, at):
        headers = {"x-session-id": str(at)}
        return (await client.post(rig.url + PATHS["messages"], json=ASK, headers=headers)).text

    async def go():
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(trust_env=False, timeout=120, limits=limits) as client:
            return await asyncio.gather(*(one(client, at) for at in range(200)))

    with Rig(meet) as rig:
        got = asyncio.run(go())
    assert all(MESSAGE in text and "tool_use" not in text for text in got)


# Ends of connections


@pytest.mark.parametrize("path", [*PATHS.values(), "/v1/files"])
@pytest.mark.parametrize("begun", [False, True], ids=["before the answer", "in the stream"])
def test_a_client_that_hangs_up_ends_the_providers_work(path, begun):
    gone, asked_for = threading.Event(), threading.Event()

    async def work(_asked, exchange):
        if begun:
            await exchange.start()
            await exchange.part(b": begun\n\n")
        asked_for.set()
        await exchange.gone()
        gone.set()

    with Rig(work) as rig:
        host, port = rig.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(
                f"POST {path} HTTP/1.1\r\nHost: p\r\nContent-Length: 2\r\n\r\n{{}}".encode()
            )
            assert asked_for.wait(20)
            if begun:
                assert client.recv(10)
        assert gone.wait(20)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/files"])
def test_a_client_that_hangs_up_in_its_request_gets_no_answer(path, caplog):
    with Rig(answer({})) as rig:
        host, port = rig.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(
                f"POST {path} HTTP/1.1\r\nHost: p\r\nContent-Length: 9\r\n\r\n{{".encode()
            )
        assert httpx2.get(f"{rig.url}/v1/models", trust_env=False).json() == {}
    assert [asked.method for asked in rig.asked] == ["GET"]
    assert "unexpected" not in caplog.text


class BrokenOffError(Exception):
    """Ends the provider's answer in the middle."""


def breaking(parts, headers):
    async def give(_asked, exchange):
        await exchange.start(200, headers)
        for part in parts:
            await exchange.part(part)
        raise BrokenOffError

    return give


def read_into(got, url):
    with httpx2.stream("POST", url, json=ASK, trust_env=False) as response:
        for chunk in response.iter_raw():
            got += chunk


@every_api
@pytest.mark.parametrize("length", [None, 100_000])
def test_a_stream_that_breaks_off_has_no_end(api, length, caplog):
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


def test_a_whole_answer_that_breaks_off_is_an_error():
    with Rig(breaking([b'{"id": '], [("content-type", JSON)])) as rig:
        got = post(rig)
    assert (got.status_code, got.json()["error"]["code"]) == (502, "upstream_unreachable")


def test_other_answers_that_break_off_have_no_end():
    headers = [("content-type", "application/octet-stream"), ("content-length", "9")]
    with Rig(breaking([b"1234"], headers)) as rig, pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(f"{rig.url}/v1/files/f/content", trust_env=False)


def test_a_redirect_passes_and_is_not_followed():
    with Rig(answer(b"", status=307, headers=[("location", "/elsewhere")])) as rig:
        got = post(rig)
    assert (got.status_code, got.headers["location"]) == (307, "/elsewhere")
    assert len(rig.asked) == 1


# Limits


@every_api
@pytest.mark.parametrize("announced", [True, False])
def test_a_request_above_the_limit_is_refused(api, announced):
    body = b"x" * 2001
    content = body if announced else iter([body])
    headers = {"anthropic-version": "2023-06-01"} if api == "messages" else {}
    with Rig(answer({}), limits=Limits(request=2000)) as rig:
        got = httpx2.post(rig.url + PATHS[api], content=content, headers=headers, trust_env=False)
        assert httpx2.post(f"{rig.url}/v1/files", content=body, trust_env=False).status_code == 200
    assert got.status_code == 413
    told = got.json()["error"]
    assert "--max-request-bytes" in told["message"]
    assert told["type"] == ("request_too_large" if api == "messages" else "invalid_request_error")
    assert len(rig.asked) == 1


def test_a_request_that_announces_too_much_is_refused_before_it_is_sent():
    head = f"POST {PATHS['chat']} HTTP/1.1\r\nHost: p\r\nContent-Length: 2001\r\n\r\n"
    with Rig(answer({}), limits=Limits(request=2000)) as rig:
        host, port = rig.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(head.encode())
            assert client.recv(13) == b"HTTP/1.1 413 "


def test_a_client_may_send_all_of_a_request_that_is_refused():
    """Its sentence would be lost if the connection ended while the client still writes."""
    with (
        Rig(answer({}), limits=Limits(request=2000)) as rig,
        httpx2.Client(trust_env=False) as client,
    ):
        for _ in range(2):
            got = client.post(rig.url + PATHS["chat"], content=b"x" * 30_000_000)
            assert got.json()["error"]["code"] == "request_too_large"
        assert client.get(f"{rig.url}/v1/models").json() == {}


@every_api
@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_an_answer_above_the_limit_passes_without_review(api, coding, caplog):
    body = json.dumps(BODY[api](FULL, text="x" * 5000)).encode()
    packed = gzip.compress(body) if coding == "gzip" else body
    headers = [("content-encoding", coding)]
    with Rig(answer(packed, headers=headers), limits=Limits(response=2000)) as rig:
        assert post(rig, PATHS[api]).content == body
    assert "passed without review: it is larger than 2000 bytes" in caplog.text


@every_api
def test_a_stream_above_the_limit_passes_without_review(api, caplog):
    parts = STREAM[api](wire.bash("pytest #" + "x" * 5000))
    with Rig(events(parts), limits=Limits(response=2000)) as rig:
        assert post(rig, PATHS[api]).content == b"".join(parts)
    assert "passed without review: more than 2000 bytes" in caplog.text


# Faults, refusals, secrets


class Faulty:
    def review(self, call, session, now):
        raise ZeroDivisionError


@every_api
def test_a_fault_in_steering_lets_the_call_through(api, caplog):
    with Rig(answer(BODY[api](FULL)), reviewer=Faulty()) as rig:
        assert post(rig, PATHS[api]).json() == BODY[api](FULL)
    assert "a call goes through unreviewed: unexpected ZeroDivisionError" in caplog.text


class Sessions:
    def __init__(self):
        self.seen = []

    def review(self, call, session, now):
        self.seen.append(session)
        return Allow("")


def test_a_request_that_begins_with_nothing_has_no_session():
    reviewer = Sessions()
    with Rig(answer(wire.chat_body(FULL)), reviewer=reviewer) as rig:
        post(rig, body={"model": "m"})
        post(rig)
    assert reviewer.seen[0] is None
    assert reviewer.seen[1] is not None


def test_websockets_are_refused_with_a_sentence():
    request = (
        "GET /v1/realtime?model=m HTTP/1.1\r\nHost: p\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n"
    )
    with Rig(answer({})) as rig:
        got = exchanged(rig, request.encode().replace(b"Upgrade\r\n", b"Upgrade, close\r\n", 1))
    assert got.startswith(b"HTTP/1.1 501 ")
    assert b"This proxy carries no WebSockets." in got
    assert rig.asked == []


@pytest.fixture
def levels_restored():
    loggers = [logging.getLogger(name) for name in ("httpx2", "httpcore2", "uvicorn", "hpack")]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


@pytest.mark.parametrize("target", ["http://example.org/v1/models", "example.org:443"])
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
        assert httpx2.get(f"{rig.url}/v1/models", trust_env=False).json() == {}
    assert (got.status_code, got.json()["error"]["code"]) == (500, "proxy_error")
    assert "SECRET" not in caplog.text + got.text


def test_credentials_are_passed_on_and_never_logged(caplog, levels_restored):
    caplog.set_level(logging.DEBUG)
    headers = {"authorization": "Bearer SECRET-1", "x-api-key": "SECRET-2", "cookie": "c=SECRET-3"}
    cookie = [("set-cookie", "s=SECRET-4")]
    secret = wire.bash("TOKEN=SECRET-7 pytest")
    whole, stream = answer(wire.chat_body(secret), headers=cookie), events(STREAM["chat"](secret))
    broken = breaking([b"{"], [("content-type", JSON)])
    hush_libraries()
    ask = {**ASK, "messages": [{"role": "user", "content": "SECRET-6"}]}
    with Rig(answering(whole, stream, broken, answer({}))) as rig:
        for _ in range(3):
            post(rig, "/v1/chat/completions?key=SECRET-5", ask, headers=headers)
        httpx2.get(f"{rig.url}/v1/models?key=SECRET-5", headers=headers, trust_env=False)
    for asked in rig.asked:
        assert b"key=SECRET-5" in asked.target
        assert asked.values("authorization") == ["Bearer SECRET-1"]
    ours = [r for r in caplog.records if r.name.startswith("ci_agent_eval")]
    assert any("Steering full-suite pytest command" in r.getMessage() for r in ours)
    assert "SECRET" not in caplog.text


def test_cookies_of_one_client_are_not_anothers():
    with Rig(answer({}, headers=[("set-cookie", "s=1; Path=/")])) as rig:
        for _ in range(2):
            httpx2.get(f"{rig.url}/v1/models", trust_env=False)
    assert rig.asked[1].values("cookie") == []
