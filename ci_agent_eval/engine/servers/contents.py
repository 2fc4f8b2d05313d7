"""Prompts and resources of an MCP server, for tests that use them or check them.

Each function asks the server of the active episode; outside of episodes, one that is started for
the request. It raises InputError if the server refuses the request, and ServerError if there is no
answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic_ai.mcp import MCPError as RefusedRequest
from pydantic_ai.mcp import MCPToolset, Prompt, Resource, ResourceTemplate
from pydantic_ai.messages import BinaryContent, TextContent

from ci_agent_eval.contract.fields import field_error
from ci_agent_eval.engine.declarations import MCPServer
from ci_agent_eval.engine.servers.connection import EpisodeToolset
from ci_agent_eval.engine.session import open_session
from ci_agent_eval.errors import InputError

_Answer = TypeVar("_Answer")


async def list_prompts(server: MCPServer) -> tuple[Prompt, ...]:
    """Return the prompts of a server: `name`, `description` and `arguments` of each."""
    return tuple(await _ask(server, "listing its prompts", lambda tools: tools.list_prompts()))


async def get_prompt(
    server: MCPServer, name: str, arguments: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the messages of a prompt with these arguments: `role` and `content` of each."""
    subject = f"the prompt {name!r}"
    values = dict(arguments or {})
    result = await _ask(server, subject, lambda tools: tools.get_prompt(name, values))
    return [
        {"role": message.role, "content": _get_content(message.content)}
        for message in result.messages
    ]


async def list_resources(server: MCPServer) -> tuple[Resource, ...]:
    """Return the resources of a server: `uri`, `name`, `description` and `mime_type` of each."""
    return tuple(await _ask(server, "listing its resources", lambda tools: tools.list_resources()))


async def list_resource_templates(server: MCPServer) -> tuple[ResourceTemplate, ...]:
    """Return the templates of a server's resources, each with its `uri_template`."""
    subject = "listing its resource templates"
    return tuple(await _ask(server, subject, lambda tools: tools.list_resource_templates()))


async def read_resource(
    server: MCPServer, uri: str
) -> str | BinaryContent | Sequence[str | BinaryContent]:
    """Return the content of a resource: a text, a file with its `data`, or a list of them."""
    if not urlsplit(uri).scheme:
        raise field_error("read_resource", "uri", f"must be a full address, got {uri!r}")
    return await _ask(server, f"the resource {uri}", lambda tools: tools.read_resource(uri))


def _get_content(content: object) -> object:
    """Return the text of a message, or its content of another kind unchanged."""
    return content.content if isinstance(content, TextContent) else content


async def _ask(
    server: MCPServer, subject: str, ask: Callable[[MCPToolset[Any]], Awaitable[_Answer]]
) -> _Answer:
    """Ask a server once. Raises InputError and ServerError, as the functions of this module."""
    async with open_session() as (session, episode_id):
        session.register_secrets(server)
        async with session.open_servers([server], episode_id) as (toolset,):
            assert isinstance(toolset, EpisodeToolset)  # noqa: S101 - the toolset of an MCP server
            try:
                return await toolset.ask(subject, ask)
            except RefusedRequest as error:
                raise InputError(f"server {server.label!r} refused {subject}: {error}") from None
