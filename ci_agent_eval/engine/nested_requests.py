"""The requests of agents that run inside of a PydanticAI agent's run.

The traffic of their requests shows them. Scripts have no traffic, so their messages are read.
PydanticAI has no hook for all agents, so `Agent.iter`, which starts all their runs, is wrapped
once. In a run it gives each nested agent a capability that makes requests to scripts model calls.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.toolsets import AbstractToolset

from ci_agent_eval.engine.message_calls import ScriptModel
from ci_agent_eval.engine.model import is_scripted
from ci_agent_eval.engine.own_requests import OwnModel
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
        """Record the request apart; the agent's instructions, its own code, ran before."""
        del ctx
        model = request_context.model
        self.record.mark_request(is_scripted=is_scripted(model))
        return replace(request_context, model=OwnModel(model, self.record.traffic.own))

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
        """Make the request to a script a model call of the episode; others are calls already."""
        del ctx
        model = request_context.model
        if not is_scripted(model):
            return request_context
        return replace(request_context, model=ScriptModel(model))


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
