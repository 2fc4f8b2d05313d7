"""What is seen of a run while it goes: a capability that only looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.capabilities.abstract import (
    ValidatedToolArgs,
    WrapModelRequestHandler,
    WrapToolExecuteHandler,
)
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import ToolDefinition

from ci_agent_eval.contract.jsonable import clean_text, jsonable
from ci_agent_eval.engine import stamp
from ci_agent_eval.engine.turns import CallKey, CallNote

Clock = Callable[[], float]
"""Seconds from any fixed point, never going back."""


@dataclass
class RunRecord(AbstractCapability[Any]):
    """Notes how long requests and tool calls take, which tools there are, and what broke."""

    clock: Clock
    calls: dict[CallKey, CallNote] = field(default_factory=dict)
    answers: int = 0
    """How many responses the model has given."""
    tools: tuple[str, ...] = ()
    """The names of the tools the model was last offered, in order."""
    broken_tool: str | None = None
    """The tool whose call raised what PydanticAI does not hand to the model."""
    asking: bool = False
    """Whether a model request is open."""

    async def wrap_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - PydanticAI's signature
        *,
        request_context: ModelRequestContext,
        handler: WrapModelRequestHandler,
    ) -> ModelResponse:
        """Time a request, unless a layer below has timed it closer to the model."""
        self.tools = tuple(
            tool.name for tool in request_context.model_request_parameters.function_tools
        )
        started, self.asking = self.clock(), True
        response = await handler(request_context)
        self.asking, self.answers = False, self.answers + 1
        if stamp.latency_ms(response) is None:
            stamp.stamp(response, latency_ms=self._since(started))
        return response

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - PydanticAI's signature
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,  # noqa: ARG002 - PydanticAI's signature
        args: ValidatedToolArgs,
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Time a tool call, and keep what came of it should the run end before it is told."""
        started = self.clock()
        try:
            result = await handler(args)
        except (ModelRetry, ToolFailed) as told:
            self._note(call, started, error=str(told))
            raise
        except Exception as error:
            self.broken_tool = self.broken_tool or call.tool_name
            self._note(call, started, error=describe(error))
            raise
        except BaseException:
            self._note(call, started, error="it was stopped before it answered")
            raise
        self._note(call, started, result=result)
        return result

    def _note(
        self, call: ToolCallPart, started: float, *, result: Any = None, error: str | None = None
    ) -> None:
        self.calls[self.answers, clean_text(call.tool_call_id)] = CallNote(
            duration_ms=self._since(started), result=jsonable(result), error=error
        )

    def _since(self, started: float) -> float:
        return round(max(self.clock() - started, 0.0) * 1000, 3)


def describe(error: BaseException) -> str:
    """Return an error as one text: its kind, unless it is one of ours, and what it says."""
    said = clean_text(str(error))
    kind = type(error).__name__
    return said if said and kind in _SELF_EXPLAINING else f"{kind}: {said}" if said else kind


_SELF_EXPLAINING = frozenset({"ServerError", "ModelError", "InputError"})
