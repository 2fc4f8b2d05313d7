"""Steering in runs: a held-back call is not executed, and the agent gets a message."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset

from ci_agent_eval.engine.limits import Guard
from ci_agent_eval.engine.run_record import RunRecord
from ci_agent_eval.engine.servers.cli import split_arguments
from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.policy.model import ToolCallRequest


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
        if (extent := self.guard.test_run.extent) is not None:
            self.record.add_test_run(ctx.tool_call_id, extent)
        if steer is None:
            return await super().call_tool(name, tool_args, ctx, tool)
        self.record.add_held_call(ctx.tool_call_id, steer.message, steer.handler)
        return steer.message


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
