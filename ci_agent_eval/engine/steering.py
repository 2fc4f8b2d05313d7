"""Steering in episodes: a call that is held back is not executed, and the agent gets a message."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from ci_agent_eval.engine.declarations import Agent
from ci_agent_eval.engine.run_record import Clock, RunRecord
from ci_agent_eval.engine.servers.arguments import split_arguments
from ci_agent_eval.errors import InputError, missing_package_error
from ci_agent_eval.steering.policy.model import Steer, ToolCallRequest
from ci_agent_eval.steering.policy.reactor import Reactor
from ci_agent_eval.steering.policy.settings import SteeringSettings
from ci_agent_eval.steering.policy.warned_commands import InMemoryWarnedCommands, WarnedCommands

_GRAMMAR_MODULES = ("tree_sitter", "tree_sitter_bash")


@dataclass
class AnswerWarnedCommands:
    """Warned commands; one counts as met only when the agent has had time to read the message.

    A model may ask for the same call twice in one response: neither is a second thought.
    """

    memory: WarnedCommands
    answer: object = None
    _fresh: set[str] = field(default_factory=set)

    def hear(self, answer: object) -> None:
        """Take note of which response asks now."""
        if answer != self.answer:
            self.answer = answer
            self._fresh.clear()

    def record_command(self, session: str, normal: str, now: float) -> bool:
        """As `WarnedCommands`; True also for what the same response asked for already."""
        if self.memory.record_command(session, normal, now):
            self._fresh.add(normal)
        return normal in self._fresh


@dataclass(frozen=True)
class Guard:
    """Who reviews the calls of one episode, over all of its runs."""

    reactor: Reactor
    warned: AnswerWarnedCommands
    session: str
    clock: Clock

    def review(self, call: ToolCallRequest, answer: object) -> Steer | None:
        """Say whether a call is held back; `answer` tells the response that asks for it."""
        self.warned.hear(answer)
        decision = self.reactor.review(call, self.session, self.clock())
        return decision if isinstance(decision, Steer) else None


def build_guard(settings: SteeringSettings, episode_id: str, clock: Clock) -> Guard | None:
    """Return who reviews an episode's calls; None where nothing is to be held back.

    Raises InputError where the shells' grammar is not installed.
    """
    if not (settings.enabled or settings.dangerous or settings.general):
        return None
    missing = [module for module in _GRAMMAR_MODULES if find_spec(module) is None]
    if missing:
        raise missing_package_error("steering", f"the package {missing[0]}", "steering")
    from ci_agent_eval.steering.policy.reactor_builder import build_reactor  # noqa: PLC0415 - most need none

    warned = AnswerWarnedCommands(InMemoryWarnedCommands(settings.ttl))
    return Guard(build_reactor(settings, warned), warned, episode_id, clock)


@dataclass
class SteeredToolset(WrapperToolset[Any]):
    """A toolset whose calls are reviewed first."""

    guard: Guard
    record: RunRecord
    programs: Mapping[str, str]
    """The programs of an agent's command-line servers, by the names of their tools."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call the tool, or return the message in place of its result."""
        call = build_policy_call(name, tool_args, self.programs)
        steer = self.guard.review(call, (id(self.record), self.record.answers))
        if steer is None:
            return await super().call_tool(name, tool_args, ctx, tool)
        self.record.held(ctx.tool_call_id, steer.message, steer.handler)
        return steer.message


@dataclass
class SteeringCapability(AbstractCapability[Any]):
    """Puts the review around all tools of one run, whoever brings them."""

    guard: Guard
    record: RunRecord
    programs: Mapping[str, str] = field(default_factory=dict)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Wrap the agent's tools."""
        return SteeredToolset(toolset, self.guard, self.record, self.programs)


def build_steering(
    guard: Guard | None, record: RunRecord, agent: object
) -> list[SteeringCapability]:
    """Return what a run is given beside its tools: the review, if there is one."""
    if guard is None:
        return []
    servers = agent.cli_servers if isinstance(agent, Agent) else ()
    return [
        SteeringCapability(guard, record, {server.tool_name: server.command for server in servers})
    ]


def build_policy_call(
    name: str, args: Mapping[str, Any], programs: Mapping[str, str]
) -> ToolCallRequest:
    """Return a call as steering knows it; of a command-line server, the program it starts."""
    if name not in programs:
        return ToolCallRequest(name, dict(args))
    try:
        words = [*shlex.split(programs[name]), *split_arguments(str(args.get("args", "")))]
    except InputError:
        return ToolCallRequest(name, dict(args))  # the tool itself refuses it
    return ToolCallRequest("shell", {"command": words})
