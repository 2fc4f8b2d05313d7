"""The proxy as an ASGI application, and its server: uvicorn on a socket, stopped by a signal."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple, TextIO

import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ci_agent_eval.errors import InputError
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
from ci_agent_eval.model_traffic.forwarding.listener import (
    bind_socket,
    build_server_config,
    get_url,
)
from ci_agent_eval.steering.proxy.answer_reviewer import AnswerReviewer
from ci_agent_eval.steering.proxy.apis import APIS, Api, ApiName

_QUIET = ("httpx2", "httpcore2", "uvicorn", "hpack")
"""Libraries that would log headers and URLs with keys."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of the server."""

    upstream: provider.Upstream
    answer_reviewer: AnswerReviewer
    host: str
    port: int
    connect_s: float
    read_timeout_s: float


def get_host_warning(host: str) -> str | None:
    """Return a warning for a host that is not the loopback; None for the loopback."""
    if host.lower() in {"localhost", "::1"} or host.startswith("127."):
        return None
    return (
        f"The proxy listens on {host}, where other machines reach it: it asks nobody who they "
        "are, and speaks no TLS, so that the keys of its clients cross the network in the "
        "clear. Put it behind something that does both, or use --host 127.0.0.1."
    )


def bind_proxy_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 selects a free port. Raises InputError."""
    try:
        return bind_socket(host, port)
    except (socket.gaierror, OverflowError) as error:
        raise InputError(f"--host {host} is not an address here: {error}. Try 127.0.0.1") from error
    except OSError as error:
        raise InputError(
            f"the proxy cannot listen on {host}:{port} ({error.strerror}). Choose another "
            "--port; 0 takes a free one"
        ) from error


def log_proxy_to(stream: TextIO) -> None:
    """Write the log of the proxy, without its libraries, to a stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    package_logger = logging.getLogger("ci_agent_eval.steering.proxy")
    package_logger.addHandler(handler)
    package_logger.setLevel(logging.INFO)


def silence_libraries() -> None:
    """Keep credentials out of the logs at any level."""
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)


class ProxyServer(uvicorn.Server):
    """A server that stores the signal that stopped it in `ended_by` and does not re-raise it."""

    ended_by: int | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's
        """Store the first signal and stop; a second one does not wait for open answers."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self.ended_by = self.ended_by or sig


def serve_proxy(options: ServeOptions, *, ready: Callable[[str], None]) -> int | None:
    """Serve until a signal and return it; call `ready` with the URL. Raises InputError."""
    with bind_proxy_socket(options.host, options.port) as listener:
        silence_libraries()
        url = get_url(listener)
        if url == options.upstream.origin:
            raise InputError("--upstream is the proxy's own address. Name the provider's")
        ready(url)
        return asyncio.run(_run_server(options, listener))


async def _run_server(options: ServeOptions, listener: socket.socket) -> int | None:
    client = provider.open_client(
        connect_s=options.connect_s, read_timeout_s=options.read_timeout_s
    )
    async with client:
        app = SteeringProxy(options.upstream, client, options.answer_reviewer)
        server = ProxyServer(build_server_config(app))
        await server.serve([listener])
    return server.ended_by


logger = logging.getLogger(__name__)

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


class ErrorResponse(NamedTuple):
    """An error response of the proxy itself."""

    status: int
    code: str
    message: str


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
        request, watched_send = ClientRequest(scope, receive), WatchedSend(send)
        async with cancel_when_disconnected(request):
            try:
                error_response = await self._answer_request(request, watched_send)
            except ClientDisconnected:
                return
            except Exception as error:  # noqa: BLE001 - a traceback would contain the request
                error_response = self._describe_error(error)
            if error_response is not None:
                logger.warning("%s", error_response.message)
            # If the answer has begun, only the connection is closed.
            if error_response is not None and not watched_send.has_begun:
                response = _build_response(error_response, request)
                await response(scope, receive, watched_send)

    async def _answer_request(
        self, request: ClientRequest, send: WatchedSend
    ) -> ErrorResponse | None:
        """Answer a request, unless it is refused with an error response."""
        if get_header(request.headers, b"upgrade").lower() == "websocket":
            return NO_WEBSOCKETS
        if not request.raw_path.startswith(b"/") and request.raw_path != b"*":
            return NO_FORWARDING
        api = find_api(request.method, request.path)
        if api is None:
            await self._pass_through(request, send)
        else:
            await self._review_answer(request, send, APIS[api])
        return None

    async def _pass_through(self, request: ClientRequest, send: WatchedSend) -> None:
        headers = build_upstream_headers(request.headers, plain=False)
        content = request.chunks() if request.has_body else None
        async with aclosing(await self._send_upstream(request, headers, content)) as response:
            await AnswerSender(response, send).pass_through()

    async def _review_answer(self, request: ClientRequest, send: WatchedSend, api: Api) -> None:
        """Pass on a request and review the calls in its answer."""
        body = await request.body(self.answer_reviewer.max_request_bytes)
        exchange = self.answer_reviewer.start_exchange(api, request.text_headers, body)
        headers = build_upstream_headers(request.headers, plain=True)
        async with AsyncExitStack() as responses:

            async def ask(body: bytes) -> AnswerSender:
                # The earlier answer is read as far as it is needed.
                await responses.aclose()
                response = await self._send_upstream(request, headers, body)
                await responses.enter_async_context(aclosing(response))
                return AnswerSender(response, send)

            out = await ask(exchange.body)
            if out.is_success:
                await exchange.send_answer(out, ask)
            else:
                await out.pass_through()

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

    def _describe_error(self, error: Exception) -> ErrorResponse:
        """Return the response for an error, without its text, which may contain the request."""
        name, origin = type(error).__name__, self.upstream.origin
        if isinstance(error, BodyTooLarge):
            limit = self.answer_reviewer.max_request_bytes
            return ErrorResponse(
                413,
                "request_too_large",
                f"The request is larger than the {limit} bytes this proxy takes. Send less, or "
                "start `agent-eval steer proxy` with a larger --max-request-bytes.",
            )
        if isinstance(error, provider.ProviderTimeout):
            return ErrorResponse(
                504,
                "upstream_timeout",
                f"{origin} did not answer this proxy in time ({name}). Try again, or start "
                "`agent-eval steer proxy` with a larger --timeout.",
            )
        if isinstance(error, provider.ProviderError):
            return ErrorResponse(
                502,
                "upstream_unreachable",
                f"This proxy got no whole answer from {origin} ({name}). Look at its --upstream, "
                "and whether the provider is up.",
            )
        return ErrorResponse(
            500,
            "proxy_error",
            f"This proxy failed on the request (unexpected {name}). This is a bug; go to the "
            "provider directly.",
        )


def _build_response(error: ErrorResponse, request: ClientRequest) -> Response:
    """Return an error in the format of the request's API."""
    is_anthropic = find_api(request.method, request.path) == "messages"
    default = "invalid_request_error" if error.status < 500 else "api_error"
    if is_anthropic or "anthropic-version" in request.text_headers:
        kind = {413: "request_too_large", 504: "timeout_error"}.get(error.status, default)
        body = build_anthropic_error(error.message, kind)
    else:
        kind = "server_error" if default == "api_error" else default
        body = build_openai_error(error.message, kind, error.code)
    return Response(render_compact_json(body), error.status, media_type="application/json")
