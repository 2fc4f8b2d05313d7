"""The adapter for PydanticAI agents, which run unchanged except for recording."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.agent import AbstractAgent, AgentRun, AgentRunResult
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelRetry,
    ToolRetryError,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
)
from pydantic_ai.models import Model, ModelRequestContext, infer_model
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import UsageLimits
from pydantic_core import to_jsonable_python

from ci_agent_eval.contract.jsonable import describe_error, to_jsonable
from ci_agent_eval.contract.stops import Stop, StopReason
from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.engine.adapters.protocol import AgentTask
from ci_agent_eval.engine.cassette.players import ToolPlayer
from ci_agent_eval.engine.declarations import Agent as Declaration
from ci_agent_eval.engine.declarations import Provider, SkillText
from ci_agent_eval.engine.limits import Guard
from ci_agent_eval.engine.model import build_model
from ci_agent_eval.engine.model_calls import RecordedModel
from ci_agent_eval.engine.result import SkillInfo
from ci_agent_eval.engine.run_record import (
    AllowedToolset,
    OfferedTools,
    RecordedToolset,
    RunRecord,
    check_allowed_tools,
    is_mcp_toolset,
)
from ci_agent_eval.engine.session import EngineSession, Toolset
from ci_agent_eval.engine.steering import SteeredToolset
from ci_agent_eval.engine.stops import describe_own_error, look_up_error
from ci_agent_eval.errors import InputError

_is_in_run: ContextVar[bool] = ContextVar("ci_agent_eval_run", default=False)


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
    work.traffic.complete_turn = record.complete_turn
    work.describe_progress = record.describe_progress
    work.messages = work.history
    try:
        await run
    except UserError as error:
        raise InputError(f"agent {label!r}: {error}") from error
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - any error becomes a stop
        # A limit of turns that raises is the one of a nested agent.
        work.stop = classify_error(error, record)._replace(needs_turn=False)


async def run_loop(
    agent: AbstractAgent[Any, Any],
    work: AgentTask,
    record: RunRecord,
    *,
    programs: Mapping[str, str] | None = None,
    **options: Any,
) -> None:
    """Run an agent of PydanticAI with options of its own, and record it.

    `programs` are those of command-line servers, by the names of their tools, for steering.
    """
    run: AgentRun[Any, Any] | None = None
    prompt = work.parts or work.prompt or None
    try:
        async with agent.iter(
            prompt,
            message_history=build_history(work.history, has_prompt=prompt is not None),
            usage_limits=UsageLimits(request_limit=None),
            infer_name=False,
            capabilities=[RecordedRun(record, work.guard, programs or {})],
            **options,
        ) as run:
            await _iterate_run(run, work, record)
            if run.result is not None:
                work.turns = (_build_reply(run.result, record),)
    finally:
        work.images, work.available_tools = tuple(record.images), record.available_tools
        if run is not None:
            work.messages = tuple(run.all_messages())
            record.add_outcomes(run.new_messages())


async def _iterate_run(run: AgentRun[Any, Any], work: AgentTask, record: RunRecord) -> None:
    """Iterate over the model's responses and stop the run at its limits.

    Each node is visited before it runs.
    """
    async for node in run:
        if Agent.is_model_request_node(node):
            if (stop := work.traffic.find_limit_stop(open_requests=1)) is not None:
                work.stop = stop
                return
            record.begin_turn()
        elif Agent.is_call_tools_node(node):
            record.add_response(node.model_response)
            if (stop := work.traffic.find_limit_stop()) is not None:
                work.stop = stop
                return


def _build_reply(result: AgentRunResult[Any], record: RunRecord) -> Turn:
    """Build the final turn: a typed output, or a text that the last response does not contain."""
    output, typed, text = result.output, None, ""
    if isinstance(output, str):
        tools = record.traffic.output_tools
        is_called = any(part.tool_name in tools for part in result.response.tool_calls)
        text = output if is_called else ""
    elif not isinstance(output, BinaryContent | DeferredToolRequests | None):
        dumped = to_jsonable_python(output, fallback=to_jsonable, bytes_mode="base64")
        typed = to_jsonable(dumped)
        text = json.dumps(typed, ensure_ascii=False)
    return Turn(role="assistant", content=text, typed_output=typed)


def _has_servers(agent: AbstractAgent[Any, Any]) -> bool:
    """Return whether the agent has tool servers, which may fail."""
    found: list[AbstractToolset[Any]] = []
    for toolset in agent.toolsets:
        toolset.apply(found.append)
    return any(is_mcp_toolset(toolset) for toolset in found)


@contextmanager
def record_nested_runs() -> Iterator[None]:
    """Treat the runs of agents in the block, except a `RecordedRun`, as nested in a run."""
    _wrap_agents()
    token = _is_in_run.set(True)
    try:
        yield
    finally:
        _is_in_run.reset(token)


class RecordedRequests(AbstractCapability[Any]):
    """Makes the requests of an agent's run model calls of the episode."""

    def get_ordering(self) -> CapabilityOrdering:
        """Run last before the request, after capabilities that select the model."""
        return CapabilityOrdering(position="innermost")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Record the request."""
        del ctx
        return replace(request_context, model=RecordedModel(request_context.model))


@dataclass
class RecordedRun(RecordedRequests):
    """Marks the run of a PydanticAI agent, and records its requests and tool calls."""

    record: RunRecord
    guard: Guard | None = None
    programs: Mapping[str, str] = field(default_factory=dict)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Record the request; the agent's instructions, its own code, ran before."""
        self.record.begin_request(request_context.model_request_parameters)
        return await super().before_model_request(ctx, request_context)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Wrap the agent's tools; a call that is held back is not executed."""
        recorded = RecordedToolset(toolset, self.record)
        if self.guard is None:
            return recorded
        return SteeredToolset(recorded, self.guard, self.record, self.programs)


