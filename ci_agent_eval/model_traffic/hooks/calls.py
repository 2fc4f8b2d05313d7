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


def ask_for_plain_answer(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request, with the demand for an answer without content encoding.

    AWS's signatures cover all headers.
    """
    if any("AWS4-HMAC" in str(value) for value in headers.values()):
        return dict(headers)
    others = {name: value for name, value in headers.items() if name.lower() != "accept-encoding"}
    return {**others, "accept-encoding": "identity"}


def start_answer(call: ModelCall, status: int, headers: Mapping[str, str]) -> None:
    """Record the head of an answer whose body follows as it is sent."""
    call.set_response(status, headers)
    encoding = headers.get("content-encoding") or "identity"
    if encoding.strip().lower() != "identity":
        call.end(f"the answer has the content encoding {encoding}, although none was asked for")


@contextmanager
def end_on_error(call: ModelCall) -> Iterator[None]:
    """End the call with any exception of the `with` block: the client's, or the reader's own."""
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
    described = f"{type(error).__name__}: {message}" if message else type(error).__name__
    is_own = not isinstance(error, Exception)  # such as a cancellation
    return f"{READER_STOPPED}: {described}" if is_own else described


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
