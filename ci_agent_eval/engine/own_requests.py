"""The model traffic below the engine's own requests, which completes PydanticAI's responses.

On a cassette it is recorded and replayed as all other traffic.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pydantic_ai.messages import ModelResponse

from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.engine.limits import Clock
from ci_agent_eval.engine.response_cost import set_cost
from ci_agent_eval.engine.response_stamp import ResponseTraffic, has_traffic, stamp_response
from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.conversations import find_usable_answer
from ci_agent_eval.model_traffic.messages import RequestHead
from ci_agent_eval.model_traffic.pricing import is_known_address, price_call
from ci_agent_eval.model_traffic.recorder import ModelCall, TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import build_traffic_fields, get_latency_ms

_is_nested: ContextVar[bool] = ContextVar("ci_agent_eval_nested", default=False)


@contextmanager
def leave_to_episode() -> Iterator[None]:
    """Make the requests of the `with` block model calls of the episode, whatever measures them."""
    token = _is_nested.set(True)
    try:
        yield
    finally:
        _is_nested.reset(token)


def is_left_to_episode() -> bool:
    """Return whether requests in this context are model calls of the episode."""
    return _is_nested.get()


def is_replay() -> bool:
    """Return whether a cassette answers all requests in this context."""
    recorder = attribution.find_recorder()
    return recorder is not None and recorder.is_replay


@contextmanager
def record_own_request(clock: Clock) -> Iterator[TrafficRecorder]:
    """Record the traffic of the `with` block, with the cassette of the episode if it has one.

    The engine measures the request, so it is no model call of the running episode.
    """
    outer = attribution.find_recorder()
    recorder = TrafficRecorder(clock, None if outer is None else outer.player)
    with hooks.use(), attribution.suspend_recording(False), attribution.use_recorder(recorder):
        yield recorder


async def observe_request(request: Awaitable[ModelResponse], clock: Clock) -> ModelResponse:
    """Await a model's response; stamp it with its latency and the data of its traffic."""
    if is_left_to_episode():
        return await request
    started = clock()
    with record_own_request(clock) as recorder:
        response = await request
    latency_ms = convert_to_ms(clock() - started)
    recorder.finish()
    if recorder.calls:
        call = recorder.calls[-1]  # the SDK may have repeated the request before
        stamp_response(
            response,
            latency_ms=get_latency_ms(call),
            source=call.source,
            traffic=_read_answer(response, call),
        )
    elif not has_traffic(response):
        stamp_response(response, latency_ms=latency_ms)
    return response


def _read_answer(response: ModelResponse, call: ModelCall) -> ResponseTraffic | None:
    answer = find_usable_answer(call)
    if answer is None:
        return None
    head = call.head
    return ResponseTraffic(
        **build_traffic_fields(call, answer, head),
        vendor_priced_model=_set_cost(response, call, head),
        reasoning_tokens=None if answer.tokens is None else answer.tokens.reasoning,
    )


def _set_cost(response: ModelResponse, call: ModelCall, head: RequestHead | None) -> str | None:
    """Set the cost as other agents' calls have it; return the model if that is its vendor's price.

    A cost that the provider reports stays. PydanticAI knows the service tiers of an address.
    """
    if response.usage.cost is not None:
        return None
    is_known = is_known_address(call.url)
    if is_known:
        set_cost(response)
    if response.usage.cost is not None:
        return None
    price = price_call(call, head)
    set_cost(response, price)
    if is_known or response.usage.cost is None:
        return None
    return response.model_name if price is None else price.model