@functools.cache
def _wrap_agents() -> None:
    """Wrap `Agent.iter`, so that all agents of this process detect nested runs."""
    begin = Agent.iter

    @functools.wraps(begin)
    def iter_in_run(self: Agent[Any, Any], *args: Any, **options: Any) -> Any:
        capabilities = options.get("capabilities") or ()
        is_recorded = any(isinstance(one, RecordedRun) for one in capabilities)
        if _is_in_run.get() and not is_recorded:
            options["capabilities"] = [*capabilities, RecordedRequests()]
        return begin(self, *args, **options)

    Agent.iter = iter_in_run  # type: ignore[method-assign] # the only hook for all agents


def build_history(
    messages: Sequence[ModelMessage], *, has_prompt: bool
) -> list[ModelMessage] | None:
    """Return the message history of a run; None without messages.

    PydanticAI takes an answer at the end as the run's own unless a prompt or a request follows.
    """
    last = messages[-1] if messages else None
    is_answered = isinstance(last, ModelResponse) and not last.tool_calls
    return [
        *messages,
        *([ModelRequest(parts=[])] if is_answered and not has_prompt else []),
    ] or None


def classify_error(error: Exception, record: RunRecord) -> Stop:
    """Return the stop of an error of the loop, a model or a server."""
    if isinstance(error, Warning):
        return Stop("model_error", f"a warning that was made an error (-W error): {error}")
    if _is_tool_retry_exhausted(error):
        message = str(error).partition(" Consider ")[0]
        return Stop("tool_call_limit", f"{message} The last time: {error.__cause__}")
    known = _find_unusable_answer(error, record) or look_up_error(error)
    if known is not None:
        return known
    reason, text = _classify_unknown_error(record)
    describe = describe_own_error if reason == "agent_error" else describe_error
    return Stop(reason, f"{text}: {describe(error)}")


def _classify_unknown_error(record: RunRecord) -> tuple[StopReason, str]:
    """Return the stop of an error outside the table, by the state of the run."""
    if record.broken_tool is not None:
        reason: StopReason = "agent_error" if record.is_own_tool else "server_error"
        return reason, f"tool {record.broken_tool!r} broke"
    if record.is_requesting:
        return "model_error", "the model's answer could not be read"
    if not record.has_servers:
        return "agent_error", "the agent's own code raised"
    return "server_error", "a tool server could not be used"


