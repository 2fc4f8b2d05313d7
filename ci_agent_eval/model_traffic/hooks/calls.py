"""From a client's request to the recorder's call: the part that all hooks share."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ci_agent_eval.model_traffic import attribution
from ci_agent_eval.model_traffic.formats.message_format import Format, HTTPAnswer
from ci_agent_eval.model_traffic.formats.registry import find_format, is_model_request
from ci_agent_eval.model_traffic.hooks.content_encoding import (
    ContentDecoder,
    UnreadableEncodingError,
    create_decoder,
)
from ci_agent_eval.model_traffic.recorder import READER_STOPPED, ModelCall

_QUERY = re.compile(r"\?\S+")


@dataclass(frozen=True, slots=True)
class CallTarget:
    """A request that is about to be sent to an address of model calls."""

    method: str
    url: str
    format: Format

    def start(self, body: bytes) -> ModelCall | None:
        """Record the request; None if it is not a model call, or not to be recorded."""
        if not is_model_request(self.format, body):
            return None
        recorder = attribution.find_recorder()
        if recorder is None:
            attribution.add_unattributed(self.method, self.url)
            recorder = attribution.get_unattributed_recorder()
        return None if recorder is None else recorder.start_call(self.format, self.url, body)


def find_target(method: str, url: str) -> CallTarget | None:
    """Return the target of a request that may be a model call; its body decides."""
    message_format = None if attribution.is_suspended() else find_format(method, url)
    if message_format is None or attribution.is_gateway_url(url):
        return None
    return CallTarget(method, url, message_format)


@contextmanager
def end_on_error(call: ModelCall) -> Iterator[None]:
    """End the call with any exception of the `with` block, a cancellation included."""
    try:
        yield
    except BaseException as error:
        call.end(describe_call_error(error))
        raise


def describe_call_error(error: BaseException) -> str:
    """Return the kind and the message of an exception, without the queries of addresses.

    Some providers take the key in the query.
    """
    if isinstance(error, GeneratorExit):
        return READER_STOPPED
    message = _QUERY.sub("?…", str(error))[:300]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def wait_for_answer(call: ModelCall) -> HTTPAnswer | None:
    """Wait as the recorder demands; return its answer, or None if the request passes."""
    while (decision := call.decide()).answer is None and decision.wait_s > 0:
        time.sleep(decision.wait_s)
    return decision.answer


async def wait_for_answer_async(call: ModelCall) -> HTTPAnswer | None:
    """Wait as the recorder demands; return its answer, or None if the request passes."""
    while (decision := call.decide()).answer is None and decision.wait_s > 0:
        await _sleep(decision.wait_s)
    return decision.answer


async def _sleep(seconds: float) -> None:
    # httpx also runs on trio, with anyio.
    if "trio" in sys.modules:
        import anyio  # noqa: PLC0415 - only beside trio

        await anyio.sleep(seconds)
    else:
        await asyncio.sleep(seconds)


class AnswerTee:
    """Records the body of an answer as the client reads it."""

    __slots__ = ("_call", "_decoder")

    def __init__(
        self, call: ModelCall, status: int, headers: Mapping[str, str], *, is_decoded: bool = False
    ) -> None:
        self._call = call
        self._decoder: ContentDecoder | None = None
        call.set_response(status, headers)
        encoding = "" if is_decoded else headers.get("content-encoding", "")
        if encoding:
            with self._ending_unreadable():
                self._decoder = create_decoder(encoding)

    def feed(self, chunk: bytes) -> None:
        """Record the next bytes of the body, in its content encoding."""
        if self._decoder is not None:
            with self._ending_unreadable():
                self._call.feed(self._decoder(chunk))
        else:
            self._call.feed(chunk)

    def end(self, error: str | None = None) -> None:
        """Record the end of the body."""
        self._call.end(error)

    def fail(self, error: BaseException) -> None:
        """Record the exception that ended the body: the provider's, or the reader's own."""
        described = describe_call_error(error)
        is_own = not isinstance(error, Exception | GeneratorExit)  # such as a cancellation
        self._call.end(f"{READER_STOPPED}: {described}" if is_own else described)

    @contextmanager
    def fail_on_error(self) -> Iterator[None]:
        """End the body with any exception of the `with` block."""
        try:
            yield
        except BaseException as error:
            self.fail(error)
            raise

    @contextmanager
    def _ending_unreadable(self) -> Iterator[None]:
        try:
            yield
        except UnreadableEncodingError as error:
            self._call.end(str(error))
