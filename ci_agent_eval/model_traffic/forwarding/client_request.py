"""A client's request, and the detection of its disconnection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from ci_agent_eval.model_traffic.forwarding.headers import Headers

if TYPE_CHECKING:
    from starlette.types import Receive, Scope


class ClientDisconnected(Exception):  # noqa: N818 - a normal event
    """The client disconnected before its request was complete."""


class BodyTooLarge(Exception):  # noqa: N818 - named after the condition
    """The body is larger than the limit."""


class ClientRequest:
    """One request; its body can be read only once."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.query: bytes = scope["query_string"]
        self.headers: Headers = list(scope["headers"])
        self._receive = receive
        self._is_read = anyio.Event()
        if not self.has_body:
            self._is_read.set()

    @property
    def has_body(self) -> bool:
        """Whether the client announced a body."""
        return any(k in {b"content-length", b"transfer-encoding"} for k, _ in self.headers)

    @property
    def text_headers(self) -> dict[str, str]:
        """The headers by name, in lower case; the last of a repeated name counts."""
        return {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in self.headers}

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives. Raises ClientDisconnected."""
        has_more = True
        while has_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            if body := message.get("body"):
                yield body
            has_more = message.get("more_body", False)
        self._is_read.set()

    async def body(self, limit: int) -> bytes:
        """Return the body. Raises ClientDisconnected, and BodyTooLarge above `limit` bytes."""
        if int(self.text_headers.get("content-length", "0")) > limit:
            raise BodyTooLarge
        if not self.has_body:
            return b""
        parts = bytearray()
        async for chunk in self.chunks():
            parts += chunk
            if len(parts) > limit:
                raise BodyTooLarge
        return bytes(parts)

    async def wait_until_disconnected(self) -> None:
        """Wait until the client disconnects; another task must read its request."""
        await self._is_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


@asynccontextmanager
async def cancel_when_disconnected(request: ClientRequest) -> AsyncIterator[None]:
    """Cancel the `async with` block if the client disconnects; the block must read the body."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_when_disconnected, request, tasks.cancel_scope)
        yield
        tasks.cancel_scope.cancel()


async def _cancel_when_disconnected(request: ClientRequest, scope: anyio.CancelScope) -> None:
    await request.wait_until_disconnected()
    scope.cancel()
