"""An answer on its way to the client, which gets each part as soon as it is here."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import Send

from ci_agent_eval.steering.proxy.answer_rewriter import EventRewriter
from ci_agent_eval.steering.proxy.headers import (
    Headers,
    get_header,
    keep_end_to_end,
    replace_body_headers,
)
from ci_agent_eval.steering.proxy.upstream import ProviderResponse, decode_body, is_decodable


class AnswerSender:
    """Sends one answer of the provider's; it raises what reading the answer raises."""

    def __init__(self, answered: ProviderResponse, send: Send) -> None:
        self.headers: Headers = keep_end_to_end(answered.headers.raw)
        self._coding = get_header(self.headers, b"content-encoding")
        self.kind = get_header(self.headers, b"content-type").partition(";")[0].strip().lower()
        self._answered = answered
        self._raw = answered.aiter_raw()
        self._begun = bytearray()
        self._send = send

    async def passed(self) -> None:
        """Hand on the bytes as they come, and those that `whole` has read."""
        await self._start(self.headers)
        if self._begun:
            await self._part(bytes(self._begun))
        async for chunk in self._raw:
            await self._part(chunk)
        await self._end()

    @property
    def is_readable(self) -> bool:
        """Whether the content codings of the body can be undone here."""
        return is_decodable(self._coding)

    async def whole(self, most: int) -> bytes | None:
        """Return the body without its content codings; None if it is larger than `most` bytes."""
        async for chunk in self._raw:
            self._begun += chunk
            if len(self._begun) > most:
                return None
        body = bytearray()
        for part in decode_body(bytes(self._begun), self._coding):
            body += part
            if len(body) > most:
                return None
        return bytes(body)

    async def replaced(self, body: bytes) -> None:
        """Send another body in place of the provider's."""
        await self._start(replace_body_headers(self.headers, len(body)))
        await self._part(body)
        await self._end()

    async def send_events(self, events: EventRewriter, before: Callable[[], None]) -> None:
        """Hand on a stream of events as they are rewritten; `before` is called before each part."""
        await self._start(replace_body_headers(self.headers))
        async for chunk in self._answered.aiter_bytes():
            out = events.feed(chunk)
            before()
            await self._part(out)
        out = events.finish()
        before()
        await self._part(out)
        await self._end()

    async def _start(self, headers: Headers) -> None:
        status = self._answered.status_code
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _part(self, body: bytes) -> None:
        if body:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
