"""What is seen of a run while it goes: how far it came, and how long its tool calls take."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.messages import ModelResponse
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from ci_agent_eval.contract import fields
from ci_agent_eval.contract.jsonable import clean_text, describe_error, to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.engine.declarations import Agent
from ci_agent_eval.engine.turns import CallNote, RunNotes

Clock = Callable[[], float]
"""Seconds from any fixed point, never going back."""


@dataclass(kw_only=True)
class RunRecord(RunNotes):
    """What the messages of a run do not hold, and how far it came."""

    clock: Clock
    answers: int = 0
    """How many responses the model has given."""
    asking: bool = False
    """Whether a model request is open."""
    last_answer: ModelResponse | None = None
    broken_tool: str | None = None
    """The tool whose call raised what PydanticAI does not hand to the model."""
    is_own_tool: bool = False
    """Whether that tool is the agent's own code, and no tool server's."""
    has_servers: bool = True
    """Whether the agent has tool servers."""

    def answered(self, response: ModelResponse) -> None:
        """Keep that the model has answered."""
        self.asking, self.last_answer = False, response
        self.answers += 1

    def note(
        self, call_id: str | None, started: float, *, result: Any = None, error: str | None = None
    ) -> None:
        """Keep what came of a call, and how long it took."""
        self.calls[self.answers, clean_text(call_id or "")] = CallNote(
            duration_ms=convert_to_ms(self.clock() - started),
            result=to_jsonable(result),
            error=error,
        )

    def held(self, call_id: str | None, message: str, handler: str) -> None:
        """Keep that a call was held back, and what the agent was told in place of a result."""
        self.calls[self.answers, clean_text(call_id or "")] = CallNote(
            result=clean_text(message), steered_by=handler
        )


@dataclass
class OfferedTools:
    """The tools that are offered to an agent, held against those it declares."""

    agent: Agent
    expected: int
    """How many toolsets list theirs before the model is first asked."""
    listed: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def note(self, place: int, names: Iterable[str]) -> None:
        """Keep what a toolset lists. Raises InputError, with the last, for what none has."""
        if place in self.listed:
            return
        self.listed[place] = tuple(names)
        if len(self.listed) == self.expected:
            self.check()

    def check(self) -> None:
        """Raise InputError for an allowed tool that nobody offers: a slip of the pen."""
        offered = sorted({name for names in self.listed.values() for name in names})
        missing = [name for name in self.agent.allowed_tools or () if name not in offered]
        if missing:
            raise fields.field_error(
                "Agent",
                "allowed_tools",
                f"agent {self.agent.label!r}: no server of it offers {', '.join(missing)}; "
                f"there are: {', '.join(offered) or 'no tools'}",
            )


@dataclass
class RecordedToolset(WrapperToolset[Any]):
    """A toolset each call of which is noted."""

    record: RunRecord

    def is_own(self, tool: ToolsetTool[Any]) -> bool:
        """Say whether the agent's own code is the tool, and no tool server."""
        return not is_mcp_toolset(tool.toolset)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call the tool; keep what came of it should the run end before the model is told."""
        record, started, call_id = self.record, self.record.clock(), ctx.tool_call_id
        try:
            result = await self.wrapped.call_tool(name, tool_args, ctx, tool)
        except (ModelRetry, ToolFailed) as told:
            record.note(call_id, started, error=clean_text(str(told)))
            raise
        except Exception as error:
            if record.broken_tool is None:
                record.broken_tool, record.is_own_tool = name, self.is_own(tool)
            record.note(call_id, started, error=describe_error(error))
            raise
        except BaseException:
            record.note(call_id, started, error="it was stopped before it answered")
            raise
        record.note(call_id, started, result=result)
        return result


def is_mcp_toolset(toolset: AbstractToolset[Any]) -> bool:
    """Say whether an MCP server of PydanticAI brings the tools."""
    while isinstance(toolset, WrapperToolset):
        toolset = toolset.wrapped
    mcp = sys.modules.get("pydantic_ai.mcp")  # what nobody has imported, nobody uses
    return mcp is not None and isinstance(toolset, mcp.MCPToolset)


@dataclass
class AgentToolset(RecordedToolset):
    """A toolset as a declared agent sees it in one run: the tools it is allowed."""

    offers: OfferedTools
    place: int
    allowed: frozenset[str] | None = None

    def is_own(self, tool: ToolsetTool[Any]) -> bool:
        """Say no: a declared agent has no code of its own."""
        del tool
        return False

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools the agent is allowed. Raises InputError, as `Offers`."""
        tools = await self.wrapped.get_tools(ctx)
        self.offers.note(self.place, tools)
        if self.allowed is None:
            return tools
        return {name: tool for name, tool in tools.items() if name in self.allowed}


def restrict_toolsets(
    agent: Agent,
    toolsets: Sequence[AbstractToolset[Any]],
    always: Sequence[AbstractToolset[Any]],
    record: RunRecord,
) -> list[AgentToolset]:
    """Return the toolsets as an agent sees them; of those that are `always` there it sees all.

    Raises InputError where there is none, and the agent names tools it is allowed.
    """
    allowed = None if agent.allowed_tools is None else frozenset(agent.allowed_tools)
    offers = OfferedTools(agent, len(toolsets) + len(always))
    if not offers.expected:
        offers.check()
    seen = [(toolset, allowed) for toolset in toolsets] + [(toolset, None) for toolset in always]
    return [AgentToolset(tools, record, offers, at, of) for at, (tools, of) in enumerate(seen)]
