"""One run of a declared agent: PydanticAI runs the loop, this module records it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Agent as Loop
from pydantic_ai import AgentRun, ModelRequestNode
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, UserContent
from pydantic_ai.usage import UsageLimits

from ci_agent_eval.contract.jsonable import clean_text, describe_error
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.contract.stops import COMPLETED, AgentStop, Stop
from ci_agent_eval.contract.trajectory import Trajectory, Turn
from ci_agent_eval.engine.cassette.players import ToolPlayer
from ci_agent_eval.engine.declarations import Agent, SkillText
from ci_agent_eval.engine.guard import Guard
from ci_agent_eval.engine.limits import RunLimits, find_exceeded_limit
from ci_agent_eval.engine.message_history import build_history
from ci_agent_eval.engine.pausable_deadline import PausableDeadline
from ci_agent_eval.engine.pydantic_stops import classify_error, find_filter_stop
from ci_agent_eval.engine.rate_limits import RateLimitTally
from ci_agent_eval.engine.result import AgentResult, Observer, SkillInfo
from ci_agent_eval.engine.run_record import OfferedTools, RunRecord, restrict_toolsets
from ci_agent_eval.engine.session import EngineSession, Toolset
from ci_agent_eval.engine.steering import build_steering
from ci_agent_eval.engine.stops import build_refusal_check, find_unfinished_stop
from ci_agent_eval.engine.traffic import RunTraffic, TrafficRates
from ci_agent_eval.engine.turns import convert_to_turns
from ci_agent_eval.engine.usage_reports import report_usage
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.faults import EpisodeFaults


@dataclass
class DeclaredAgentRun:
    """The state of one run."""

    agent: Agent
    prompt: str
    history: Sequence[ModelMessage]
    limits: RunLimits
    timeout_s: float | None
    session: EngineSession
    episode_id: str
    guard: Guard | None = None
    allowed_stops: frozenset[AgentStop] = frozenset()
    parts: Sequence[UserContent] | None = None
    """The prompt with its files; None: it is only text."""
    faults: EpisodeFaults = field(default_factory=EpisodeFaults)
    record: RunRecord = field(init=False)
    offers: OfferedTools = field(init=False)
    tally: RateLimitTally = field(default_factory=RateLimitTally)
    traffic: RunTraffic = field(init=False)
    live: AgentRun[Any, Any] | None = None
    request: ModelRequestNode[Any, Any] | None = None
    """The last request to the model, complete or not."""

    def __post_init__(self) -> None:
        cassette = self.session.get_cassette_session(self.episode_id)
        rates = TrafficRates(self.session.get_traffic_windows)
        self.traffic = RunTraffic(self.session.clock, self.prompt, self.limits, rates)
        self.traffic.recorder.player = None if cassette is None else cassette.player
        self.record = RunRecord(
            clock=self.session.clock,
            tool_player=ToolPlayer.find(cassette),
            traffic=self.traffic,
            faults=self.faults,
        )
        self.offers = OfferedTools(self.agent)
        self.traffic.own_usage = lambda: self.record.usage

    async def run_to_end(self, observer: Observer) -> AgentResult:
        """Run to any end; return the result and pass it to the observer."""
        started = self.session.clock()
        listener = self.session.get_usage_listener(self.episode_id)
        report_end = report_usage(self.traffic, listener)
        check_refusals = build_refusal_check(self.session.get_cassette_session(self.episode_id))
        try:
            with self.traffic.watch():
                stop = check_refusals(self.traffic.find_stop(await self._run_to_stop()))
        except InputError:
            report_end()
            raise
        except BaseException as error:
            stop = Stop("cancelled", f"it was stopped from outside ({describe_error(error)})")
            report_end()
            observer(self._build_result(stop, started))
            raise
        result = self._build_result(stop, started)
        report_end()
        observer(result)
        return result

    async def _run_to_stop(self) -> Stop:
        """Run to the end; return its stop."""
        try:
            async with self.session.toolsets(self.agent, self.episode_id) as toolsets:
                return await self._run_in_time(toolsets)
        except UserError as error:
            raise InputError(f"agent {self.agent.label!r}: {error}") from error
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001 - any error becomes a stop
            return self._classify_error(error)

    async def _run_in_time(self, toolsets: Sequence[Toolset]) -> Stop:
        deadline = asyncio.timeout(self.timeout_s)
        try:
            async with deadline:
                self.tally.on_wait = PausableDeadline(deadline).set_waiting
                return await self._iterate(toolsets)
        except TimeoutError:
            if not deadline.expired():
                raise
        return Stop(
            "timeout", f"it was not done after {self.timeout_s:g} s; {self._describe_progress()}"
        )

    async def _iterate(self, toolsets: Sequence[Toolset]) -> Stop:
        """Iterate over the nodes of the run; each node is visited before it runs."""
        async with self._open_loop(toolsets) as live:
            async for node in live:
                if Loop.is_model_request_node(node):
                    stop = self.traffic.find_stop_before_request()
                    if stop is not None:
                        return stop
                    self.record.begin_turn()
                    self.request, self.record.is_requesting = node, True
                elif Loop.is_call_tools_node(node):
                    self.record.add_response(node.model_response)
                    stop = self._check_response(node.model_response)
                    if stop is not None:
                        return stop
        return find_unfinished_stop(self._convert_messages()) or COMPLETED

    def _check_response(self, response: ModelResponse) -> Stop | None:
        self.traffic.on_answer()
        return find_filter_stop(response) or find_exceeded_limit(self.limits, self.traffic.usage)

    @asynccontextmanager
    async def _open_loop(self, toolsets: Sequence[Toolset]) -> AsyncIterator[AgentRun[Any, Any]]:
        agent, prompt = self.agent, self.parts or self.prompt or None
        async with self.session.get_loop(agent).iter(
            prompt,
            model=await self.session.build_run_model(agent, self.tally),
            toolsets=restrict_toolsets(
                self.offers, toolsets, _build_skill_toolsets(agent), self.record
            ),
            message_history=build_history(self.history, has_prompt=prompt is not None),
            usage_limits=UsageLimits(request_limit=self.limits.max_turns),
            infer_name=False,
            capabilities=build_steering(self.guard, self.record, agent),
        ) as live:
            self.live = live
            yield live

    def _classify_error(self, error: Exception) -> Stop:
        """Return the stop of an error, with details of this run."""
        stop = classify_error(error, self.record)
        if stop.reason == "max_turns":
            return stop._replace(error=f"it was not done after {self.limits.max_turns} turns")
        if stop.reason == "model_error" and self.tally.rate_limited:
            times = self.tally.rate_limited
            return Stop("model_error", f"{stop.error} (429, too many requests: {times} times)")
        return stop

    def _describe_progress(self) -> str:
        answers = self.record.response_count
        if self.record.is_requesting:
            return f"request {answers + 1} to the model was open"
        return f"it was at work on the model's answer {answers}" if answers else "it had not begun"

    def _new_messages(self) -> Sequence[ModelMessage]:
        return () if self.live is None else self.live.new_messages()

    def _convert_messages(self) -> tuple[Turn, ...]:
        turns = convert_to_turns(self._new_messages(), self.record)
        return turns or (Turn(role="user", content=self.prompt),)

    def _build_trajectory(self) -> Trajectory:
        turns, agents = self.traffic.add_nested_turns(self._convert_messages())
        return Trajectory(turns=tuple(turns), agents=tuple(agents))

    def _list_tools(self) -> tuple[str, ...]:
        """Return the names of the tools in the last request."""
        context = self.request.last_request_context if self.request else None
        if context is None:
            return ()
        return tuple(tool.name for tool in context.model_request_parameters.function_tools)

    def _build_result(self, stop: Stop, started: float) -> AgentResult:
        trajectory, traffic = self._build_trajectory(), self.traffic
        return AgentResult(
            trajectory=trajectory,
            stop_reason=stop.reason,
            error=clean_text(stop.error) or None,
            duration_ms=convert_to_ms(self.session.clock() - started),
            messages=tuple(self.live.all_messages()) if self.live else tuple(self.history),
            rate_limited=self.tally.rate_limited,
            available_tools=self._list_tools(),
            cassette=self.session.get_cassette_counts(self.episode_id),
            agent=self.agent.label,
            model=self.agent.provider.model_id,
            needs_turn=stop.needs_turn,
            allowed_stops=self.allowed_stops,
            traffic=traffic.summarize(trajectory.turns) if traffic.has_summary else None,
            images=tuple(self.record.images),
            effective_system_prompt=self.agent.instructions or "",
            skill_info=_describe_skill(self.agent.skill),
            tools_by_server=self.offers.group_by_server(),
        )


def _describe_skill(skill: SkillText | None) -> SkillInfo | None:
    if skill is None:
        return None
    return SkillInfo(
        name=skill.name,
        description=getattr(skill, "description", ""),
        instruction_content=skill.content,
        reference_names=tuple(getattr(skill, "files", ())),
    )


def _build_skill_toolsets(agent: Agent) -> Sequence[Toolset]:
    """Build the tool that reads a skill's files, which is always allowed."""
    if agent.skill is None:
        return ()
    from ci_agent_eval.engine.skill_files import build_skill_toolset  # noqa: PLC0415 - most have none
    from ci_agent_eval.engine.skills import Skill  # noqa: PLC0415 - as above

    toolset = build_skill_toolset(agent.skill) if isinstance(agent.skill, Skill) else None
    return () if toolset is None else (toolset,)
