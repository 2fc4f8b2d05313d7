"""A PydanticAI agent of the user's own, with nothing of it changed but what watches it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import DeferredToolRequests, ModelRequestNode
from pydantic_ai.agent import AbstractAgent, Agent, AgentRun, AgentRunResult
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import UsageLimits
from pydantic_core import to_jsonable_python

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.engine import response_stamp
from ci_agent_eval.engine.adapters.protocol import AgentTask
from ci_agent_eval.engine.cassette.model import CassetteModel
from ci_agent_eval.engine.declarations import Provider
from ci_agent_eval.engine.limits import RunUsage, find_exceeded_limit
from ci_agent_eval.engine.model import build_model, is_scripted
from ci_agent_eval.engine.nested_requests import RecordedRun, RunScope, enter_run_scope
from ci_agent_eval.engine.run_record import Clock, RunRecord, is_mcp_toolset
from ci_agent_eval.engine.steering import build_steering
from ci_agent_eval.engine.stops import classify_error, find_filter_stop
from ci_agent_eval.engine.turns import convert_to_turns
from ci_agent_eval.errors import InputError


class TimedModel(WrapperModel):
    """A model whose answers carry how long they took."""

    def __init__(self, wrapped: Model, clock: Clock) -> None:
        super().__init__(wrapped)
        self.clock = clock

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the model, and stamp the answer."""
        started = self.clock()
        response = await super().request(messages, model_settings, model_request_parameters)
        response_stamp.stamp_response(
            response,
            latency_ms=convert_to_ms(self.clock() - started),
            source="scripted" if is_scripted(self.wrapped) else None,
        )
        return response


@dataclass(frozen=True)
class LoopAgent:
    """A PydanticAI agent, as it is. `deps` are handed to its tools."""

    agent: AbstractAgent[Any, Any]
    name: str | None = None
    deps: Any = None

    @property
    def label(self) -> str:
        """Its name, or the agent's, or its model."""
        return self.name or self.agent.name or self.model or "agent"

    @property
    def model(self) -> str | None:
        """The agent's model, as `provider:name`."""
        model = self.agent.model
        return model.model_id if isinstance(model, Model) else model

    async def answer(self, work: AgentTask) -> None:
        """Run the agent; every message it exchanged becomes part of a turn."""
        record = RunRecord(clock=work.clock, has_servers=_has_servers(self.agent))
        model, spent = None, RunUsage()
        try:
            model = self._model(work)
            with enter_run_scope(RunScope(work.cassette_session, record, spent)):
                async with self._open(model, work):
                    await self._run(work, model, record, spent)
        except UserError as error:
            raise InputError(f"agent {self.label!r}: {error}") from error
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - the table says which end it is
            stop = classify_error(error, record)
            # The limit may be that of an agent inside of it, which a tool asked.
            own = record.answers == work.limits.max_turns
            work.stop = replace(stop, needs_turn=stop.needs_turn and own)
        if isinstance(model, CassetteModel) and record.answers and not model.request_count:
            raise InputError(
                f"agent {self.label!r}: its model is overridden, which goes past the cassette; "
                "override it with a CassetteModel, or not at all"
            )

    def _model(self, work: AgentTask) -> Model:
        """Return the agent's model: timed, and behind the cassette if there is one."""
        model = self.agent.model
        if model is None:
            raise InputError(f"agent {self.label!r} has no model; give it one")
        if work.cassette_session is None:
            return TimedModel(infer_model(model), work.clock)
        return CassetteModel(_build_inner_model(model, work), work.cassette_session)

    def _open(self, model: Model, work: AgentTask) -> AbstractAsyncContextManager[object]:
        """Hold the model's connections; of an agent that has a name alone they are this run's."""
        if work.connections is None or not isinstance(self.agent.model, Model):
            return model
        return work.connections.using(model)

    async def _run(self, work: AgentTask, model: Model, record: RunRecord, spent: RunUsage) -> None:
        run: AgentRun[Any, Any] | None = None
        try:
            async with self.agent.iter(
                work.prompt,
                model=model,
                deps=self.deps,
                message_history=list(work.history) or None,
                usage_limits=UsageLimits(request_limit=work.limits.max_turns),
                infer_name=False,
                capabilities=[*build_steering(work.guard, record, self.agent), RecordedRun(record)],
            ) as run:
                await _iterate_run(run, work, record, spent)
                record.output = (
                    None if run.result is None else _render_typed_output(run.result, record)
                )
        finally:
            if run is not None:
                work.messages = run.all_messages()
                turns = convert_to_turns(run.new_messages(), record)
                work.turns = [turn for turn in turns if _is_new(turn, work)]


async def _iterate_run(
    run: AgentRun[Any, Any], work: AgentTask, record: RunRecord, spent: RunUsage
) -> None:
    """Go from answer to answer, and stop the run at its limits."""
    asked: ModelRequestNode[Any, Any] | None = None
    async for node in run:
        if Agent.is_model_request_node(node):
            asked, record.asking = node, True
        elif Agent.is_call_tools_node(node):
            response = node.model_response
            record.answered(response)
            record.output_tools |= _list_output_tools(asked)
            names = [part.tool_name for part in response.tool_calls]
            spent.tool_calls += sum(name not in record.output_tools for name in names)
            spent.add(response.usage.total_tokens, float(response.usage.cost or 0))
            stop = find_filter_stop(response) or find_exceeded_limit(work.limits, spent)
            if stop is not None:
                work.stop = stop
                return


def _list_output_tools(asked: ModelRequestNode[Any, Any] | None) -> set[str]:
    """Return the names of the tools by which the model was asked for its output."""
    context = asked.last_request_context if asked else None
    tools = context.model_request_parameters.output_tools if context else ()
    return {tool.name for tool in tools}


def _render_typed_output(result: AgentRunResult[Any], record: RunRecord) -> str | None:
    """Return a typed output as text; None where the last answer shows it already."""
    output = result.output
    is_called = any(part.tool_name in record.output_tools for part in result.response.tool_calls)
    if isinstance(output, str):
        return output if is_called else None
    if output is None or isinstance(output, BinaryContent | DeferredToolRequests):
        return None
    plain = to_jsonable_python(output, fallback=to_jsonable, bytes_mode="base64")
    return json.dumps(to_jsonable(plain), ensure_ascii=False)


def _has_servers(agent: AbstractAgent[Any, Any]) -> bool:
    """Say whether the agent has tool servers that may fail it."""
    found: list[AbstractToolset[Any]] = []
    for toolset in agent.toolsets:
        toolset.apply(found.append)
    return any(is_mcp_toolset(toolset) for toolset in found)


def _is_new(turn: Any, work: AgentTask) -> bool:
    """Leave out the prompt: the run itself puts it first."""
    return not (turn.role == "user" and turn.content == work.prompt)


def _build_inner_model(model: Model | str, work: AgentTask) -> Model | Callable[[], Model]:
    """Return the model to record; of a name alone, replay needs no key."""
    if (
        isinstance(model, str)
        and work.cassette_session is not None
        and work.cassette_session.mode == "replay"
    ):
        return build_model(Provider(model), {}, offline=True)
    return TimedModel(infer_model(model), work.clock)
