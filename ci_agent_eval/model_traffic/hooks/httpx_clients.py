"""httpx and httpx2: each request of a client, above its transport, redirects and retries apart."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from datetime import timedelta
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

from ci_agent_eval.model_traffic.attribution import suspend_recording
from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from ci_agent_eval.model_traffic.hooks.calls import (
    ask_for_plain_answer,
    end_on_error,
    find_target,
    start_answer,
    wait_for_answer,
    wait_for_answer_async,
)
from ci_agent_eval.model_traffic.hooks.patches import Method, Patch
from ci_agent_eval.model_traffic.recorder import READER_STOPPED, ModelCall
from ci_agent_eval.model_traffic.usage_option import (
    OPTION_ERRORS,
    UsageEventRemover,
    add_usage_option,
)


def list_patches(library: ModuleType) -> Sequence[Patch]:
    """Return the patches of httpx or httpx2."""
    return (
        Patch(library.Client, "_send_single_request", partial(_wrap, library)),
        Patch(library.AsyncClient, "_send_single_request", partial(_wrap_async, library)),
    )


def _wrap(library: ModuleType, original: Method) -> Method:
    stream_class = _derive(_RecordedSyncStream, library.SyncByteStream)

    def send(client: Any, request: Any) -> Any:
        target = find_target(request.method, str(request.url))
        call = None if target is None else target.start(request.read())
        if call is None:
            return original(client, request)
        with end_on_error(call):
            with_usage, plain = _build_requests(library, call, request)
            answer = wait_for_answer(call)
            if answer is not None:
                response = _build_response(library, answer)
            else:
                with suspend_recording():  # a client below may be watched too
                    response = original(client, with_usage or plain)
                    if _is_doubtful(with_usage, response) and _OPTION in response.read():
                        response = original(client, plain)
            response.request = request
            return _watch(stream_class, call, response, hides_usage=with_usage is not None)

    return send


def _wrap_async(library: ModuleType, original: Method) -> Method:
    stream_class = _derive(_RecordedAsyncStream, library.AsyncByteStream)

    async def send(client: Any, request: Any) -> Any:
        target = find_target(request.method, str(request.url))
        call = None if target is None else target.start(await request.aread())
        if call is None:
            return await original(client, request)
        with end_on_error(call):
            with_usage, plain = _build_requests(library, call, request)
            answer = await wait_for_answer_async(call)
            if answer is not None:
                response = _build_response(library, answer)
            else:
                with suspend_recording():  # a client below may be watched too
                    response = await original(client, with_usage or plain)
                    if _is_doubtful(with_usage, response) and _OPTION in await response.aread():
                        response = await original(client, plain)
            response.request = request
            return _watch(stream_class, call, response, hides_usage=with_usage is not None)

    return send


_OPTION = b"stream_options"
"""Part of an answer that refuses the demand for usage."""


def _is_doubtful(with_usage: Any, response: Any) -> bool:
    return with_usage is not None and response.status_code in OPTION_ERRORS


def _build_requests(library: ModuleType, call: ModelCall, request: Any) -> tuple[Any, Any]:
    """Return the request with the demand for usage, if its stream lacks it, and without it."""
    headers = ask_for_plain_answer(request.headers)
    headers.pop("content-length", None)
    body = add_usage_option(call.body) if call.format.name == "openai-chat" else None
    with_usage, plain = (
        library.Request(
            request.method,
            request.url,
            headers=headers,
            content=content,
            extensions=request.extensions,
        )
        for content in (body, request.content)
    )
    return (None if body is None else with_usage), plain


def _build_response(library: ModuleType, answer: HTTPAnswer) -> Any:
    """Build the response that the client would have returned for our answer."""
    stream = _derive(_AnswerChunks, library.SyncByteStream, library.AsyncByteStream)
    response = library.Response(
        answer.status,
        headers=dict(answer.headers),
        stream=stream(answer.chunks),
    )
    response.elapsed = timedelta()
    return response


def _watch(stream_class: Any, call: ModelCall, response: Any, *, hides_usage: bool) -> Any:
    """Record the answer while it is read; a refusal is already recorded."""
    if call.state != "open":
        return response
    if response.is_stream_consumed:
        call.set_response(response.status_code, response.headers)
        call.feed(response.content)
        call.end()
        return response
    start_answer(call, response.status_code, response.headers)
    remover = UsageEventRemover() if hides_usage and call.state == "open" else None
    response.stream = stream_class(response.stream, call, remover)
    return response


class _RecordedStream:
    """The stream of an answer; the classes for a library inherit from its own, too."""

    def __init__(self, stream: Any, call: ModelCall, remover: UsageEventRemover | None) -> None:
        self._stream = stream
        self._call = call
        self._remover = remover

    def _pass_on(self, chunk: bytes) -> bytes:
        """Record a chunk; return the part of it that the client has asked for."""
        self._call.feed(chunk)
        return chunk if self._remover is None else self._remover.feed(chunk)

    def _end(self) -> bytes:
        self._call.end()
        return b"" if self._remover is None else self._remover.finish()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _RecordedSyncStream(_RecordedStream):
    def __iter__(self) -> Iterator[bytes]:
        with end_on_error(self._call):
            for chunk in self._stream:
                if passed := self._pass_on(chunk):
                    yield passed
        if passed := self._end():
            yield passed

    def close(self) -> None:
        self._call.end(READER_STOPPED)
        self._stream.close()


class _RecordedAsyncStream(_RecordedStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream = self._stream.__aiter__()
        try:
            with end_on_error(self._call):
                async for chunk in stream:
                    if passed := self._pass_on(chunk):
                        yield passed
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        if passed := self._end():
            yield passed

    async def aclose(self) -> None:
        self._call.end(READER_STOPPED)
        await self._stream.aclose()


class _AnswerChunks:
    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


@lru_cache
def _derive(mixin: type, *bases: type) -> Any:
    """Return the class of a library's stream that is recorded, or that is our answer."""
    return type(mixin.__name__, (mixin, *bases), {})
