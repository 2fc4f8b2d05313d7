"""Steering in episodes: a held-back call is not executed, and the agent gets a message."""

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
    """Warned commands that count as known only after the response with the warning.

    A model may request the same call twice in one response, before it reads the warning.
    """

    memory: WarnedCommands
    answer: object = None
    _fresh: set[str] = field(default_factory=set)

    def set_answer(self, answer: object) -> None:
        """Set the response that requests the current calls."""
        if answer != self.answer:
            self.answer = answer
            self._fresh.clear()

    def record_command(self, session: str, normal: str, now: float) -> bool:
        """As `WarnedCommands`; True also for a repetition in the same response."""
        if self.memory.record_command(session, normal, now):
            self._fresh.add(normal)
        return normal in self._fresh


@dataclass(frozen=True)
class Guard:
    """Reviews the calls of one episode over all of its runs."""

    reactor: Reactor
    warned: AnswerWarnedCommands
    session: str
    clock: Clock

    def review(self, call: ToolCallRequest, answer: object) -> Steer | None:
        """Return the steer of a held-back call, or None; `answer` identifies its response."""
        self.warned.set_answer(answer)
        decision = self.reactor.review(call, self.session, self.clock())
        return decision if isinstance(decision, Steer) else None


def build_guard(settings: SteeringSettings, episode_id: str, clock: Clock) -> Guard | None:
    """Build the guard of an episode; None if the settings hold back nothing.

    Raises InputError if the shells' grammar is not installed.
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
    """A toolset whose calls are reviewed before they run."""

    guard: Guard
    record: RunRecord
    programs: Mapping[str, str]
    """The programs of an agent's command-line servers, by the names of their tools."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call the tool, or return the message of a held-back call."""
        call = build_policy_call(name, tool_args, self.programs)
        steer = self.guard.review(call, (id(self.record), self.record.response_count))
        if steer is None:
            return await super().call_tool(name, tool_args, ctx, tool)
        self.record.add_held_call(ctx.tool_call_id, steer.message, steer.handler)
        return steer.message


@dataclass
class SteeringCapability(AbstractCapability[Any]):
    """Reviews the calls of all tools of one run."""

    guard: Guard
    record: RunRecord
    programs: Mapping[str, str] = field(default_factory=dict)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Wrap the agent's tools."""
        return SteeredToolset(toolset, self.guard, self.record, self.programs)


def build_steering(
    guard: Guard | None, record: RunRecord, agent: object
) -> list[SteeringCapability]:
    """Build the steering capability of a run, if it has a guard."""
    if guard is None:
        return []
    servers = agent.cli_servers if isinstance(agent, Agent) else ()
    return [
        SteeringCapability(guard, record, {server.tool_name: server.command for server in servers})
    ]


def build_policy_call(
    name: str, args: Mapping[str, Any], programs: Mapping[str, str]
) -> ToolCallRequest:
    """Convert a call for the policy; a call of a command-line server becomes its command."""
    if name not in programs:
        return ToolCallRequest(name, dict(args))
    try:
        words = [*shlex.split(programs[name]), *split_arguments(str(args.get("args", "")))]
    except InputError:
        return ToolCallRequest(name, dict(args))  # the tool refuses it
    return ToolCallRequest("shell", {"command": words})
