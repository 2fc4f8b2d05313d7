"""aiohttp: each request of a session; its redirects belong to the one call."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial
from http import HTTPStatus
from types import ModuleType
from typing import Any

from ci_agent_eval.model_traffic.attribution import suspend_recording
from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from ci_agent_eval.model_traffic.hooks.calls import (
    describe_call_error,
    end_on_error,
    find_target,
    start_answer,
    wait_for_answer_async,
)
from ci_agent_eval.model_traffic.hooks.patches import Method, Patch
from ci_agent_eval.model_traffic.recorder import READER_STOPPED, ModelCall


def list_patches(library: ModuleType) -> Sequence[Patch]:
    """Return the patches of aiohttp."""

    def wrap(original: Method) -> Method:
        async def request(session: Any, method: str, str_or_url: Any, **options: Any) -> Any:
            url = session._build_url(str_or_url)  # noqa: SLF001 - joins the session's base address
            target = find_target(method, str(url))
            if target is None:
                return await original(session, method, str_or_url, **options)
            _serialize_json(library, session, options)
            call = target.start(_read_body(options.get("data")))
            if call is None:
                return await original(session, method, str_or_url, **options)
            try:
                answer = await wait_for_answer_async(call)
                if answer is not None:
                    session = _AnsweringSession(library, session, answer)
                with suspend_recording():  # a client below may be watched too
                    response = await original(session, method, str_or_url, **options)
            except BaseException as error:
                if isinstance(error, library.ClientResponseError) and call.state == "open":
                    call.set_response(error.status, error.headers or {})  # raise_for_status=True
                call.end(describe_call_error(error))
                raise
            # aiohttp decodes the body below the reader; a session or a request can turn that off.
            is_decoded = options.get("auto_decompress")
            if is_decoded is None:
                is_decoded = getattr(session, "_auto_decompress", True)
            return _watch(call, response, is_decoded=is_decoded)

        return request

    return (Patch(library.ClientSession, "_request", wrap),)


def _serialize_json(library: ModuleType, session: Any, options: dict[str, Any]) -> None:
    """Replace `json` by the payload that the session would make of it: serialized once."""
    if options.get("json") is None or options.get("data") is not None:
        return
    serialize_bytes = getattr(session, "_json_serialize_bytes", None)
    value = options.pop("json")
    if serialize_bytes is not None:
        options["data"] = library.payload.JsonBytesPayload(value, dumps=serialize_bytes)
    else:
        options["data"] = library.JsonPayload(value, dumps=session.json_serialize)


def _read_body(data: Any) -> bytes:
    """Return the body; empty for a form or a file, which no model API takes."""
    value = getattr(data, "_value", data)
    if isinstance(value, io.BytesIO):
        return value.getvalue()
    if isinstance(value, str):
        return value.encode()
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else b""


def _watch(call: ModelCall, response: Any, *, is_decoded: bool) -> Any:
    """Record the answer while it is read; a refusal is already recorded."""
    if call.state == "open":
        start = call.set_response if is_decoded else partial(start_answer, call)
        start(response.status, response.headers)
        response.__class__ = _create_response_class(response.__class__)
        response.model_call = call
        response.content = _RecordedReader(response.content, call)
    return response


@lru_cache
def _create_response_class(base: Any) -> Any:
    class RecordedClientResponse(base):  # type: ignore[misc]  # any version
        model_call: ModelCall

        def close(self) -> None:
            self.model_call.end(READER_STOPPED)
            super().close()

        def release(self) -> Any:
            self.model_call.end(READER_STOPPED)
            return super().release()

        def __del__(self) -> None:
            self.model_call.end(READER_STOPPED)
            super().__del__()

    return RecordedClientResponse


_READS = frozenset({"readany", "readline", "readuntil", "readexactly", "readchunk"})
_ITERATIONS = frozenset({"iter_any", "iter_chunked", "iter_chunks"})


class _RecordedReader:
    """Reads through a StreamReader, and records."""

    def __init__(self, reader: Any, call: ModelCall) -> None:
        self._reader = reader
        self._call = call

    def __getattr__(self, name: str) -> Any:
        if name in _ITERATIONS:  # which use the other methods
            return partial(getattr(type(self._reader), name), self)
        attribute = getattr(self._reader, name)
        return partial(self._record, attribute) if name in _READS else attribute

    def __aiter__(self) -> Any:
        return type(self._reader).__aiter__(self)

    async def _record(self, read: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        with end_on_error(self._call):
            try:
                result = await read(*args, **options)
            except asyncio.IncompleteReadError as error:
                self._add(error.partial)
                raise
        self._add(result[0] if isinstance(result, tuple) else result)
        return result

    def _add(self, data: bytes) -> bytes:
        self._call.feed(data)
        if self._reader.at_eof():
            self._call.end()
        return data

    async def read(self, n: int = -1) -> bytes:
        if n >= 0:
            data: bytes = await self._record(self._reader.read, n)
            return data
        blocks = []  # of a body that breaks off, the blocks before are recorded
        while block := await self.readany():
            blocks.append(block)
        return b"".join(blocks)

    def read_nowait(self, n: int = -1) -> bytes:
        return self._add(self._reader.read_nowait(n))


class _AnsweringSession:
    """A session that returns our answer, and is otherwise like the real one."""

    def __init__(self, library: ModuleType, session: Any, answer: HTTPAnswer) -> None:
        self._session = session
        self._connector = _create_connector_class(library)(_build_frames(answer))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def _build_frames(answer: HTTPAnswer) -> list[bytes]:
    """Return an answer as HTTP/1.1: its head, then each chunk of its body, then the end."""
    try:
        reason = HTTPStatus(answer.status).phrase
    except ValueError:
        reason = ""
    headers = {**answer.headers, "transfer-encoding": "chunked"}
    lines = [f"{name}: {' '.join(value.split())}\r\n" for name, value in headers.items()]
    head = f"HTTP/1.1 {answer.status} {reason}\r\n{''.join(lines)}\r\n"
    chunks = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in answer.chunks if chunk]
    return [head.encode(), *chunks, b"0\r\n\r\n"]


@lru_cache
def _create_connector_class(library: ModuleType) -> Any:
    class AnswerConnector(library.BaseConnector):  # type: ignore[misc,name-defined]  # any version
        """Opens connections in memory, which answer without any server."""

        def __init__(self, frames: Sequence[bytes]) -> None:
            super().__init__(force_close=True)
            self._frames = frames

        async def _create_connection(self, *_: Any, **__: Any) -> Any:
            protocol = self._factory()
            protocol.connection_made(_AnswerTransport(protocol, self._frames))
            return protocol

    return AnswerConnector


class _AnswerTransport(asyncio.Transport):
    """A connection in memory: the answer arrives once the request is being written."""

    def __init__(self, protocol: Any, frames: Sequence[bytes]) -> None:
        super().__init__()
        self._protocol = protocol
        self._frames = list(frames)
        self._is_closing = False
        self._call_soon: Callable[..., object] = asyncio.get_running_loop().call_soon

    def write(self, _: object) -> None:
        frames, self._frames = self._frames, []
        for frame in frames:
            self._call_soon(self._receive, frame)

    def writelines(self, _: object) -> None:
        self.write(b"")

    def _receive(self, frame: bytes) -> None:
        if not self._is_closing:
            self._protocol.data_received(frame)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        """Do nothing: the answer is in memory already."""

    def resume_reading(self) -> None:
        """Do nothing, as `pause_reading`."""
