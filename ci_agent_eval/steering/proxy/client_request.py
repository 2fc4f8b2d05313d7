"""A client's request as it arrives, and the moment when the client hangs up."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from starlette.types import Receive, Scope

from ci_agent_eval.steering.proxy.headers import Headers


class ClientDisconnected(Exception):  # noqa: N818 - it is no error of anybody's
    """The client hung up before its request was complete."""


class BodyTooLarge(Exception):  # noqa: N818 - it is what was found
    """A body is larger than the limit."""


class ClientRequest:
    """One request; its body can be read once."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.query: bytes = scope["query_string"]
        self.headers: Headers = list(scope["headers"])
        self._receive = receive
        self._complete = anyio.Event()
        if not self.has_body:
            self._complete.set()

    @property
    def has_body(self) -> bool:
        """Whether the client announced a body."""
        return any(k in {b"content-length", b"transfer-encoding"} for k, _ in self.headers)

    @property
    def texts(self) -> dict[str, str]:
        """The headers by name, in lower case; the last of a repeated name counts."""
        return {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in self.headers}

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives. Raises ClientGone."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            if body := message.get("body"):
                yield body
            more = message.get("more_body", False)
        self._complete.set()

    async def body(self, most: int) -> bytes:
        """Return the whole body. Raises ClientGone, and TooLarge above `most` bytes."""
        if int(self.texts.get("content-length", "0")) > most:
            raise BodyTooLarge
        if not self.has_body:
            return b""
        parts = bytearray()
        async for chunk in self.chunks():
            parts += chunk
            if len(parts) > most:
                raise BodyTooLarge
        return bytes(parts)

    async def wait_until_disconnected(self) -> None:
        """Wait until the client hangs up; its whole request has to be read by somebody else."""
        await self._complete.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
