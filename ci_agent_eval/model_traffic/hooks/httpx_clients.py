"""httpx and httpx2: each request of a client, above its transport, redirects and retries apart."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

from ci_agent_eval.model_traffic.attribution import suspend_recording
from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from ci_agent_eval.model_traffic.hooks.calls import (
    AnswerTee,
    end_on_error,
    find_target,
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
    sync_stream = _derive(_RecordedSyncStream, library.SyncByteStream)
    async_stream = _derive(_RecordedAsyncStream, library.AsyncByteStream)

    def wrap(original: Method) -> Method:
        def send(client: Any, request: Any) -> Any:
            target = find_target(request.method, str(request.url))
            call = None if target is None else target.start(request.read())
            if call is None:
                return original(client, request)
            with end_on_error(call):
                answer = wait_for_answer(call)
                sent = _ask_for_usage(library, call, request)
                with suspend_recording():  # a client below may be watched too
                    response = original(_choose_client(library, client, answer), sent)
                    if _may_lack_option(sent, request, response) and _OPTION in response.read():
                        response = original(client, request)
                response.request = request
                return _watch(sync_stream, call, response, hides_usage=sent is not request)

        return send

    def wrap_async(original: Method) -> Method:
        async def send(client: Any, request: Any) -> Any:
            target = find_target(request.method, str(request.url))
            call = None if target is None else target.start(await request.aread())
            if call is None:
                return await original(client, request)
            with end_on_error(call):
                answer = await wait_for_answer_async(call)
                sent = _ask_for_usage(library, call, request)
                with suspend_recording():  # a client below may be watched too
                    response = await original(_choose_client(library, client, answer), sent)
                    is_doubtful = _may_lack_option(sent, request, response)
                    if is_doubtful and _OPTION in await response.aread():
                        response = await original(client, request)
                response.request = request
                return _watch(async_stream, call, response, hides_usage=sent is not request)

        return send

    return (
        Patch(library.Client, "_send_single_request", wrap),
        Patch(library.AsyncClient, "_send_single_request", wrap_async),
    )


_OPTION = b"stream_options"


def _ask_for_usage(library: ModuleType, call: ModelCall, request: Any) -> Any:
    """Return a request for a stream with the demand for usage, which clients may leave out."""
    body = add_usage_option(call.body) if call.format.name == "openai-chat" else None
    if body is None:
        return request
    headers = request.headers.copy()
    # The event of the usage can be taken out of a plain answer only.
    headers.update({"content-length": str(len(body)), "accept-encoding": "identity"})
    return library.Request(
        request.method, request.url, headers=headers, content=body, extensions=request.extensions
    )


def _may_lack_option(sent: Any, request: Any, response: Any) -> bool:
    """Say whether the provider may have refused the option, which its answer then names."""
    return sent is not request and response.status_code in OPTION_ERRORS


def _watch(stream_class: Any, call: ModelCall, response: Any, *, hides_usage: bool) -> Any:
    """Record the answer while it is read; a refusal is already recorded."""
    if call.state != "open":
        return response
    is_read = response.is_stream_consumed
    tee = AnswerTee(call, response.status_code, response.headers, is_decoded=is_read)
    if is_read:
        tee.feed(response.content)
        tee.end()
        return response
    is_plain = not response.headers.get("content-encoding")
    remover = UsageEventRemover() if hides_usage and is_plain else None
    response.stream = stream_class(response.stream, tee, remover)
    return response


def _choose_client(library: ModuleType, client: Any, answer: HTTPAnswer | None) -> Any:
    return client if answer is None else _AnsweringClient(library, client, answer)


class _AnsweringClient:
    """A client that returns our answer, and is otherwise like the real one."""

    def __init__(self, library: ModuleType, client: Any, answer: HTTPAnswer) -> None:
        self._client = client
        stream = _derive(_AnswerChunks, library.SyncByteStream, library.AsyncByteStream)
        response = library.Response(
            answer.status, headers=dict(answer.headers), stream=stream(answer.chunks)
        )
        self._transport = library.MockTransport(lambda _: response)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _transport_for_url(self, _: Any) -> Any:
        return self._transport


class _RecordedStream:
    """The stream of an answer; the classes for a library inherit from its own, too."""

    def __init__(self, stream: Any, tee: AnswerTee, remover: UsageEventRemover | None) -> None:
        self._stream = stream
        self._tee = tee
        self._remover = remover

    def _pass_on(self, chunk: bytes) -> bytes:
        """Record a chunk; return the part of it that the client has asked for."""
        self._tee.feed(chunk)
        return chunk if self._remover is None else self._remover.feed(chunk)

    def _end(self) -> bytes:
        self._tee.end()
        return b"" if self._remover is None else self._remover.finish()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _RecordedSyncStream(_RecordedStream):
    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._stream:
                if passed := self._pass_on(chunk):
                    yield passed
        except BaseException as error:
            self._tee.fail(error)
            raise
        if passed := self._end():
            yield passed

    def close(self) -> None:
        self._tee.end(READER_STOPPED)
        self._stream.close()


class _RecordedAsyncStream(_RecordedStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream = self._stream.__aiter__()
        try:
            async for chunk in stream:
                if passed := self._pass_on(chunk):
                    yield passed
        except BaseException as error:
            self._tee.fail(error)
            raise
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        if passed := self._end():
            yield passed

    async def aclose(self) -> None:
        self._tee.end(READER_STOPPED)
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
