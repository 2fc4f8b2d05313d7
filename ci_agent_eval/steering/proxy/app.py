"""The proxy as an ASGI application: what comes in goes on, and comes back as it is or rewritten."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

import anyio
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from ci_agent_eval.steering.proxy import refusals
from ci_agent_eval.steering.proxy import upstream as provider
from ci_agent_eval.steering.proxy.answering import Answering
from ci_agent_eval.steering.proxy.complaints import Api, Complaint
from ci_agent_eval.steering.proxy.headers import Headers, for_upstream, value_of
from ci_agent_eval.steering.proxy.inbound import ClientGone, Inbound, TooLarge
from ci_agent_eval.steering.proxy.outbound import Outbound
from ci_agent_eval.steering.proxy.rewriting import api_of

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Exchange:
    """One request of a client's, and whether its answer has begun."""

    inbound: Inbound
    api: Api | None
    _send: Send
    begun: bool = False

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        self.begun = True
        await self._send(message)


@dataclass(frozen=True, slots=True)
class SteeringProxy:
    """Passes on what is asked and answered; answers that call tools are reviewed on the way."""

    upstream: provider.Upstream
    client: provider.Client
    answering: Answering

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; leaves its answer without an end where the provider broke off."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1011})
        if scope["type"] != "http":
            return
        inbound = Inbound(scope, receive)
        exchange = _Exchange(inbound, api_of(inbound.method, inbound.path), send)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_gone, inbound, tasks.cancel_scope)
            complaint = _refused(inbound) or await self._answered(exchange)
            if complaint is not None:
                await _complain(complaint, exchange, scope, receive)
            tasks.cancel_scope.cancel()

    async def _answered(self, exchange: _Exchange) -> Complaint | None:
        """Answer a request; return what the client has to be told where that was not possible."""
        try:
            if exchange.api is None:
                await self._passed(exchange)
            else:
                await self._reviewed(exchange, exchange.api)
        except ClientGone:
            return None
        except TooLarge:
            return refusals.too_large(self.answering.limits.request)
        except provider.Failure as error:
            return refusals.failed(self.upstream.origin, error)
        except Exception as error:  # noqa: BLE001 - a traceback would show what was asked
            return refusals.unexpected(error)
        return None

    async def _passed(self, exchange: _Exchange) -> None:
        inbound = exchange.inbound
        headers = for_upstream(inbound.headers, plain=False)
        content = inbound.chunks() if inbound.has_body else None
        async with aclosing(await self._asked(inbound, headers, content)) as answered:
            await Outbound(answered, exchange.send).passed()

    async def _reviewed(self, exchange: _Exchange, api: Api) -> None:
        """Pass on a request whose answer may hold calls, and review these."""
        inbound = exchange.inbound
        body = await inbound.body(self.answering.limits.request)
        asked = self.answering.asked(api, body)
        headers = for_upstream(inbound.headers, plain=True)
        async with aclosing(await self._asked(inbound, headers, asked.body)) as answered:
            out = Outbound(answered, exchange.send)
            if answered.is_success:
                await self.answering.hand_on(out, api, inbound.texts, asked.request)
            else:
                await out.passed()

    async def _asked(
        self, inbound: Inbound, headers: Headers, content: bytes | AsyncIterator[bytes] | None
    ) -> provider.Answered:
        return await provider.ask(
            self.client,
            self.upstream.origin,
            inbound.method,
            self.upstream.target(inbound.raw_path, inbound.query),
            headers=headers,
            content=content,
        )


def _refused(inbound: Inbound) -> Complaint | None:
    if value_of(inbound.headers, b"upgrade").lower() == "websocket":
        return refusals.NO_WEBSOCKETS
    if not inbound.raw_path.startswith(b"/") and inbound.raw_path != b"*":
        return refusals.NO_FORWARDING
    return None


async def _cancel_when_gone(inbound: Inbound, scope: anyio.CancelScope) -> None:
    await inbound.gone()
    scope.cancel()


async def _complain(told: Complaint, exchange: _Exchange, scope: Scope, receive: Receive) -> None:
    """Tell the client; where the answer has begun, the connection's end has to tell it."""
    logger.warning("%s", told.sentence)
    if exchange.begun:
        return
    api = "messages" if "anthropic-version" in exchange.inbound.texts else exchange.api
    response = Response(told.body(api), told.status, media_type="application/json")
    await response(scope, receive, exchange.send)
