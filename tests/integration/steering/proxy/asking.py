"""What the tests of the proxy ask it for, and how they read what comes back."""

from __future__ import annotations

import json
import socket

import httpx2

from tests import llm_wire as wire
from tests.tables import each_row

FULL, LS = wire.bash("pytest"), wire.bash("ls")
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
BODY = {"chat": wire.chat_body, "responses": wire.response_body, "messages": wire.message_body}
STREAM = {
    "chat": wire.chat_events,
    "responses": wire.response_events,
    "messages": wire.message_events,
}
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
every_api = each_row("api", ["chat", "responses", "messages"])


def post(rig, path=PATHS["chat"], body=ASK, **more):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(rig.url + path, content=content, timeout=120, trust_env=False, **more)


def raw(response):
    """Return the bytes of a body as they came, without the content coding undone."""
    return b"".join(response.iter_raw())


def exchanged(rig, request):
    """Send bytes, and return all bytes that come back until the connection ends."""
    host, port = rig.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.sendall(request)
        parts = iter(lambda: connection.recv(65536), b"")
        return b"".join(parts)


class BrokenOffError(Exception):
    """Ends the provider's answer in the middle."""


def breaking(parts, headers):
    async def give(_asked, exchange):
        await exchange.start(200, headers)
        for part in parts:
            await exchange.part(part)
        raise BrokenOffError

    return give