def _find_unusable_answer(error: Exception, record: RunRecord) -> Stop | None:
    """Return the stop of a last response that the loop could not use; else None."""
    if not isinstance(error, UnexpectedModelBehavior) or record.is_requesting:
        return None
    return record.traffic.find_unfinished_stop()


def _is_tool_retry_exhausted(error: Exception) -> bool:
    """Return whether the error means that a tool's retries are exhausted."""
    if not isinstance(error, UnexpectedModelBehavior) or isinstance(error, ContentFilterError):
        return False
    cause = error.__cause__
    if isinstance(cause, ToolRetryError):
        return isinstance(cause.tool_retry, ToolReturnPart)
    # Arguments that fail their schema raise pydantic's ValidationError, which is a ValueError.
    return isinstance(cause, ModelRetry | ValueError) and "Tool" in error.message


@dataclass(frozen=True)
class DeclaredAgent:
    """A declared agent in an episode of a session."""

    agent: Declaration
    session: EngineSession
    episode_id: str

    @property
    def label(self) -> str:
        """The agent's name."""
        return self.agent.label

    @property
    def model(self) -> str | None:
        """The agent's model, as `provider:name`."""
        return self.agent.provider.model_id

    async def answer(self, work: AgentTask) -> None:
        """Run the agent and record every message in a turn."""
        offers: OfferedTools = {}
        record = RunRecord(
            clock=work.clock,
            has_own_code=False,
            tool_player=ToolPlayer.find(work.cassette_session),
            traffic=work.traffic,
            faults=work.faults,
            check_tools=lambda: check_allowed_tools(self.agent, offers),
        )
        try:
            await answer_by_loop(self._run(work, record, offers), self.label, work, record)
        finally:
            work.declared = {
                "effective_system_prompt": self.agent.instructions or "",
                "skill_info": _describe_skill(self.agent.skill),
                "tools_by_server": {
                    server.label: offers.get(server, ()) for server in self.agent.servers
                },
            }

    async def _run(self, work: AgentTask, record: RunRecord, offers: OfferedTools) -> None:
        """Run the agent; the time in which its servers start and end is not the agent's."""
        agent, set_waiting = self.agent, work.deadline.set_waiting
        set_waiting(True)
        async with self.session.toolsets(agent, self.episode_id) as toolsets:
            set_waiting(False)
            try:
                await run_loop(
                    self.session.build_loop(agent),
                    work,
                    record,
                    model=await self.session.build_run_model(agent, work.deadline.exclude_wait),
                    toolsets=[
                        *(
                            AllowedToolset(toolset, server, offers, agent.allowed_tools)
                            for server, toolset in zip(agent.servers, toolsets, strict=False)
                        ),
                        *(AllowedToolset(t, None, offers) for t in _build_skill_toolsets(agent)),
                    ],
                    programs={one.tool_name: one.command for one in agent.cli_servers},
                )
            finally:
                set_waiting(True)


def _describe_skill(skill: SkillText | None) -> SkillInfo | None:
    if skill is None:
        return None
    return SkillInfo(
        name=skill.name,
        description=getattr(skill, "description", ""),
        instruction_content=skill.content,
        reference_names=tuple(getattr(skill, "files", ())),
    )


def _build_skill_toolsets(agent: Declaration) -> Sequence[Toolset]:
    """Build the tool that reads a skill's files, which is always allowed."""
    if agent.skill is None:
        return ()
    from ci_agent_eval.engine.skill_files import build_skill_toolset  # noqa: PLC0415 - most have none
    from ci_agent_eval.engine.skills import Skill  # noqa: PLC0415 - as above

    toolset = build_skill_toolset(agent.skill) if isinstance(agent.skill, Skill) else None
    return () if toolset is None else (toolset,)
