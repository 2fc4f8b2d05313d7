"""What crosses the proxy, seen at both ends: bytes, headers and content codings."""

from __future__ import annotations

import gzip
import json
import zlib

import httpx2

from tests import llm_wire as wire
from tests.integration.steering.proxy.asking import (
    ASK,
    BODY,
    FULL,
    LS,
    PATHS,
    STREAM,
    every_api,
    exchanged,
    post,
    raw,
)
from tests.integration.steering.proxy.rig import EVENTS, MESSAGE, Rig, answer, answering, events
from tests.tables import each_row


@each_row("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"])
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
        assert rig.arrived.acquire(timeout=120)
        yield b"second"

    with Rig(answer({})) as rig:
        httpx2.post(f"{rig.url}/v1/files", content=parts(), trust_env=False, timeout=120)
    assert rig.asked[0].body == b"firstsecond"
    assert rig.asked[0].values("transfer-encoding") == ["chunked"]


@each_row("status", [204, 304])
def test_answers_without_a_body_pass(status):
    with Rig(answer(b"", status=status)) as rig:
        got = httpx2.get(f"{rig.url}/v1/x", trust_env=False, timeout=120)
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
    parts = [*odd, *STREAM[api](LS, text="Grüße"), *odd[1:3], b"data: cut"]
    with Rig(events(parts)) as rig:
        got = post(rig, PATHS[api])
    assert got.content == b"".join(parts)
    assert got.headers["content-type"] == EVENTS


ODD_BODIES = [
    b"",
    b"no json",
    b"[]",
    b"{}",
    b'{"choices": 1, "output": {}, "content": null}',
    b"\xff\xfe",
    b'{"a": 1} trailing',
    b'{"b" : [ 1.0, 1e5 ] }\n',
]


@every_api
def test_answers_of_another_shape_pass_byte_for_byte(api):
    answers = [
        answer(body, headers=[("content-length", str(len(body))), ("etag", "e")])
        for body in ODD_BODIES
    ]
    with Rig(answering(*answers)) as rig:
        for body in ODD_BODIES:
            got = post(rig, PATHS[api])
            assert (got.content, got.headers["etag"]) == (body, "e")


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
def test_requests_that_are_no_json_pass_and_their_answers_too(api, caplog):
    caplog.clear()
    bodies = [b"", b"no json", b"[1]", zlib.compress(b"{}")]
    with Rig(answer(BODY[api](FULL))) as rig:
        for body in bodies:
            assert post(rig, PATHS[api], body).json() == BODY[api](FULL)
            named = post(rig, PATHS[api], body, headers={"x-session-id": "s"})
            assert named.json() == BODY[api](FULL)
    assert (
        caplog.text.count("an answer passed without review: its request is not a JSON object") == 8
    )
    assert [asked.body for asked in rig.asked] == [body for body in bodies for _ in range(2)]


def test_a_request_that_is_reviewed_reaches_the_provider_byte_for_byte():
    body = json.dumps(ASK, indent=5).encode() + b"  \n"
    with Rig(answer(wire.chat_body(FULL))) as rig:
        post(rig, "/v1/chat/completions?api-version=1&x=%20", body)
    assert rig.asked[0].body == body
    assert rig.asked[0].target == b"/v1/chat/completions?api-version=1&x=%20"
    assert rig.asked[0].values("content-length") == [str(len(body))]


@every_api
def test_a_reviewed_answer_is_asked_for_without_compression(api):
    with Rig(answer(BODY[api](FULL))) as rig:
        post(rig, PATHS[api], headers={"accept-encoding": "gzip, br"})
    assert rig.asked[0].values("accept-encoding") == ["identity"]


@every_api
@each_row("coding", ["gzip", "deflate"])
def test_a_compressed_answer_is_reviewed_all_the_same(api, coding):
    pack = gzip.compress if coding == "gzip" else zlib.compress
    headers = [("content-encoding", coding), ("etag", "e"), ("content-md5", "m")]
    whole = answer(pack(json.dumps(BODY[api](FULL)).encode()), headers=headers)
    stream = answer(pack(b"".join(STREAM[api](FULL))), kind=EVENTS, headers=headers)
    kept = pack(json.dumps(BODY[api](LS)).encode())
    answers = [whole, whole, stream, stream, answer(kept, headers=headers)]
    with Rig(answering(*answers)) as rig:
        for at in range(2):
            got = post(rig, PATHS[api], headers={"x-session-id": str(at)})
            assert "pytest" in got.text
            is_stream = got.headers["content-type"] == EVENTS
            dropped = {"content-encoding", "etag", "content-md5"} & got.headers.keys()
            assert bool(dropped) is not is_stream
            assert MESSAGE.encode()[:20] in rig.asked[2 * at + 1].body
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


def test_a_redirect_passes_and_is_not_followed():
    with Rig(answer(b"", status=307, headers=[("location", "/elsewhere")])) as rig:
        got = post(rig)
    assert (got.status_code, got.headers["location"]) == (307, "/elsewhere")
    assert len(rig.asked) == 1
