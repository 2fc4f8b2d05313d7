"""Sending of answers to the client, each part as soon as it arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci_agent_eval.model_traffic.forwarding.headers import (
    Headers,
    get_end_to_end_headers,
    get_header,
    replace_body_headers,
)
from ci_agent_eval.model_traffic.forwarding.upstream import (
    ProviderResponse,
    decode_body,
    is_decodable,
)

if TYPE_CHECKING:
    from starlette.types import Message, Send


@dataclass(slots=True)
class WatchedSend:
    """Sends the parts of an answer to the client, and knows whether it has begun."""

    _send: Send
    has_begun: bool = False

    async def __call__(self, message: Message) -> None:
        """Send a part of the answer."""
        self.has_begun = True
        await self._send(message)


class AnswerSender:
    """Sends one answer of the provider. The methods raise the errors of reading it."""

    def __init__(self, response: ProviderResponse, send: Send) -> None:
        self.headers: Headers = get_end_to_end_headers(response.headers.raw)
        self._coding = get_header(self.headers, b"content-encoding")
        self.content_type = (
            get_header(self.headers, b"content-type").partition(";")[0].strip().lower()
        )
        self._response = response
        self._raw = response.aiter_raw()
        self._read_bytes = bytearray()
        self._send = send

    async def pass_through(self) -> None:
        """Send the unchanged bytes, including those read by `read_body`."""
        await self._send_start(self.headers)
        if self._read_bytes:
            await self.send_part(bytes(self._read_bytes))
        async for chunk in self._raw:
            await self.send_part(chunk)
        await self.end_stream()

    @property
    def status(self) -> int:
        """The status of the provider's response."""
        return self._response.status_code

    @property
    def is_success(self) -> bool:
        """Whether the provider answered without an error."""
        return self._response.is_success

    @property
    def is_readable(self) -> bool:
        """Whether the body's content codings can be decoded."""
        return is_decodable(self._coding)

    async def read_body(self, limit: int) -> bytes | None:
        """Return the decoded body; None if it is larger than `limit` bytes."""
        async for chunk in self._raw:
            self._read_bytes += chunk
            if len(self._read_bytes) > limit:
                return None
        body = bytearray()
        for part in decode_body(bytes(self._read_bytes), self._coding):
            body += part
            if len(body) > limit:
                return None
        return bytes(body)

    async def send_body(self, body: bytes) -> None:
        """Send a body that replaces the provider's."""
        await self._send_start(replace_body_headers(self.headers, len(body)))
        await self.send_part(body)
        await self.end_stream()

    def iterate_body(self) -> AsyncIterator[bytes]:
        """Return the decoded body in the parts in which it arrives."""
        return self._response.aiter_bytes()

    async def start_stream(self) -> None:
        """Start a body that replaces the provider's, sent in parts."""
        await self._send_start(replace_body_headers(self.headers))

    async def send_part(self, body: bytes) -> None:
        """Send the next bytes."""
        if body:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end_stream(self) -> None:
        """End the body."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_start(self, headers: Headers) -> None:
        await self._send({"type": "http.response.start", "status": self.status, "headers": headers})
