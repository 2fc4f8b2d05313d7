"""The model traffic below the engine's own requests, which completes PydanticAI's responses."""

from __future__ import annotations

from collections.abc import Awaitable

from pydantic_ai.messages import ModelResponse

from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.engine.limits import Clock
from ci_agent_eval.engine.response_stamp import ResponseTraffic, stamp_response
from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.recorder import TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import build_trajectory

_FIELDS = frozenset(ResponseTraffic.model_fields) & frozenset(Turn.model_fields)


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
    turns = [one.turn for one in build_trajectory(recorder.calls[-1:]).turns]
    if not turns or turns[-1].role != "assistant":
        return None
    answer = turns[-1]
    return ResponseTraffic(
        **{name: getattr(answer, name) for name in _FIELDS},
        reasoning_tokens=None if answer.tokens is None else answer.tokens.reasoning,
    )
