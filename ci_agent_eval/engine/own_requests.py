"""The engine's own requests: those of PydanticAI agents and of judges, apart from other calls.

On a cassette their model traffic is recorded and replayed as all other traffic. Of an answer it
gives all but the text and the tool calls, which are as PydanticAI reads them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel

from ci_agent_eval.engine.traffic import compute_call_cost, set_call_cost
from ci_agent_eval.engine.turns import compute_cost, read_tokens
from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.conversations import find_usable_answer
from ci_agent_eval.model_traffic.pricing import is_known_address
from ci_agent_eval.model_traffic.recorder import ModelCall, TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import build_answer_fields


class OwnModel(WrapperModel):
    """A model whose requests a recorder of their own records."""

    def __init__(self, wrapped: Model, recorder: TrafficRecorder) -> None:
        super().__init__(wrapped)
        self.recorder = recorder

    async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Send the request."""
        count = len(self.recorder.calls)
        with _record_calls(self.recorder):
            response = await super().request(*args, **kwargs)
        if calls := self.recorder.calls[count:]:
            _set_cost(response, calls[-1])
        return response

    @asynccontextmanager
    async def request_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamedResponse]:
        """Stream the response; the code that reads it makes its own calls."""
        opened = super().request_stream(*args, **kwargs)
        async with AsyncExitStack() as stack:
            with _record_calls(self.recorder):
                stream = await stack.enter_async_context(opened)
            yield stream


@contextmanager
def _record_calls(recorder: TrafficRecorder) -> Iterator[None]:
    with hooks.use(), attribution.suspend_recording(False), attribution.use_recorder(recorder):
        yield


def read_answer(response: ModelResponse, call: ModelCall | None) -> dict[str, Any]:
    """Return what the traffic of a response shows, as fields of its turn; without a call less."""
    answer = None if call is None else find_usable_answer(call)
    if call is None or answer is None:
        return {"tokens": read_tokens(response), "cost_usd": compute_cost(response)}
    fields = build_answer_fields(call, answer, call.head, compute_call_cost)
    return {**fields, "tokens": answer.tokens or read_tokens(response)}


def _set_cost(response: ModelResponse, call: ModelCall) -> None:
    """Set the cost of a call where PydanticAI knows more than the table of prices.

    These are a cost that the provider reports, and the service tiers of an address.
    """
    is_known = response.usage.cost is not None or is_known_address(call.url)
    if not is_known and compute_call_cost(call) is not None:
        return
    if (cost_usd := compute_cost(response)) is not None:
        set_call_cost(call, cost_usd, is_vendor_price=not is_known)
