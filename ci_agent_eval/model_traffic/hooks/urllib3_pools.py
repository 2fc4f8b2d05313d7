"""urllib3, and so requests and botocore: each attempt of a connection pool."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from functools import lru_cache
from http import HTTPStatus
from types import ModuleType
from typing import Any

from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from ci_agent_eval.model_traffic.hooks.calls import (
    ask_for_plain_answer,
    end_on_error,
    find_target,
    start_answer,
    wait_for_answer,
)
from ci_agent_eval.model_traffic.hooks.patches import Method, Patch
from ci_agent_eval.model_traffic.recorder import READER_STOPPED, ModelCall

# `urlopen` calls itself for a retry or a redirect, with the same patch: each of its calls is one
# attempt, whose call waits here for `_make_request`.
_attempt: ContextVar[ModelCall | None] = ContextVar("model_traffic_urllib3_attempt", default=None)


def list_patches(library: ModuleType) -> Sequence[Patch]:
    """Return the patches of urllib3, version 2 or newer."""
    library.BaseHTTPResponse  # noqa: B018 - of 1.26 this raises, as its responses cannot be watched

    def wrap(original: Method) -> Method:
        def urlopen(
            pool: Any, method: str, url: str, body: Any = None, *args: Any, **kw: Any
        ) -> Any:
            target = find_target(method, _build_address(pool, url))
            if target is None:
                return original(pool, method, url, body, *args, **kw)
            body = _read_iterable(body)
            call = target.start(_read_body(body))
            if call is None:
                return original(pool, method, url, body, *args, **kw)
            with end_on_error(call):
                answer = wait_for_answer(call)
                if answer is not None:
                    return _watch(call, _build_response(library, method, url, answer, kw))
                if "headers" in kw:  # else http.client asks for a plain answer itself
                    kw["headers"] = ask_for_plain_answer(kw["headers"] or pool.headers)
                token = _attempt.set(call)
                try:
                    return original(pool, method, url, body, *args, **kw)
                finally:
                    _attempt.reset(token)

        return urlopen

    def wrap_attempt(original: Method) -> Method:
        def make_request(pool: Any, *args: Any, **kw: Any) -> Any:
            call = _attempt.get()
            if call is None:
                return original(pool, *args, **kw)
            with end_on_error(call):
                return _watch(call, original(pool, *args, **kw))

        return make_request

    pool_class = library.HTTPConnectionPool
    return Patch(pool_class, "urlopen", wrap), Patch(pool_class, "_make_request", wrap_attempt)


def _build_address(pool: Any, url: str) -> str:
    return f"{pool.scheme}://{pool.host}:{pool.port}{url}" if url.startswith("/") else url


def _read_iterable(body: Any) -> Any:
    """Return a body that can be read twice: the parts of an iterable, joined."""
    if body is None or isinstance(body, str | bytes | bytearray | memoryview):
        return body
    if hasattr(body, "read"):
        return body
    parts: Iterable[str | bytes] = body
    return b"".join(part.encode() if isinstance(part, str) else part for part in parts)


def _read_body(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if not hasattr(body, "read"):
        return bytes(body)
    start = body.tell()
    content = body.read()
    body.seek(start)
    return content.encode() if isinstance(content, str) else bytes(content)


class _AnswerBody(io.BytesIO):
    """The body of our answer, which closes at its end as a socket's does."""

    def isclosed(self) -> bool:
        """Return whether nothing is left; urllib3 asks for it by this name."""
        return self.closed or self.tell() == self.getbuffer().nbytes


def _build_response(
    library: ModuleType, method: str, url: str, answer: HTTPAnswer, options: dict[str, Any]
) -> Any:
    """Build the response that the pool would have returned for our answer."""
    response = library.HTTPResponse(
        _AnswerBody(b"".join(answer.chunks)),
        headers=dict(answer.headers),
        status=answer.status,
        version=11,
        reason=_find_reason(answer.status),
        preload_content=options.get("preload_content", True),
        decode_content=options.get("decode_content", True),
        request_method=method,
        request_url=url,
    )
    response.version_string = "HTTP/1.1"  # an argument only since 2.1
    return response


def _find_reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _watch(call: ModelCall, response: Any) -> Any:
    """Record the answer while it is read; a refusal is already recorded."""
    if call.state != "open":
        return response
    if vars(response).get("_body") is not None or not hasattr(response, "_raw_read"):
        call.set_response(response.status, response.headers)
        call.feed(response.data)
        call.end()
    else:
        start_answer(call, response.status, response.headers)
        # Not methods on the instance: they would make a cycle, and delay the closing of sockets.
        response.__class__ = _create_response_class(response.__class__)
        response.model_call = call
    return response


@lru_cache
def _create_response_class(base: Any) -> Any:
    class RecordedHTTPResponse(base):  # type: ignore[misc]  # any version
        model_call: ModelCall
        is_reading_length = False

        def _raw_read(self, *args: Any, **kw: Any) -> bytes:
            with end_on_error(self.model_call):
                chunk: bytes = super()._raw_read(*args, **kw)
            self.model_call.feed(chunk)
            if self.isclosed():
                self.model_call.end()
            return chunk

        def _handle_chunk(self, amt: int | None) -> bytes:
            with end_on_error(self.model_call):
                chunk: bytes = super()._handle_chunk(amt)
            self.model_call.feed(chunk)
            return chunk

        def _update_chunk_length(self) -> None:
            self.is_reading_length = True  # urllib3 closes itself before it raises
            with end_on_error(self.model_call):
                super()._update_chunk_length()
            self.is_reading_length = False
            if self.chunk_left == 0:
                self.model_call.end()

        def close(self) -> None:
            if not self.is_reading_length:
                self.model_call.end(READER_STOPPED)
            super().close()

    return RecordedHTTPResponse
