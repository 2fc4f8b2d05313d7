"""The gateway as an ASGI application: it records each request at its episode and forwards it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
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

_NO_WEBSOCKETS = "The gateway carries no WebSockets. Use the API over HTTP"
_NO_EPISODE = (
    "This address belongs to no running episode: the episode has ended, or the address "
    "is incomplete. Use the base-URL variables that the running test passes"
)


class _RefusedAddressError(Exception):
    """Raised for an address that the gateway does not serve."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(eq=False)
class ServedEpisode:
    """An episode whose subprocesses use the gateway."""

    recorder: TrafficRecorder
    environ: Mapping[str, str] = field(repr=False)
    """The variables that its subprocesses would have without the gateway."""
    routes: Mapping[str, ProviderRoute] = field(init=False)
    requests: set[asyncio.Task[object]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.routes = build_routes(self.environ)


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One request of a subprocess, and the place that it is forwarded to."""

    episode: ServedEpisode
    route: ProviderRoute
    request: ClientRequest
    origin: str
    path: bytes

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
        """Serve an episode no longer, and end its open requests, so that their records end."""
        requests = set(self._episodes.pop(token).requests)
        for task in requests:
            task.cancel()
        if requests:
            await asyncio.wait(requests)

    async def close(self) -> None:
        """Close the connections to providers."""
        if self._client is not None:
            await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; leaves the answer incomplete if the provider's is incomplete."""
        request, watched = ClientRequest(scope, receive), WatchedSend(send)
        async with cancel_when_disconnected(request):
            try:
                await self._answer(request, watched)
            except ClientDisconnected:
                pass
            except Exception as error:  # noqa: BLE001 - a traceback would contain the request
                if not watched.has_begun:
                    answer = _build_response(_build_error_answer(error))
                    await AnswerSender(answer, watched).pass_through()

    async def _answer(self, request: ClientRequest, send: WatchedSend) -> None:
        episode, route, path = self._find_route(request)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine of asyncio
        episode.requests.add(task)
        try:
            body = await request.body(MAX_REQUEST_BYTES)
            upstream, path = route.find_upstream(path, find_region(request.headers))
            exchange = _Exchange(episode, route, request, upstream.origin, upstream.prefix + path)
            call = _start_call(exchange, body)
            if call is not None:
                await self._answer_call(exchange, call, body, send)
                return
            headers = build_upstream_headers(request.headers, plain=False)
            async with aclosing(await self._ask(exchange, headers, body)) as response:
                await AnswerSender(response, send).pass_through()
        finally:
            episode.requests.discard(task)

    def _find_route(self, request: ClientRequest) -> tuple[ServedEpisode, ProviderRoute, bytes]:
        """Return the episode of a request, its provider, and the path below that address."""
        if get_header(request.headers, b"upgrade").lower() == "websocket":
            # Codex falls back to HTTP at this status, and tries others again for seconds.
            raise _RefusedAddressError(HTTPStatus.UPGRADE_REQUIRED, _NO_WEBSOCKETS)
        match request.raw_path.decode("latin-1").split("/", 4):
            case ["", "e", token, provider, *path] if token in self._episodes:
                episode = self._episodes[token]
                if provider in episode.routes:
                    return episode, episode.routes[provider], f"/{''.join(path)}".encode("latin-1")
        raise _RefusedAddressError(HTTPStatus.NOT_FOUND, _NO_EPISODE)

    async def _answer_call(
        self, exchange: _Exchange, call: ModelCall, body: bytes, send: WatchedSend
    ) -> None:
        """Forward a model call, unless the recorder has an answer."""
        error: str | None = READER_STOPPED
        try:
            with_usage = add_usage_option(body) if call.format.name == "openai-chat" else None
            async with aclosing(
                await self._find_answer(exchange, call, body, with_usage)
            ) as answer:
                await _send_recorded(call, AnswerSender(answer, send), answer, with_usage)
            error = None
        except (InputError, ProviderError) as problem:
            error = _describe_error(problem)[1]
            raise
        finally:
            call.end(error)

    async def _find_answer(
        self, exchange: _Exchange, call: ModelCall, body: bytes, with_usage: bytes | None
    ) -> ProviderResponse:
        """Return the recorder's answer, else the provider's, with usage if it knows the option."""
        decision = call.decide()
        while decision.wait_s > 0:
            await anyio.sleep(decision.wait_s)
            decision = call.decide()
        if decision.answer is not None:
            return _build_response(decision.answer)
        headers = build_upstream_headers(exchange.request.headers, plain=True)
        if with_usage is not None:
            response = await self._ask(exchange, headers, with_usage)
            if response.status_code not in OPTION_ERRORS:
                return response
            if b"stream_options" not in await response.aread():
                return response
        return await self._ask(exchange, headers, body)

    async def _ask(self, exchange: _Exchange, headers: Headers, body: bytes) -> ProviderResponse:
        """Send a request to the provider. Raises ProviderError."""
        request = exchange.request
        if exchange.route.provider.name == "bedrock":
            # In a thread: credentials may come from a file, a program or the network.
            headers = await anyio.to_thread.run_sync(
                sign_request, request.method, exchange.url, headers, body, exchange.episode.environ
            )
        if self._client is None:
            self._client = open_client(connect_s=_CONNECT_S, read_timeout_s=_READ_TIMEOUT_S)
        return await send_request(
            self._client,
            exchange.origin,
            request.method,
            exchange.path + (b"?" + request.query if request.query else b""),
            headers=headers,
            content=body if request.has_body else None,
        )


def _start_call(exchange: _Exchange, body: bytes) -> ModelCall | None:
    """Record a request that is a model call; None for another one. In replay that is refused."""
    method, headers = exchange.request.method, exchange.request.headers
    message_format, recorder = find_format(method, exchange.url), exchange.episode.recorder
    if message_format is not None:
        coding = get_header(headers, b"content-encoding")  # some clients compress it
        plain = b"".join(decode_body(body, coding)) if is_decodable(coding) else body
        if is_model_request(message_format, plain):
            # The process may belong to an agent that runs within the episode.
            innermost = attribution.find_innermost(recorder)
            return innermost.start_call(message_format, exchange.url, plain)
    if recorder.is_replay:
        raise InputError(
            f"In replay the gateway answers only model calls: {method} "
            f"{exchange.path.decode('latin-1')} is none that it can read"
        )
    return None


async def _send_recorded(
    call: ModelCall, out: AnswerSender, response: ProviderResponse, with_usage: bytes | None
) -> None:
    """Send an answer to the client, and record its bytes before; a refusal is recorded already."""
    is_recorded = call.state != "refused"
    if is_recorded:
        call.set_response(response.status_code, dict(response.headers.multi_items()))
    if not out.is_readable:
        call.end("its content coding cannot be decoded")
        await out.pass_through()
        return
    is_stream = out.content_type == "text/event-stream"
    remover = UsageEventRemover() if with_usage is not None and is_stream else None
    await out.start_stream()
    async for chunk in out.iterate_body():
        if is_recorded:
            call.feed(chunk)
        await out.send_part(chunk if remover is None else remover.feed(chunk))
    call.end()
    if remover is not None:
        await out.send_part(remover.finish())
    await out.end_stream()


def _build_response(answer: HTTPAnswer) -> ProviderResponse:
    """Return an answer of the recorder in the form of a provider's."""

    async def iterate() -> AsyncIterator[bytes]:
        for chunk in answer.chunks:
            yield chunk

    return httpx2.Response(answer.status, headers=dict(answer.headers), content=iterate())


def _build_error_answer(problem: Exception) -> HTTPAnswer:
    """Build an error that the clients of all formats can show, for a request of any.

    They may send a request again only after a failure of the provider (502).
    """
    status, message = _describe_error(problem)
    error = {"type": "invalid_request_error", "message": message, "param": None, "code": "gateway"}
    body = {"type": "error", "error": error, "message": message}
    retried = {} if status == HTTPStatus.BAD_GATEWAY else {"x-should-retry": "false"}
    headers = {"content-type": "application/json", **retried}
    return HTTPAnswer(status, headers, (render_compact_json(body),))


def _describe_error(error: Exception) -> tuple[int, str]:
    """Return the status and the message of an error answer."""
    match error:
        case _RefusedAddressError():
            return error.status, str(error)
        case BodyTooLarge():
            return 413, f"The request is larger than {MAX_REQUEST_BYTES} bytes"
        case InputError():
            return 400, str(error)
        case httpx2.HTTPError():
            name = type(error).__name__
            return 502, f"the provider gave no complete answer ({name}: {error})"
    return 500, f"The gateway failed ({type(error).__name__}): a bug"
