"""The model traffic below the engine's own requests, which completes PydanticAI's responses."""

from __future__ import annotations

from collections.abc import Awaitable

from pydantic_ai.messages import ModelResponse

from ci_agent_eval.engine.limits import Clock
from ci_agent_eval.engine.response_cost import set_cost
from ci_agent_eval.engine.response_stamp import ResponseTraffic, stamp_response
from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.conversations import find_usable_answer
from ci_agent_eval.model_traffic.messages import RequestHead
from ci_agent_eval.model_traffic.pricing import is_known_address, price_call
from ci_agent_eval.model_traffic.recorder import ModelCall, TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import build_traffic_fields


async def observe_request(request: Awaitable[ModelResponse], clock: Clock) -> ModelResponse:
    """Await a model's response and stamp it with the data that only its traffic shows.

    The engine measures the request, so it is no model call of the running episode.
    """
    recorder = TrafficRecorder(clock)
    with hooks.use(), attribution.suspend_recording(False), attribution.use_recorder(recorder):
        response = await request
    recorder.finish()
    stamp_response(response, traffic=_read_last_answer(response, recorder))
    return response


def _read_last_answer(response: ModelResponse, recorder: TrafficRecorder) -> ResponseTraffic | None:
    """Return the data of the last answer; the SDK may have repeated the request before."""
    if not recorder.calls:
        return None
    call = recorder.calls[-1]
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
