"""The adapter for PydanticAI agents, which run unchanged except for recording."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from pydantic_ai import DeferredToolRequests, ModelRequestNode
from pydantic_ai.agent import AbstractAgent, Agent, AgentRun, AgentRunResult
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import BinaryContent
from pydantic_ai.models import Model, infer_model
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import UsageLimits
from pydantic_core import to_jsonable_python

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.engine.adapters.protocol import AgentTask
from ci_agent_eval.engine.cassette.players import ToolPlayer
from ci_agent_eval.engine.declarations import Provider
from ci_agent_eval.engine.limits import find_exceeded_limit
from ci_agent_eval.engine.message_history import build_history
from ci_agent_eval.engine.model import build_model
from ci_agent_eval.engine.nested_requests import RecordedRun, record_nested_runs
from ci_agent_eval.engine.pydantic_stops import classify_error
from ci_agent_eval.engine.run_record import RunRecord, is_mcp_toolset
from ci_agent_eval.engine.steering import build_steering
from ci_agent_eval.engine.turns import convert_to_turns
from ci_agent_eval.errors import InputError


@dataclass(frozen=True)
class LoopAgent:
    """A PydanticAI agent; `deps` are passed to its tools."""

    agent: AbstractAgent[Any, Any]
    name: str | None = None
    deps: Any = None

    @property
    def label(self) -> str:
        """The name of the adapter or of the agent, or the model."""
        return self.name or self.agent.name or self.model or "agent"

    @property
    def model(self) -> str | None:
        """The agent's model, as `provider:name`."""
        model = self.agent.model
        return model.model_id if isinstance(model, Model) else model

    async def answer(self, work: AgentTask) -> None:
        """Run the agent and record every message in a turn."""
        record = RunRecord(
            clock=work.clock,
            has_servers=_has_servers(self.agent),
            tool_player=ToolPlayer.find(work.cassette_session),
            traffic=work.traffic,
            faults=work.faults,
        )
        await answer_by_loop(self._run(work, record), self.label, work, record)

    async def _run(self, work: AgentTask, record: RunRecord) -> None:
        model = self._build_model(work)
        with record_nested_runs():
            async with self._connect_model(model, work):
                await run_loop(
                    self.agent,
                    work,
                    record,
                    model=model,
                    deps=self.deps,
                    capabilities=build_steering(work.guard, record, self.agent),
                )

    def _build_model(self, work: AgentTask) -> Model:
        """Return the agent's model; in replay one given by name needs no key."""
        model = self.agent.model
        if model is None:
            raise InputError(f"agent {self.label!r} has no model; give it one")
        cassette = work.cassette_session
        if isinstance(model, str) and cassette is not None and cassette.mode == "replay":
            return build_model(Provider(model), os.environ, offline=True)
        return infer_model(model)

    def _connect_model(self, model: Model, work: AgentTask) -> AbstractAsyncContextManager[object]:
        """Hold the model's connections; a model given by name connects for this run only."""
        if work.connections is None or not isinstance(self.agent.model, Model):
            return model
        return work.connections.hold(model)


async def answer_by_loop(
    run: Awaitable[None], label: str, work: AgentTask, record: RunRecord
) -> None:
    """Await the run of a PydanticAI agent; any error becomes its stop."""
    work.traffic.own_usage = lambda: record.usage
    work.describe_progress = record.describe_progress
    work.messages = work.history
    try:
        await run
    except UserError as error:
        raise InputError(f"agent {label!r}: {error}") from error
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - any error becomes a stop
        stop, max_turns = classify_error(error, record), work.limits.max_turns
        if stop.needs_turn and record.response_count == max_turns:
            stop = stop._replace(error=f"it was not done after {max_turns} turns")
        else:  # the limit belongs to a nested agent
            stop = stop._replace(needs_turn=False)
        work.stop = stop


async def run_loop(
    agent: AbstractAgent[Any, Any],
    work: AgentTask,
    record: RunRecord,
    *,
    capabilities: Sequence[AbstractCapability[Any]],
    **options: Any,
) -> None:
    """Run an agent of PydanticAI with options of its own, and record it."""
    run: AgentRun[Any, Any] | None = None
    prompt = work.parts or work.prompt or None
    try:
        async with agent.iter(
            prompt,
            message_history=build_history(work.history, has_prompt=prompt is not None),
            usage_limits=UsageLimits(request_limit=work.limits.max_turns),
            infer_name=False,
            capabilities=[*capabilities, RecordedRun(record)],
            **options,
        ) as run:
            await _iterate_run(run, work, record)
            if run.result is not None:
                _set_output(run.result, record)
    finally:
        work.images = tuple(record.images)
        if run is not None:
            work.messages = tuple(run.all_messages())
            turns = convert_to_turns(run.new_messages(), record)
            own = [turn for turn in turns if _is_new(turn, work)]
            work.turns, work.agents = work.traffic.add_nested_turns(own)


async def _iterate_run(run: AgentRun[Any, Any], work: AgentTask, record: RunRecord) -> None:
    """Iterate over the model's responses and stop the run at its limits.

    Each node is visited before it runs.
    """
    request_node: ModelRequestNode[Any, Any] | None = None
    try:
        async for node in run:
            if Agent.is_model_request_node(node):
                request_node = node
                if (stop := work.traffic.find_stop_before_request()) is not None:
                    work.stop = stop
                    return
                record.begin_turn()
            elif Agent.is_call_tools_node(node):
                record.output_tools.update(_list_tools(request_node, "output_tools"))
                record.add_response(node.model_response)
                work.traffic.on_answer()
                is_filtered = node.model_response.finish_reason == "content_filter"
                stop = record.find_unfinished_stop() if is_filtered else None
                stop = stop or find_exceeded_limit(work.limits, work.traffic.usage)
                if stop is not None:
                    work.stop = stop
                    return
    finally:
        work.available_tools = _list_tools(request_node, "function_tools")


def _list_tools(request_node: ModelRequestNode[Any, Any] | None, kind: str) -> tuple[str, ...]:
    """Return the names of the tools of a kind in the last request, in order."""
    context = request_node.last_request_context if request_node else None
    tools = getattr(context.model_request_parameters, kind) if context else ()
    return tuple(tool.name for tool in tools)


def _set_output(result: AgentRunResult[Any], record: RunRecord) -> None:
    """Record a typed output, and a text that the last response does not contain."""
    output = result.output
    if isinstance(output, str):
        is_called = any(
            part.tool_name in record.output_tools for part in result.response.tool_calls
        )
        record.output = output if is_called else None
    elif not isinstance(output, BinaryContent | DeferredToolRequests | None):
        dumped = to_jsonable_python(output, fallback=to_jsonable, bytes_mode="base64")
        record.typed_output = to_jsonable(dumped)
        record.output = json.dumps(record.typed_output, ensure_ascii=False)


def _has_servers(agent: AbstractAgent[Any, Any]) -> bool:
    """Return whether the agent has tool servers, which may fail."""
    found: list[AbstractToolset[Any]] = []
    for toolset in agent.toolsets:
        toolset.apply(found.append)
    return any(is_mcp_toolset(toolset) for toolset in found)


def _is_new(turn: Any, work: AgentTask) -> bool:
    """Return whether the turn is not the prompt, which the run adds."""
    return not (turn.role == "user" and turn.content == work.prompt)
