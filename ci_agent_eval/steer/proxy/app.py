"""The proxy as an ASGI application: what comes in goes on, and comes back as it is or rewritten."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from ci_agent_eval.steer.proxy import refusals
from ci_agent_eval.steer.proxy import upstream as provider
from ci_agent_eval.steer.proxy.calls import Calls
from ci_agent_eval.steer.proxy.complaints import Api, Complaint
from ci_agent_eval.steer.proxy.conversation import SESSION_HEADER, session_of
from ci_agent_eval.steer.proxy.headers import Headers, for_upstream, value_of
from ci_agent_eval.steer.proxy.inbound import ClientGone, Inbound, TooLarge
from ci_agent_eval.steer.proxy.outbound import Outbound
from ci_agent_eval.steer.proxy.recent import Recent
from ci_agent_eval.steer.proxy.reviewing import Review
from ci_agent_eval.steer.proxy.rewriting import Answer, Events, api_of
from ci_agent_eval.steer.proxy.sse import Json, parse_object, render_json
from ci_agent_eval.steer.proxy.unanswered import REMEMBERED, OpenCalls

logger = logging.getLogger(__name__)

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of one request is held in memory, in bytes."""

    request: int = 64 * _MIB
    """Larger requests whose answers would be reviewed are refused."""
    response: int = 64 * _MIB
    """Larger answers pass without review."""


@dataclass(slots=True)
class _Exchange:
    """One request of a client's, and whether its answer has begun."""

    inbound: Inbound
    _send: Send
    api: Api | None = None
    begun: bool = False

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        self.begun = True
        await self._send(message)


@dataclass(slots=True)
class SteeringProxy:
    """Passes on what is asked and answered; answers that call tools are reviewed on the way."""

    upstream: provider.Upstream
    client: provider.Client
    review: Review
    session_header: str = SESSION_HEADER
    limits: Limits = field(default_factory=Limits)
    _chained: Recent[str] = field(default_factory=lambda: Recent(REMEMBERED))
    _open_calls: OpenCalls = field(default_factory=OpenCalls)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; leaves its answer without an end where the provider broke off."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1011})
        if scope["type"] != "http":
            return
        exchange = _Exchange(Inbound(scope, receive), send)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_gone, exchange.inbound, tasks.cancel_scope)
            complaint = await self._answered(exchange)
            if complaint is not None:
                await _complain(complaint, exchange, scope, receive)
            tasks.cancel_scope.cancel()

    async def _answered(self, exchange: _Exchange) -> Complaint | None:
        """Answer a request; return what the client has to be told where that was not possible."""
        inbound = exchange.inbound
        exchange.api = api_of(inbound.method, inbound.path)
        try:
            if value_of(inbound.headers, b"upgrade").lower() == "websocket":
                return refusals.NO_WEBSOCKETS
            await (self._passed if exchange.api is None else self._reviewed)(exchange)
        except ClientGone:
            return None
        except TooLarge:
            return refusals.too_large(self.limits.request)
        except provider.Failure as error:
            return refusals.failed(self.upstream.origin, error)
        return None

    async def _passed(self, exchange: _Exchange) -> None:
        inbound = exchange.inbound
        headers = for_upstream(inbound.headers, plain=False)
        content = inbound.chunks() if inbound.has_body else None
        async with aclosing(await self._asked(inbound, headers, content)) as answered:
            await Outbound(answered, exchange.send).passed()

    async def _reviewed(self, exchange: _Exchange) -> None:
        """Pass on a request whose answer may hold calls, and review these."""
        inbound, api = exchange.inbound, exchange.api
        body = await inbound.body(self.limits.request)
        request = parse_object(body)
        if request is not None and api == "responses" and self._open_calls.answer(request):
            body = render_json(request)
        headers = for_upstream(inbound.headers, plain=True)
        async with aclosing(await self._asked(inbound, headers, body)) as answered:
            out = Outbound(answered, exchange.send)
            if api is None or not answered.is_success or not self._can_review(inbound, request):
                await out.passed()
            else:
                await self._rewritten(out, api, inbound, request or {})

    async def _asked(
        self,
        inbound: Inbound,
        headers: Headers,
        content: bytes | AsyncIterator[bytes] | None,
    ) -> provider.Answered:
        target = self.upstream.target(inbound.raw_path, inbound.query)
        return await provider.ask(
            self.client,
            self.upstream.origin,
            inbound.method,
            target,
            headers=headers,
            content=content,
        )

    def _can_review(self, inbound: Inbound, request: Json | None) -> bool:
        """Say whether it can be told whose calls these are.

        A request that is not JSON (some clients compress theirs) names no conversation: its
        calls would be held back each time.
        """
        return request is not None or self.session_header.lower() in inbound.texts

    async def _rewritten(self, out: Outbound, api: Api, inbound: Inbound, request: Json) -> None:
        """Hand on an answer with messages in place of steered calls; remember what it was."""
        session = session_of(
            inbound.texts, request, header=self.session_header, chained=self._chained.find
        )
        answer = Answer(api, Calls(self.review.gate(session)))
        self._open_calls.answered(request)
        try:
            await self._handed_on(out, answer)
        finally:
            if answer.response_id is not None and session is not None:
                self._chained.put(answer.response_id, session)
            self._open_calls.remember(request, answer.response_id, answer.output.unanswered)

    async def _handed_on(self, out: Outbound, answer: Answer) -> None:
        readable = provider.is_decodable(self.client, out.coding)
        if out.kind == "text/event-stream" and readable:
            events = Events(answer.stream(), self.limits.response)
            await out.streamed(events)
            _say_unreviewed(events.given_up)
        elif out.kind.endswith("json") and readable:
            await self._whole(out, answer)
        else:
            _say_unreviewed(None if readable else "its content coding is unknown here")
            await out.passed()

    async def _whole(self, out: Outbound, answer: Answer) -> None:
        raw = await out.whole(self.limits.response)
        body = None if raw is None else self._decoded(raw, out.coding)
        rewritten = None if body is None else answer.rewrite(body)
        if body is None:
            _say_unreviewed(f"it is larger than {self.limits.response} bytes")
        await (out.passed() if rewritten is None else out.replaced(rewritten))

    def _decoded(self, raw: bytes, coding: str) -> bytes | None:
        body = bytearray()
        for part in provider.decoded(raw, coding) if coding else (raw,):
            body += part
            if len(body) > self.limits.response:
                return None
        return bytes(body)


async def _cancel_when_gone(inbound: Inbound, scope: anyio.CancelScope) -> None:
    await inbound.gone()
    scope.cancel()


async def _complain(told: Complaint, exchange: _Exchange, scope: Scope, receive: Receive) -> None:
    """Tell the client; where the answer has begun, the connection's end has to tell it."""
    logger.warning("%s", told.sentence)
    if exchange.begun:
        return
    api = "messages" if "anthropic-version" in exchange.inbound.texts else exchange.api
    headers = {} if told.status >= 500 else {"connection": "close"}
    response = Response(told.body(api), told.status, headers, "application/json")
    await response(scope, receive, exchange.send)


def _say_unreviewed(why: str | None) -> None:
    if why is not None:
        logger.warning("an answer passed without review: %s", why)
