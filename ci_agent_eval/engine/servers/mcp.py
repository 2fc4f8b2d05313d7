"""The toolset of an MCP server in an episode, with server failures as ServerError."""

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
"""Exceptions by which PydanticAI controls a run."""


@dataclass(frozen=True)
class EpisodeToolset(AbstractToolset[Any]):
    """The tools of a server during one episode.

    A call without an answer raises ServerError; a tool that reports an error raises
    ModelRetry, for the model. The server is checked before each call.
    """

    server: str
    """Name of the server in messages."""
    episode_id: str
    source: Callable[[], Awaitable[RunningServer]]
    """Returns the running server, restarted if necessary."""
    hidden: str | None = None
    """A tool hidden from the agent: the one that resets the server."""

    @property
    def id(self) -> str | None:
        """None: no state is stored under an id."""
        return None

    @property
    def label(self) -> str:
        """Name in PydanticAI's messages."""
        return f"the MCP server {self.server}"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the server's tools."""
        listing = ServerRequest("listing its tools", self.episode_id, is_repeatable=True)
        tools = await self._send(listing, lambda running: running.toolset.get_tools(ctx))
        return {name: tool for name, tool in tools.items() if name != self.hidden}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool of the server."""
        request = ServerRequest(f"the call of {name}", self.episode_id, _is_read_only(tool))

        async def call(running: RunningServer) -> Any:
            return await running.toolset.call_tool(name, tool_args, ctx, tool)

        return await self._send(request, call, serves=True)

    async def ask(
        self, subject: str, send: Callable[[RunningServer], Awaitable[_Answer]]
    ) -> _Answer:
        """Send another request that changes nothing at the server. Raises ServerError."""
        return await self._send(ServerRequest(subject, self.episode_id, is_repeatable=True), send)

    async def _send(
        self,
        request: ServerRequest,
        send: Callable[[RunningServer], Awaitable[_Answer]],
        *,
        serves: bool = False,
    ) -> _Answer:
        """Return the server's answer; repeat the request if another episode's call killed it."""
        while True:
            running = await self.source()
            try:
                answer = await await_answer(running, request, send(running))
            except _FOR_THE_AGENT:
                running.has_served |= serves
                raise
            except ServerError:
                if not running.was_lost_to_another(request):
                    raise
            else:
                running.has_served |= serves
                return answer


def _is_read_only(tool: ToolsetTool[Any]) -> bool:
    """Return whether the server declares the tool as read-only."""
    annotations = (tool.tool_def.metadata or {}).get("annotations") or {}
    return annotations.get("readOnlyHint") is True


async def await_answer(
    running: RunningServer, request: ServerRequest, work: Awaitable[_Answer]
) -> _Answer:
    """Return the server's answer. Raises ServerError if there is none, and marks the server."""
    running.open_requests.append(request)
    try:
        async with asyncio.timeout(running.declared.call_timeout_s):
            return await work
    except _FOR_THE_AGENT as error:
        cause = error.__cause__
        if not isinstance(cause, MCPError) or not await is_server_lost(running, cause):
            raise
        raise await build_lost_error(running, request, cause) from error
    except MCPError as error:
        if await is_server_lost(running, error):
            raise await build_lost_error(running, request, error) from error
        raise build_unanswered_error(running, request, error) from error
    except Exception as error:
        raise build_unanswered_error(running, request, error) from error
    finally:
        running.open_requests.remove(request)


async def is_server_lost(running: RunningServer, error: MCPError) -> bool:
    """Return whether the error means a lost server; in doubt the server is pinged."""
    return is_connection_lost(error) and not (may_be_refusal(error) and await running.ping())


async def build_lost_error(
    running: RunningServer, request: ServerRequest, error: MCPError
) -> ServerError:
    """Build the error of a lost connection; the next use restarts the server."""
    if not running.broken:
        running.broken, running.open_when_lost = True, tuple(running.open_requests)
    await running.wait_for_exit()
    others = [str(other) for other in running.open_when_lost if other is not request]
    also = f"; open at the same time: {', '.join(others)}" if others else ""
    return running.build_error(f"was lost during {request.subject}: {error.error.message}{also}")


def build_unanswered_error(
    running: RunningServer, request: ServerRequest, error: Exception
) -> ServerError:
    """Build the error of an answer that timed out or is invalid."""
    running.in_doubt = True
    if isinstance(error, TimeoutError):
        limit_s = running.declared.call_timeout_s
        return running.build_error(f"did not answer {request.subject} in {limit_s:g} s")
    return running.build_error(f"gave no answer to {request.subject} that can be read: {error}")
