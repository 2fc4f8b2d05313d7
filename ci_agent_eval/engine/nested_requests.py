"""The requests of agents that run inside of a PydanticAI agent's run.

The traffic of their requests shows them, also if the engine measures the model, which is that of
the outer agent. Scripts have no traffic, so their messages are read. PydanticAI has no hook for all
agents, so `Agent.iter`, which starts all their runs, is wrapped once. In a run it gives each nested
agent a capability that makes its requests model calls of the episode.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, ModelRequestContext, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.toolsets import AbstractToolset

from ci_agent_eval.engine.message_calls import ScriptModel
from ci_agent_eval.engine.model import ObservedModel, build_stamped_model, is_scripted
from ci_agent_eval.engine.own_requests import leave_to_episode
from ci_agent_eval.engine.run_record import RecordedToolset, RunRecord

_is_in_run: ContextVar[bool] = ContextVar("ci_agent_eval_run", default=False)


@contextmanager
def record_nested_runs() -> Iterator[None]:
    """Treat the runs of agents in the block, except a `RecordedRun`, as nested in a run."""
    _wrap_agents()
    token = _is_in_run.set(True)
    try:
        yield
    finally:
        _is_in_run.reset(token)


@dataclass
class RecordedRun(AbstractCapability[Any]):
    """Marks the run of a PydanticAI agent, and records its tool calls and each model it asks."""

    record: RunRecord

    def get_ordering(self) -> CapabilityOrdering:
        """Run last before the request, after capabilities that select the model."""
        return CapabilityOrdering(position="innermost")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Note the request and measure a model that replaces the agent's.

        The agent's instructions, its own code, ran before.
        """
        del ctx
        self.record.is_requesting = True
        model = request_context.model
        if _is_observed(model):
            return request_context
        return replace(request_context, model=build_stamped_model(model, self.record.clock))

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Wrap the agent's tools."""
        return RecordedToolset(toolset, self.record)


class NestedRun(AbstractCapability[Any]):
    """Records the requests of a nested agent's run."""

    def get_ordering(self) -> CapabilityOrdering:
        """Run last before the request, after capabilities that select the model."""
        return CapabilityOrdering(position="innermost")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Make the request a model call of the episode."""
        del ctx
        model = request_context.model
        nested = ScriptModel(model) if is_scripted(model) else _NestedModel(model)
        return replace(request_context, model=nested)


class _NestedModel(WrapperModel):
    """A model whose traffic is recorded in the episode."""

    async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Ask the model."""
        with leave_to_episode():
            return await super().request(*args, **kwargs)

    @asynccontextmanager
    async def request_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamedResponse]:
        """Stream the model's answer."""
        opened = super().request_stream(*args, **kwargs)
        async with AsyncExitStack() as stack:
            with leave_to_episode():  # not the code that reads the stream
                stream = await stack.enter_async_context(opened)
            yield stream


@functools.cache
def _wrap_agents() -> None:
    """Wrap `Agent.iter`, so that all agents of this process detect nested runs."""
    begin = Agent.iter

    @functools.wraps(begin)
    def iter_in_run(self: Agent[Any, Any], *args: Any, **options: Any) -> Any:
        capabilities = options.get("capabilities") or ()
        is_recorded = any(isinstance(one, RecordedRun) for one in capabilities)
        if _is_in_run.get() and not is_recorded:
            options["capabilities"] = [*capabilities, NestedRun()]
        return begin(self, *args, **options)

    Agent.iter = iter_in_run  # type: ignore[method-assign] # the only hook for all agents


def _is_observed(model: Model) -> bool:
    while isinstance(model, WrapperModel) and not isinstance(model, ObservedModel):
        model = model.wrapped
    return isinstance(model, ObservedModel)
