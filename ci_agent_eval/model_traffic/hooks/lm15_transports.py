"""lm15, the client inside DSPy: each request of its transports, which are built on sockets."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from ci_agent_eval.model_traffic.hooks.calls import (
    end_on_error,
    find_target,
    start_answer,
    wait_for_answer,
    wait_for_answer_async,
)
from ci_agent_eval.model_traffic.hooks.patches import Method, Patch
from ci_agent_eval.model_traffic.recorder import ModelCall


def list_patches(library: ModuleType) -> Sequence[Patch]:
    """Return the patches of lm15's transports."""

    def wrap(original: Method) -> Method:
        def stream(transport: Any, request: Any) -> Any:
            if (call := _start_call(request)) is None:
                return original(transport, request)
            with end_on_error(call):
                answer = wait_for_answer(call)
                if answer is not None:
                    kind, chunks = library.TransportResponse, iter(answer.chunks)
                    response = _build_response(kind, answer, chunks, lambda _: None)
                else:
                    response = original(transport, request)
                return _watch(call, response, _record)

        return stream

    def wrap_async(original: Method) -> Method:
        async def stream(transport: Any, request: Any) -> Any:
            if (call := _start_call(request)) is None:
                return await original(transport, request)
            with end_on_error(call):
                answer = await wait_for_answer_async(call)
                if answer is not None:
                    kind, chunks = library.AsyncTransportResponse, _iterate(answer.chunks)
                    response = _build_response(kind, answer, chunks, _release_nothing_async)
                else:
                    response = await original(transport, request)
                return _watch(call, response, _record_async)

        return stream

    return (
        Patch(library.StdlibTransport, "stream", wrap),
        Patch(library.StdlibAsyncTransport, "_do_stream", wrap_async),
    )


def _start_call(request: Any) -> ModelCall | None:
    target = find_target(request.method, request.url)
    return None if target is None else target.start(request.body)


def _build_response(kind: Any, answer: HTTPAnswer, chunks: Any, release: Any) -> Any:
    return kind(
        status=answer.status,
        reason="",
        headers=list(answer.headers.items()),
        http_version="HTTP/1.1",
        chunks=chunks,
        release=release,
    )


async def _release_nothing_async(_: bool) -> None:
    pass


async def _iterate(chunks: Sequence[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def _watch(call: ModelCall, response: Any, record: Callable[[ModelCall, Any], Any]) -> Any:
    """Return the response, recorded while it is read; a refusal is already recorded."""
    if call.state == "open":
        headers = {name.lower(): value for name, value in response.headers}
        start_answer(call, response.status, headers)
        response._chunks = record(call, response._chunks)  # noqa: SLF001 - its only source of bytes
    return response


def _record(call: ModelCall, chunks: Iterable[bytes]) -> Iterator[bytes]:
    with end_on_error(call):
        for chunk in chunks:
            call.feed(chunk)
            yield chunk
    call.end()


async def _record_async(call: ModelCall, chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    with end_on_error(call):
        async for chunk in chunks:
            call.feed(chunk)
            yield chunk
    call.end()
