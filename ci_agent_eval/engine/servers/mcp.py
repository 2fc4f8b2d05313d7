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

from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.servers.running_server import (
    RunningServer,
    ServerRequest,
    is_connection_lost,
    may_be_refusal,
)

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
    episode_id: str
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
        listing = ServerRequest("listing its tools", self.episode_id, is_repeatable=True)
        tools = await self._ask(listing, lambda running: running.toolset.get_tools(ctx))
        return {name: tool for name, tool in tools.items() if name != self.hidden}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool of the server."""
        asked = ServerRequest(f"the call of {name}", self.episode_id, _is_read_only(tool))

        async def call(running: RunningServer) -> Any:
            return await running.toolset.call_tool(name, tool_args, ctx, tool)

        return await self._ask(asked, call, serves=True)

    async def _ask(
        self,
        asked: ServerRequest,
        ask: Callable[[RunningServer], Awaitable[_Answer]],
        *,
        serves: bool = False,
    ) -> _Answer:
        """Return the server's answer; ask again where another episode's call cost the server."""
        while True:
            running = await self.source()
            try:
                answer = await await_answer(running, asked, ask(running))
            except _FOR_THE_AGENT:
                running.has_served |= serves
                raise
            except ServerError:
                if not running.was_lost_to_another(asked):
                    raise
            else:
                running.has_served |= serves
                return answer


def _is_read_only(tool: ToolsetTool[Any]) -> bool:
    """Say whether the server declares that the tool changes nothing."""
    annotations = (tool.tool_def.metadata or {}).get("annotations") or {}
    return annotations.get("readOnlyHint") is True


async def await_answer(
    running: RunningServer, asked: ServerRequest, work: Awaitable[_Answer]
) -> _Answer:
    """Return the server's answer. Raises ServerError where there is none, and remembers it."""
    running.open_questions.append(asked)
    try:
        async with asyncio.timeout(running.declared.call_timeout_s):
            return await work
    except _FOR_THE_AGENT as error:
        cause = error.__cause__
        if not isinstance(cause, MCPError) or not await is_server_lost(running, cause):
            raise
        raise await build_lost_error(running, asked, cause) from error
    except MCPError as error:
        if await is_server_lost(running, error):
            raise await build_lost_error(running, asked, error) from error
        raise build_unanswered_error(running, asked, error) from error
    except Exception as error:
        raise build_unanswered_error(running, asked, error) from error
    finally:
        running.open_questions.remove(asked)


async def is_server_lost(running: RunningServer, error: MCPError) -> bool:
    """Say whether the error means that the server was lost; ask it where that is not clear."""
    return is_connection_lost(error) and not (may_be_refusal(error) and await running.answers())


async def build_lost_error(
    running: RunningServer, asked: ServerRequest, error: MCPError
) -> ServerError:
    """Return the error for an answer that will never come; the next use restarts the server."""
    if not running.broken:
        running.broken, running.open_when_lost = True, tuple(running.open_questions)
    await running.settle()
    others = [str(other) for other in running.open_when_lost if other is not asked]
    also = f"; open at the same time: {', '.join(others)}" if others else ""
    return running.failure(f"was lost during {asked.what}: {error.error.message}{also}")


def build_unanswered_error(
    running: RunningServer, asked: ServerRequest, error: Exception
) -> ServerError:
    """Return the error for an answer that did not come in time, or cannot be read."""
    running.in_doubt = True
    if isinstance(error, TimeoutError):
        limit_s = running.declared.call_timeout_s
        return running.failure(f"did not answer {asked.what} in {limit_s:g} s")
    return running.failure(f"gave no answer to {asked.what} that can be read: {error}")
