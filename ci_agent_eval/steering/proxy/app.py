"""The proxy as an ASGI application, which passes on requests and reviews answers."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from typing import Literal

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ci_agent_eval.model_traffic.formats.anthropic_messages import build_anthropic_error
from ci_agent_eval.model_traffic.formats.json_values import render_compact_json
from ci_agent_eval.model_traffic.formats.openai_chat import build_openai_error
from ci_agent_eval.model_traffic.forwarding import upstream as provider
from ci_agent_eval.model_traffic.forwarding.answer_sender import AnswerSender, WatchedSend
from ci_agent_eval.model_traffic.forwarding.client_request import (
    BodyTooLarge,
    ClientDisconnected,
    ClientRequest,
    cancel_when_disconnected,
)
from ci_agent_eval.model_traffic.forwarding.headers import (
    Headers,
    build_upstream_headers,
    get_header,
)
from ci_agent_eval.steering.proxy.answer_reviewer import AnswerReviewer
from ci_agent_eval.steering.proxy.api import Api
from ci_agent_eval.steering.proxy.chat import ChatApi
from ci_agent_eval.steering.proxy.messages import MessagesApi
from ci_agent_eval.steering.proxy.responses import ResponsesApi

logger = logging.getLogger(__name__)

ApiName = Literal["chat", "responses", "messages"]

APIS: Mapping[ApiName, Api] = {
    "chat": ChatApi(),
    "responses": ResponsesApi(),
    "messages": MessagesApi(),
}

# Gateways add prefixes to the paths of the APIs. `/threads/ID/messages` of OpenAI's Assistants
# is not Anthropic's `/v1/messages`.
_PATHS: Mapping[ApiName, re.Pattern[str]] = {
    "chat": re.compile(r"/chat/completions/?$"),
    "responses": re.compile(r"/responses/?$"),
    "messages": re.compile(r"/v1/messages/?$"),
}


def find_api(method: str, path: str) -> ApiName | None:
    """Return the API of a request with reviewed answers; None for other requests."""
    if method != "POST":
        return None
    return next((api for api, pattern in _PATHS.items() if pattern.search(path)), None)


_ANTHROPIC = {413: "request_too_large", 504: "timeout_error"}


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error response of the proxy itself."""

    status: int
    code: str
    message: str

    def body(self, *, is_anthropic: bool) -> bytes:
        """Return the JSON error body of Anthropic's or OpenAI's API."""
        is_clients = self.status < 500
        if is_anthropic:
            default = "invalid_request_error" if is_clients else "api_error"
            kind = _ANTHROPIC.get(self.status, default)
            return render_compact_json(build_anthropic_error(self.message, kind))
        kind = "invalid_request_error" if is_clients else "server_error"
        return render_compact_json(build_openai_error(self.message, kind, self.code))


NO_WEBSOCKETS = ErrorResponse(
    # Codex falls back to HTTP at once only on this status.
    426,
    "websocket_unsupported",
    "This proxy carries no WebSockets. Use the API over HTTP, where answers can be streamed, "
    "or go to the provider directly.",
)

NO_FORWARDING = ErrorResponse(
    400,
    "not_a_path",
    "This proxy stands for one provider and forwards to no other. Give clients its address as "
    "the API's base URL, not as an HTTP proxy.",
)


def _build_internal_error(error: Exception) -> ErrorResponse:
    """Build the response for a bug, without the error's text, which may contain the request."""
    return ErrorResponse(
        500,
        "proxy_error",
        f"This proxy failed on the request (unexpected {type(error).__name__}). This is a bug; "
        "go to the provider directly.",
    )


def _build_size_error(limit: int) -> ErrorResponse:
    """Build the response for a request above `limit` bytes."""
    return ErrorResponse(
        413,
        "request_too_large",
        f"The request is larger than the {limit} bytes this proxy takes. Send less, or start "
        "`agent-eval steer proxy` with a larger --max-request-bytes.",
    )


def _build_upstream_error(origin: str, error: provider.ProviderError) -> ErrorResponse:
    """Build the response for a missing or incomplete answer of the provider at `origin`."""
    if isinstance(error, provider.ProviderTimeout):
        return ErrorResponse(
            504,
            "upstream_timeout",
            f"{origin} did not answer this proxy in time ({type(error).__name__}). Try again, "
            "or start `agent-eval steer proxy` with a larger --timeout.",
        )
    return ErrorResponse(
        502,
        "upstream_unreachable",
        f"This proxy got no whole answer from {origin} ({type(error).__name__}). Look at its "
        "--upstream, and whether the provider is up.",
    )


