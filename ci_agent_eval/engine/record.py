"""What is seen of a run while it goes: how far it came, and how long its tool calls take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from ci_agent_eval.contract.jsonable import clean_text, jsonable
from ci_agent_eval.engine.turns import CallKey, CallNote

Clock = Callable[[], float]
"""Seconds from any fixed point, never going back."""


@dataclass
class RunRecord:
    """What the messages of a run do not hold."""

    clock: Clock
    calls: dict[CallKey, CallNote] = field(default_factory=dict)
    answers: int = 0
    """How many responses the model has given."""
    asking: bool = False
    """Whether a model request is open."""
    broken_tool: str | None = None
    """The tool whose call raised what PydanticAI does not hand to the model."""

    def note(
        self, call_id: str | None, started: float, *, result: Any = None, error: str | None = None
    ) -> None:
        """Keep what came of a call, and how long it took."""
        self.calls[self.answers, clean_text(call_id or "")] = CallNote(
            duration_ms=round(max(self.clock() - started, 0.0) * 1000, 3),
            result=jsonable(result),
            error=error,
        )


@dataclass
class AgentToolset(WrapperToolset[Any]):
    """A toolset as one agent sees it in one run: the tools it is allowed, each call noted."""

    record: RunRecord
    allowed: frozenset[str] | None = None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the tools the agent is allowed."""
        tools = await self.wrapped.get_tools(ctx)
        if self.allowed is None:
            return tools
        return {name: tool for name, tool in tools.items() if name in self.allowed}

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
            record.broken_tool = record.broken_tool or name
            record.note(call_id, started, error=describe(error))
            raise
        except BaseException:
            record.note(call_id, started, error="it was stopped before it answered")
            raise
        record.note(call_id, started, result=result)
        return result


def seen_by(
    toolset: AbstractToolset[Any], record: RunRecord, allowed: tuple[str, ...] | None = None
) -> AgentToolset:
    """Return the toolset as an agent sees it; without `allowed` it sees all of it."""
    return AgentToolset(toolset, record, None if allowed is None else frozenset(allowed))


def describe(error: BaseException) -> str:
    """Return an error as one text: its kind, unless it is one of ours, and what it says."""
    said = clean_text(str(error))
    kind = type(error).__name__
    return said if said and kind in _SELF_EXPLAINING else f"{kind}: {said}" if said else kind


_SELF_EXPLAINING = frozenset({"ServerError", "ModelError", "InputError"})
