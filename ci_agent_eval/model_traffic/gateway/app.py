"""The gateway as an ASGI application: it records each request at its episode and forwards it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

import anyio
import httpx2

from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic import attribution
from ci_agent_eval.model_traffic.formats.json_values import render_compact_json
from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from ci_agent_eval.model_traffic.formats.registry import find_format, is_model_request
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
from ci_agent_eval.model_traffic.forwarding.upstream import (
    ProviderClient,
    ProviderError,
    ProviderResponse,
    decode_body,
    is_decodable,
    open_client,
    send_request,
)
from ci_agent_eval.model_traffic.gateway.aws_signing import find_region, sign_request
from ci_agent_eval.model_traffic.gateway.providers import ProviderRoute, build_routes
from ci_agent_eval.model_traffic.recorder import READER_STOPPED, ModelCall, TrafficRecorder
from ci_agent_eval.model_traffic.usage_option import (
    OPTION_ERRORS,
    UsageEventRemover,
    add_usage_option,
)

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MAX_REQUEST_BYTES = 64 * 1024 * 1024
"""Larger requests are refused."""

_CONNECT_S = 30.0
_READ_TIMEOUT_S = 900.0
"""Longer than that of any SDK: the agent's own timeout counts."""


@dataclass(eq=False)
class ServedEpisode:
    """An episode whose subprocesses use the gateway."""

    recorder: TrafficRecorder
    environ: Mapping[str, str] = field(repr=False)
    """The variables that its subprocesses would have without the gateway."""
    routes: Mapping[str, ProviderRoute] = field(init=False)
    _open_requests: dict[anyio.Event, anyio.CancelScope] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.routes = build_routes(self.environ)

    @contextmanager
    def track_request(self) -> Iterator[None]:
        """Let `cancel_requests` end the `with` block."""
        ended, scope = anyio.Event(), anyio.CancelScope()
        self._open_requests[ended] = scope
        try:
            with scope:
                yield
        finally:
            del self._open_requests[ended]
            ended.set()

    async def cancel_requests(self) -> None:
        """End all open requests, so that their records are complete."""
        open_requests = dict(self._open_requests)
        for scope in open_requests.values():
            scope.cancel()
        for ended in open_requests:
            await ended.wait()


@dataclass(slots=True)
class _Exchange:
    """One request of a subprocess, and the way its answer takes."""

    episode: ServedEpisode
    route: ProviderRoute
    path: bytes
    """The path below the provider's address."""
    request: ClientRequest
    send: WatchedSend


@dataclass(frozen=True, slots=True)
class _UpstreamTarget:
    """The place that a request is forwarded to."""

    origin: str
    path: bytes
    query: bytes

    @property
    def url(self) -> str:
        """The address without its query."""
        return self.origin + self.path.decode("latin-1")


