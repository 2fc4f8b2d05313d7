"""The model traffic below the engine's own requests, which completes PydanticAI's responses."""

from __future__ import annotations

from collections.abc import Awaitable

from pydantic_ai.messages import ModelResponse

from ci_agent_eval.engine.limits import Clock
from ci_agent_eval.engine.response_stamp import ResponseTraffic, stamp_response
from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.conversations import find_usable_answer
from ci_agent_eval.model_traffic.recorder import TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import build_traffic_fields


async def observe_request(request: Awaitable[ModelResponse], clock: Clock) -> ModelResponse:
    """Await a model's response and stamp it with the data that only its traffic shows.

    The engine measures the request, so it is no model call of the running episode.
    """
    recorder = TrafficRecorder(clock)
    with hooks.use(), attribution.suspend_recording(False), attribution.use_recorder(recorder):
        response = await request
    recorder.finish()
    stamp_response(response, traffic=_read_last_answer(recorder))
    return response


def _read_last_answer(recorder: TrafficRecorder) -> ResponseTraffic | None:
    """Return the data of the last answer; the SDK may have repeated the request before."""
    if not recorder.calls:
        return None
    call = recorder.calls[-1]
    answer = find_usable_answer(call)
    if answer is None:
        return None
    return ResponseTraffic(
        **build_traffic_fields(call, answer, call.head),
        reasoning_tokens=None if answer.tokens is None else answer.tokens.reasoning,
    )
