"""The proxy as an ASGI application: what comes in goes on, and comes back as it is or rewritten."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

import anyio
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from ci_agent_eval.steering.proxy import proxy_errors
from ci_agent_eval.steering.proxy import upstream as provider
from ci_agent_eval.steering.proxy.answer_reviewer import AnswerReviewer
from ci_agent_eval.steering.proxy.answer_rewriter import find_api
from ci_agent_eval.steering.proxy.answer_sender import AnswerSender
from ci_agent_eval.steering.proxy.client_request import (
    BodyTooLarge,
    ClientDisconnected,
    ClientRequest,
)
from ci_agent_eval.steering.proxy.error_response import Api, ErrorResponse
from ci_agent_eval.steering.proxy.headers import Headers, build_upstream_headers, get_header

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _ProxiedRequest:
    """One request of a client's, and whether its answer has begun."""

    inbound: ClientRequest
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
    client: provider.ProviderClient
    answering: AnswerReviewer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; leaves its answer without an end where the provider broke off."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1011})
        if scope["type"] != "http":
            return
        inbound = ClientRequest(scope, receive)
        exchange = _ProxiedRequest(inbound, find_api(inbound.method, inbound.path), send)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_gone, inbound, tasks.cancel_scope)
            complaint = _find_refusal(inbound) or await self._answered(exchange)
            if complaint is not None:
                await _send_error(complaint, exchange, scope, receive)
            tasks.cancel_scope.cancel()

    async def _answered(self, exchange: _ProxiedRequest) -> ErrorResponse | None:
        """Answer a request; return what the client has to be told where that was not possible."""
        try:
            if exchange.api is None:
                await self._passed(exchange)
            else:
                await self._reviewed(exchange, exchange.api)
        except ClientDisconnected:
            return None
        except BodyTooLarge:
            return proxy_errors.build_size_error(self.answering.limits.request)
        except provider.ProviderError as error:
            return proxy_errors.build_upstream_error(self.upstream.origin, error)
        except Exception as error:  # noqa: BLE001 - a traceback would show what was asked
            return proxy_errors.build_internal_error(error)
        return None

    async def _passed(self, exchange: _ProxiedRequest) -> None:
        inbound = exchange.inbound
        headers = build_upstream_headers(inbound.headers, plain=False)
        content = inbound.chunks() if inbound.has_body else None
        async with aclosing(await self._asked(inbound, headers, content)) as answered:
            await AnswerSender(answered, exchange.send).passed()

    async def _reviewed(self, exchange: _ProxiedRequest, api: Api) -> None:
        """Pass on a request whose answer may hold calls, and review these."""
        inbound = exchange.inbound
        body = await inbound.body(self.answering.limits.request)
        asked = self.answering.asked(api, body)
        headers = build_upstream_headers(inbound.headers, plain=True)
        async with aclosing(await self._asked(inbound, headers, asked.body)) as answered:
            out = AnswerSender(answered, exchange.send)
            if answered.is_success:
                await self.answering.send_answer(out, api, inbound.texts, asked.request)
            else:
                await out.passed()

    async def _asked(
        self, inbound: ClientRequest, headers: Headers, content: bytes | AsyncIterator[bytes] | None
    ) -> provider.ProviderResponse:
        return await provider.send_request(
            self.client,
            self.upstream.origin,
            inbound.method,
            self.upstream.target(inbound.raw_path, inbound.query),
            headers=headers,
            content=content,
        )


def _find_refusal(inbound: ClientRequest) -> ErrorResponse | None:
    if get_header(inbound.headers, b"upgrade").lower() == "websocket":
        return proxy_errors.NO_WEBSOCKETS
    if not inbound.raw_path.startswith(b"/") and inbound.raw_path != b"*":
        return proxy_errors.NO_FORWARDING
    return None


async def _cancel_when_gone(inbound: ClientRequest, scope: anyio.CancelScope) -> None:
    await inbound.wait_until_disconnected()
    scope.cancel()


async def _send_error(
    told: ErrorResponse, exchange: _ProxiedRequest, scope: Scope, receive: Receive
) -> None:
    """Tell the client; where the answer has begun, the connection's end has to tell it."""
    logger.warning("%s", told.sentence)
    if exchange.begun:
        return
    api = "messages" if "anthropic-version" in exchange.inbound.texts else exchange.api
    response = Response(told.body(api), told.status, media_type="application/json")
    await response(scope, receive, exchange.send)
