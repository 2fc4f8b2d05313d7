"""What an episode sees of an MCP server: its tools, looked after, and failures that say so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp import MCPError
from pydantic_ai import RunContext
from pydantic_ai.exceptions import AgentRunError, ModelRetry, ToolFailed, UserError
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from ci_agent_eval.engine.faults import ServerError
from ci_agent_eval.engine.servers.running import RunningServer, is_lost

_Answer = TypeVar("_Answer")

_FOR_THE_AGENT = (ModelRetry, ToolFailed, UserError, AgentRunError)
"""What PydanticAI itself raises to steer a run."""


@dataclass(frozen=True)
class EpisodeToolset(AbstractToolset[Any]):
    """The tools of a server during one episode.

    Raises ServerError from a call whose answer never came; a tool that reports an error
    raises ModelRetry, for the model. The server is looked at before each call.
    """

    server: str
    """What messages call the server."""
    source: Callable[[], Awaitable[RunningServer]]
    """Gives the running server, started again if need be."""
    hidden: str | None = None
    """A tool that is not the agent's: the one that resets the server."""

    @property
    def id(self) -> str | None:
        """None: nothing is stored under it."""
        return None

    @property
    def label(self) -> str:
        """What PydanticAI's messages call it."""
        return f"the MCP server {self.server}"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the server's tools."""
        running = await self.source()
        tools = await answered(running, "listing its tools", running.toolset.get_tools(ctx))
        return {name: tool for name, tool in tools.items() if name != self.hidden}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool of the server."""
        running = await self.source()
        call = running.toolset.call_tool(name, tool_args, ctx, tool)
        answer = await answered(running, f"the call of {name}", call)
        running.has_served = True
        return answer


async def answered(running: RunningServer, doing: str, work: Awaitable[_Answer]) -> _Answer:
    """Return the server's answer. Raises ServerError where there is none, and remembers it."""
    try:
        async with asyncio.timeout(running.declared.call_timeout_s):
            return await work
    except _FOR_THE_AGENT as error:
        cause = error.__cause__
        if not isinstance(cause, MCPError) or not is_lost(cause):
            raise
        raise await lost(running, doing, cause) from error
    except Exception as error:
        raise await lost(running, doing, error) from error


async def lost(running: RunningServer, doing: str, error: Exception) -> ServerError:
    """Return the error for an answer that did not come; the next use looks at the server."""
    if isinstance(error, MCPError) and is_lost(error):
        running.broken = True
        await running.settle()
        return running.failure(f"was lost during {doing}: {error.error.message}")
    running.in_doubt = True
    if isinstance(error, TimeoutError):
        return running.failure(f"did not answer {doing} in {running.declared.call_timeout_s:g} s")
    return running.failure(f"gave no answer to {doing} that can be read: {error}")