@dataclass(slots=True)
class _ProxiedRequest:
    """One request of a client, and the way its answer takes."""

    request: ClientRequest
    api: ApiName | None
    send: WatchedSend


@dataclass(frozen=True, slots=True)
class SteeringProxy:
    """Passes on requests and answers, and reviews answers with tool calls."""

    upstream: provider.Upstream
    client: provider.ProviderClient
    answer_reviewer: AnswerReviewer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; leaves the answer incomplete if the provider's is incomplete."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1011})
        if scope["type"] != "http":
            return
        request = ClientRequest(scope, receive)
        api = find_api(request.method, request.path)
        proxied = _ProxiedRequest(request, api, WatchedSend(send))
        async with cancel_when_disconnected(request):
            error_response = _find_refusal(request) or await self._answer_request(proxied)
            if error_response is not None:
                await _send_error(error_response, proxied, scope, receive)

    async def _answer_request(self, proxied: _ProxiedRequest) -> ErrorResponse | None:
        """Answer a request; return an error response if that failed."""
        try:
            if proxied.api is None:
                await self._pass_through(proxied)
            else:
                await self._review_answer(proxied, proxied.api)
        except ClientDisconnected:
            return None
        except BodyTooLarge:
            return _build_size_error(self.answer_reviewer.limits.request)
        except provider.ProviderError as error:
            return _build_upstream_error(self.upstream.origin, error)
        except Exception as error:  # noqa: BLE001 - a traceback would contain the request
            return _build_internal_error(error)
        return None

    async def _pass_through(self, proxied: _ProxiedRequest) -> None:
        request = proxied.request
        headers = build_upstream_headers(request.headers, plain=False)
        content = request.chunks() if request.has_body else None
        async with aclosing(await self._send_upstream(request, headers, content)) as response:
            await AnswerSender(response, proxied.send).pass_through()

    async def _review_answer(self, proxied: _ProxiedRequest, api: ApiName) -> None:
        """Pass on a request and review the calls in its answer."""
        request, reviewer = proxied.request, self.answer_reviewer
        body = await request.body(reviewer.limits.request)
        prepared = reviewer.prepare_request(request.text_headers, body)
        async with AsyncExitStack() as responses:
            out = await self._ask_model(proxied, prepared.body, responses)
            if out.is_success:
                ask = partial(self._ask_again, proxied, responses)
                await reviewer.send_answer(APIS[api], out, prepared, ask)
            else:
                await out.pass_through()

    async def _ask_again(
        self, proxied: _ProxiedRequest, responses: AsyncExitStack, body: bytes
    ) -> AnswerSender | None:
        """Send another body for a request; return None, with a log line, if that failed."""
        # The earlier answer is read as far as it is needed.
        await responses.aclose()
        try:
            out = await self._ask_model(proxied, body, responses)
        except provider.ProviderError as error:
            reason = f"the model could not be asked again ({type(error).__name__})"
        else:
            if out.is_success and out.is_readable:
                return out
            reason = f"asked again, the model's provider answered with status {out.status}"
        logger.warning("a held call goes through: %s", reason)
        return None

    async def _ask_model(
        self, proxied: _ProxiedRequest, body: bytes, responses: AsyncExitStack
    ) -> AnswerSender:
        headers = build_upstream_headers(proxied.request.headers, plain=True)
        response = await self._send_upstream(proxied.request, headers, body)
        await responses.enter_async_context(aclosing(response))
        return AnswerSender(response, proxied.send)

    async def _send_upstream(
        self, request: ClientRequest, headers: Headers, content: bytes | AsyncIterator[bytes] | None
    ) -> provider.ProviderResponse:
        return await provider.send_request(
            self.client,
            self.upstream.origin,
            request.method,
            self.upstream.build_target(request.raw_path, request.query),
            headers=headers,
            content=content,
        )


def _find_refusal(request: ClientRequest) -> ErrorResponse | None:
    if get_header(request.headers, b"upgrade").lower() == "websocket":
        return NO_WEBSOCKETS
    if not request.raw_path.startswith(b"/") and request.raw_path != b"*":
        return NO_FORWARDING
    return None


async def _send_error(
    error_response: ErrorResponse, proxied: _ProxiedRequest, scope: Scope, receive: Receive
) -> None:
    """Send an error response, unless the answer has begun: then only close the connection."""
    logger.warning("%s", error_response.message)
    if proxied.send.has_begun:
        return
    is_anthropic = proxied.api == "messages" or "anthropic-version" in proxied.request.text_headers
    body = error_response.body(is_anthropic=is_anthropic)
    response = Response(body, error_response.status, media_type="application/json")
    await response(scope, receive, proxied.send)