class GatewayApp:
    """Records the requests of the served episodes and forwards them."""

    def __init__(self) -> None:
        self._episodes: dict[str, ServedEpisode] = {}
        self._client: ProviderClient | None = None

    def add_episode(self, episode: ServedEpisode) -> str:
        """Serve an episode; return the token of its address. From any thread."""
        token = secrets.token_urlsafe(16)
        self._episodes[token] = episode
        return token

    async def remove_episode(self, token: str) -> None:
        """Serve an episode no longer, and end its open requests."""
        await self._episodes.pop(token).cancel_requests()

    async def close(self) -> None:
        """Close the connections to providers."""
        if self._client is not None:
            await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; leaves the answer incomplete if the provider's is incomplete."""
        request = ClientRequest(scope, receive)
        exchange = self._find_exchange(request, send)
        if isinstance(exchange, HTTPAnswer):
            await AnswerSender(_build_response(exchange), send).pass_through()
            return
        with exchange.episode.track_request():
            async with cancel_when_disconnected(request):
                error = await self._answer(exchange)
                if error is not None and not exchange.send.has_begun:
                    await AnswerSender(_build_response(error), send).pass_through()

    def _find_exchange(self, request: ClientRequest, send: Send) -> _Exchange | HTTPAnswer:
        """Return the exchange of a request, or the refusal of an unknown address."""
        if get_header(request.headers, b"upgrade").lower() == "websocket":
            # Codex falls back to HTTP at this status, and tries others again for seconds.
            return _build_error_answer(
                426, "The gateway carries no WebSockets. Use the API over HTTP"
            )
        match request.raw_path.split(b"/", 4):
            case [b"", b"e", token, provider, *rest]:
                episode = self._episodes.get(token.decode("latin-1"))
                routes = {} if episode is None else episode.routes
                route = routes.get(provider.decode("latin-1"))
                if episode is not None and route is not None:
                    path = b"/" + b"".join(rest)
                    return _Exchange(episode, route, path, request, WatchedSend(send))
        return _build_error_answer(
            404,
            "This address belongs to no running episode: the episode has ended, or the address "
            "is incomplete. Use the base-URL variables that the running test passes",
        )

    async def _answer(self, exchange: _Exchange) -> HTTPAnswer | None:
        """Answer a request; return an error response if that failed."""
        try:
            await self._answer_or_raise(exchange)
        except ClientDisconnected:
            return None
        except BodyTooLarge:
            return _build_error_answer(413, f"The request is larger than {MAX_REQUEST_BYTES} bytes")
        except InputError as error:
            return _build_error_answer(400, str(error))
        except ProviderError as error:
            return _build_error_answer(HTTPStatus.BAD_GATEWAY, _describe_provider_error(error))
        except Exception as error:  # noqa: BLE001 - a traceback would contain the request
            return _build_error_answer(500, f"The gateway failed ({type(error).__name__}): a bug")
        return None

    async def _answer_or_raise(self, exchange: _Exchange) -> None:
        request = exchange.request
        body = await request.body(MAX_REQUEST_BYTES)
        region = find_region(request.headers)
        upstream, path = exchange.route.find_upstream(exchange.path, region)
        target = _UpstreamTarget(upstream.origin, upstream.prefix + path, request.query)
        message_format = find_format(request.method, target.url)
        plain_body = b"" if message_format is None else _decode_request(request.headers, body)
        if message_format is not None and is_model_request(message_format, plain_body):
            # The process may belong to an agent that runs within the episode.
            recorder = attribution.find_innermost(exchange.episode.recorder)
            call = recorder.start_call(message_format, target.url, plain_body)
            await self._answer_call(exchange, call, target, body)
        elif exchange.episode.recorder.is_replay:
            raise InputError(
                f"In replay the gateway answers only model calls: {request.method} "
                f"{target.path.decode('latin-1')} is none that it can read"
            )
        else:
            headers = build_upstream_headers(request.headers, plain=False)
            response = await self._send_upstream(exchange, target, headers, body)
            async with aclosing(response):
                await AnswerSender(response, exchange.send).pass_through()

    async def _answer_call(
        self, exchange: _Exchange, call: ModelCall, target: _UpstreamTarget, body: bytes
    ) -> None:
        """Forward a model call, unless the recorder has an answer."""
        error: str | None = READER_STOPPED
        try:
            await self._send_answer(exchange, call, target, body)
            error = None
        except ProviderError as problem:
            error = _describe_provider_error(problem)
            raise
        except InputError as problem:
            error = str(problem)
            raise
        finally:
            call.end(error)

    async def _send_answer(
        self, exchange: _Exchange, call: ModelCall, target: _UpstreamTarget, body: bytes
    ) -> None:
        with_usage = add_usage_option(body) if call.format.name == "openai-chat" else None
        answer = await _decide(call)
        if answer is not None:
            response = _build_response(answer)
        else:
            response = await self._send_call(exchange, target, body, with_usage)
        async with aclosing(response):
            out = AnswerSender(response, exchange.send)
            if call.state != "refused":
                call.set_response(response.status_code, dict(response.headers.multi_items()))
            if not out.is_readable:
                call.end("its content coding cannot be decoded")
                await out.pass_through()
                return
            hides_usage = with_usage is not None and out.content_type == "text/event-stream"
            await out.send_rewritten(
                _CallFeeder(call, UsageEventRemover() if hides_usage else None)
            )

    async def _send_call(
        self, exchange: _Exchange, target: _UpstreamTarget, body: bytes, with_usage: bytes | None
    ) -> ProviderResponse:
        """Forward a model call, with the request for usage if the provider knows it."""
        headers = build_upstream_headers(exchange.request.headers, plain=True)
        if with_usage is not None:
            response = await self._send_upstream(exchange, target, headers, with_usage)
            if response.status_code not in OPTION_ERRORS:
                return response
            if b"stream_options" not in await response.aread():
                return response
        return await self._send_upstream(exchange, target, headers, body)

    async def _send_upstream(
        self, exchange: _Exchange, target: _UpstreamTarget, headers: Headers, body: bytes
    ) -> ProviderResponse:
        method, environ = exchange.request.method, exchange.episode.environ
        if exchange.route.provider.name == "bedrock":
            # In a thread: credentials may come from a file, a program or the network.
            headers = await anyio.to_thread.run_sync(
                sign_request, method, target.url, headers, body, environ
            )
        query = b"?" + target.query if target.query else b""
        if self._client is None:
            self._client = open_client(connect_s=_CONNECT_S, read_timeout_s=_READ_TIMEOUT_S)
        return await send_request(
            self._client,
            target.origin,
            method,
            target.path + query,
            headers=headers,
            content=body if exchange.request.has_body else None,
        )


@dataclass(frozen=True, slots=True)
class _CallFeeder:
    """Records the bytes of an answer before they are sent."""

    call: ModelCall
    remover: UsageEventRemover | None

    def feed(self, chunk: bytes) -> bytes:
        if self.call.state != "refused":
            self.call.feed(chunk)
        return chunk if self.remover is None else self.remover.feed(chunk)

    def finish(self) -> bytes:
        self.call.end()
        return b"" if self.remover is None else self.remover.finish()


async def _decide(call: ModelCall) -> HTTPAnswer | None:
    """Return the recorder's own answer, after waiting as long as it says."""
    decision = call.decide()
    while decision.wait_s > 0:
        await anyio.sleep(decision.wait_s)
        decision = call.decide()
    return decision.answer


def _build_response(answer: HTTPAnswer) -> ProviderResponse:
    """Return an answer of the recorder in the form of a provider's."""

    async def iterate() -> AsyncIterator[bytes]:
        for chunk in answer.chunks:
            yield chunk

    return httpx2.Response(answer.status, headers=dict(answer.headers), content=iterate())


def _build_error_answer(status: int, message: str) -> HTTPAnswer:
    """Build an error that the clients of all formats can show, for a request of any.

    They may send a request again only after a failure of the provider (502).
    """
    error = {"type": "invalid_request_error", "message": message, "param": None, "code": "gateway"}
    body = {"type": "error", "error": error, "message": message}
    retried = {} if status == HTTPStatus.BAD_GATEWAY else {"x-should-retry": "false"}
    headers = {"content-type": "application/json", **retried}
    return HTTPAnswer(status, headers, (render_compact_json(body),))


def _decode_request(headers: Headers, body: bytes) -> bytes:
    """Return a request's body as JSON; some clients compress it."""
    coding = get_header(headers, b"content-encoding")
    return b"".join(decode_body(body, coding)) if is_decodable(coding) else body


def _describe_provider_error(error: ProviderError) -> str:
    return f"the provider gave no complete answer ({type(error).__name__}: {error})"
